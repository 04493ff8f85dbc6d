//! Opening files and devices, and the errors.

mod scratch;

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use scratch::{Scratch, is_root, request, run, system, text, writable};
use ssdlab_device::{Device, Op};
use ssdlab_uring::{OpenError, OpenOptions, UringDevice};

/// The error of opening a path, whose message must be one line with the path.
fn refused(path: &str, options: &OpenOptions) -> OpenError {
    let error = UringDevice::open(path, options).expect_err("this cannot be opened");
    let message = error.to_string();
    assert!(!message.contains('\n') && !message.contains("  "), "not one line: {message}");
    assert!(message.contains(path) || matches!(error, OpenError::Option { .. }), "{message}");
    error
}

#[test]
fn the_capacity_of_a_file_is_its_whole_sectors() {
    let Some(file) = Scratch::zeros(3 * 4096 + 100) else { return };
    let device = file.open(&OpenOptions { queue_depth: 7, ..Default::default() });
    let sector = device.sector_bytes();
    assert_eq!(device.capacity_bytes(), (3 * 4096 + 100) / sector * sector);
    assert_eq!(device.queue_depth(), 7);
}

#[test]
fn only_files_with_content_can_be_opened() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let options = OpenOptions::default();
    assert!(matches!(refused("/no/such/file", &options), OpenError::NotFound { .. }));
    assert!(matches!(refused("/tmp", &options), OpenError::Kind { kind: "directory", .. }));
    let kind = "character device";
    assert!(matches!(refused("/dev/null", &options), OpenError::Kind { kind: k, .. } if k == kind));
    File::options().write(true).open(&file.path).unwrap().set_len(100).unwrap();
    let empty = refused(text(&file.path), &options);
    assert!(matches!(empty, OpenError::Empty { bytes: 100, .. }));
}

#[test]
fn a_pipe_is_refused_without_waiting_for_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let error = refused(text(&path), &OpenOptions::default());
    assert!(matches!(error, OpenError::Kind { kind: "pipe or socket", .. }));
}

#[test]
fn an_option_out_of_range_is_refused_by_name() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let refused_option = |options: &OpenOptions| match refused(text(&file.path), options) {
        OpenError::Option { name, .. } => name,
        other => panic!("{other}"),
    };
    for queue_depth in [0, 1025] {
        let options = OpenOptions { queue_depth, ..Default::default() };
        assert_eq!(refused_option(&options), "queue_depth");
    }
    for request_bytes_max in [0, (1 << 30) + 1] {
        let options = OpenOptions { request_bytes_max, ..Default::default() };
        assert_eq!(refused_option(&options), "request_bytes_max");
    }
}

#[test]
fn a_queue_of_1024_works() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let locked =
        OpenOptions { request_bytes_max: 4096, registered_buffers: Some(true), ..writable(1024) };
    let Some(mut device) = file.open_locked(&locked) else { return };
    for id in 0..1024 {
        device.submit(request(id, Op::Write, id % 16 * 4096, 4096)).unwrap();
    }
    assert!(scratch::reap_all(&mut device, 1024).iter().all(|c| c.outcome == Ok(())));
}

#[test]
fn an_open_file_must_have_the_flags_that_the_options_require() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let missing = |file: File, options: &OpenOptions| match UringDevice::from_file(file, options) {
        Err(OpenError::Opened { missing, .. }) => missing,
        other => panic!("{other:?}"),
    };
    let direct = |writable| {
        let mut flags = File::options();
        flags.read(true).write(writable).custom_flags(libc::O_DIRECT).open(&file.path).unwrap()
    };
    let options = OpenOptions::default();
    assert_eq!(missing(File::open(&file.path).unwrap(), &options), "O_DIRECT");
    assert_eq!(missing(direct(false), &writable(4)), "O_RDWR");
    let write_only =
        File::options().write(true).custom_flags(libc::O_DIRECT).open(&file.path).unwrap();
    assert_eq!(missing(write_only, &options), "O_RDONLY or O_RDWR");
    let mut device = UringDevice::from_file(direct(true), &writable(4)).unwrap();
    assert_eq!(run(&mut device, request(0, Op::Write, 0, 4096)).outcome, Ok(()));
    assert!(UringDevice::from_file(direct(false), &options).is_ok());
}

#[test]
fn a_file_system_in_memory_is_refused_for_direct_io() {
    if !is_root() {
        return;
    }
    for kind in ["ramfs", "tmpfs"] {
        let directory = tempfile::tempdir().unwrap();
        if system("mount", &["-t", kind, kind, text(directory.path())]).is_none() {
            continue;
        }
        let path = directory.path().join("file");
        fs::write(&path, vec![1_u8; 1 << 16]).unwrap();
        let direct = UringDevice::open(&path, &OpenOptions::default());
        let buffered = OpenOptions { direct: false, ..Default::default() };
        let buffered = UringDevice::open(&path, &buffered).map(drop);
        if system("umount", &[text(directory.path())]).is_none() {
            system("umount", &["--lazy", text(directory.path())]);
            panic!("a closed device still holds its file system");
        }
        let message = direct.unwrap_err().to_string();
        assert!(message.contains(&format!("{kind} (memory), which refuses direct I/O")));
        assert!(message.contains("choose a directory on a drive's own file system"));
        buffered.expect("without O_DIRECT it opens");
    }
}
