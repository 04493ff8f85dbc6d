//! A block device: a loop device on a file, if this process may attach one.

mod scratch;

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use scratch::{Scratch, is_root, reap_all, request, run, system, text, writable};
use ssdlab_device::{Device, Op, Request};
use ssdlab_uring::{OpenError, OpenOptions, UringDevice};

/// One test at a time: a child process inherits the open files for a moment, and would keep a block
/// device that is open exclusively.
static ALONE: Mutex<()> = Mutex::new(());

/// A loop device on a file of 1 MiB, detached on drop.
struct Loop {
    path: String,
    file: Scratch,
    _alone: MutexGuard<'static, ()>,
}

impl Loop {
    fn attach() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = Scratch::zeros(1 << 20)?;
        let path = system("losetup", &["--find", "--show", text(&file.path)])?;
        Some(Self { path, file, _alone: alone })
    }

    fn open(&self, options: &OpenOptions) -> Result<UringDevice, OpenError> {
        UringDevice::open(&self.path, options)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        system("losetup", &["--detach", &self.path]);
    }
}

#[test]
fn a_block_device_reads_writes_trims_and_flushes() {
    let Some(attached) = Loop::attach() else { return };
    let mut device = attached.open(&writable(4)).unwrap();
    assert_eq!(device.capacity_bytes(), 1 << 20);
    assert_eq!(device.sector_bytes(), 512);
    for request in [
        request(0, Op::Write, 1 << 16, 1 << 16),
        request(1, Op::Read, (1 << 16) + 512, 512),
        Request::flush(2),
    ] {
        assert_eq!(run(&mut device, request).outcome, Ok(()), "{request:?}");
    }
    let written = attached.file.bytes()[1 << 16..2 << 16].to_vec();
    assert!(written.chunks(512).all(|sector| sector.iter().any(|&byte| byte != 0)));
    assert_eq!(run(&mut device, request(3, Op::Trim, 1 << 16, 1 << 16)).outcome, Ok(()));
    assert!(attached.file.bytes().iter().all(|&byte| byte == 0));
}

#[test]
fn exclusive_access_to_a_block_device_in_use_is_refused() {
    let Some(attached) = Loop::attach() else { return };
    let exclusive = OpenOptions { exclusive: true, ..Default::default() };
    let holder = attached.open(&exclusive).unwrap();
    assert!(matches!(attached.open(&exclusive).err(), Some(OpenError::Busy { .. })));
    assert!(attached.open(&OpenOptions::default()).is_ok());
    drop(holder);
    assert!(attached.open(&exclusive).is_ok());
}

#[test]
fn media_errors_are_returned_in_completions() {
    let Some(attached) = Loop::attach() else { return };
    let mut device = attached.open(&writable(8)).unwrap();
    // Truncate the file below the loop device, so that every read is an I/O error.
    File::options().write(true).open(&attached.file.path).unwrap().set_len(0).unwrap();
    for id in 0..8 {
        device.submit(request(id, Op::Read, id << 16, 1 << 16)).unwrap();
    }
    let done = reap_all(&mut device, 8);
    assert!(done.iter().all(|c| c.outcome.is_err_and(|e| e.errno == libc::EIO)), "{done:?}");
}
