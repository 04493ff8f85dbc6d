//! `UringDevice`: a `Device` on an `io_uring`, with one system call per request.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread::{self, ThreadId};
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring};
use ssdlab_device::{Completion, Device, DeviceError, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::buffers::Buffers;
use crate::clock::{Clock, SPIN};
use crate::slot::{Slot, SqeOptions, Step, sqe};
use crate::target::Target;
use crate::{OpenError, OpenOptions, setup};

/// Maximum timeout passed to the kernel, which adds it to the time since boot.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// In batch mode, a wait is for the requests in flight divided by this.
const BATCH_WAIT_DIVISOR: usize = 4;

/// A file or block device in real time, without the page cache.
///
/// Reads discard the data. Writes carry the data of `OpenOptions::content`. A trim is `fallocate`
/// with `PUNCH_HOLE | KEEP_SIZE`: it makes a hole in a file, and on a block device the kernel sends
/// WRITE ZEROES with permission to unmap. A flush is an `fsync`, which flushes the drive's cache.
///
/// The kernel gets a request with the next call of `submit` or `reap`, so that one system call both
/// submits and waits. Writes are submitted at once, and the content of the next one is generated
/// while they run. With `batch` all requests are submitted by `reap`. `submitted` is read when the
/// request is queued, after its content was generated, and `completed` right after completions were
/// reaped, once for all of them.
pub struct UringDevice {
    ring: IoUring,
    /// Freed after `ring`, and never while a request is in flight (see `drop`).
    buffers: Buffers,
    target: Target,
    slots: Vec<Slot>,
    /// Requests submitted to the ring and not reaped.
    in_flight: usize,
    clock: Clock,
    sqe_options: SqeOptions,
    batch: bool,
    /// The thread to which the ring is bound, with `single_issuer`.
    owner: Option<ThreadId>,
}

impl UringDevice {
    /// Opens an existing file or block device. The capacity is its length in whole sectors.
    ///
    /// # Errors
    /// The file or device cannot be opened as requested; there is no fallback to buffered I/O.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(Target::open(path.as_ref(), options)?, Clock::start(), options)
    }

    /// Uses a file that the caller opened, and may have locked, with the flags that the options
    /// require: `O_DIRECT` if `direct`, `O_RDWR` if `writable`. `exclusive` is not checked.
    pub fn from_file(file: File, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(Target::from_file(file, options)?, Clock::start(), options)
    }

    /// Another ring on the same open file, with the same clock and its own content.
    pub fn sibling(&self, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(self.target.try_clone(options)?, self.clock, options)
    }

    fn new(target: Target, clock: Clock, options: &OpenOptions) -> Result<Self, OpenError> {
        let buffers = Buffers::new(options, target.memory_align)?;
        let file = target.file.as_raw_fd();
        let ring = setup::ring(options.queue_depth, file, options.single_issuer)?;
        let mut device = Self {
            ring,
            buffers,
            target,
            slots: vec![Slot::new(Request::flush(0)); options.queue_depth],
            in_flight: 0,
            clock,
            sqe_options: SqeOptions { registered_buffers: false, flush: options.flush },
            batch: options.batch,
            owner: options.single_issuer.then(|| thread::current().id()),
        };
        if options.registered_buffers != Some(false) {
            // SAFETY: `drop` waits for all requests before it frees the buffers.
            let registered = unsafe { setup::register(&device.ring, &device.buffers) };
            device.sqe_options.registered_buffers = registered.is_ok();
            if options.registered_buffers.is_some() {
                registered?;
            }
        }
        Ok(device)
    }

    /// Whether the buffers are registered, so that they are not pinned for each request.
    pub fn registered_buffers(&self) -> bool {
        self.sqe_options.registered_buffers
    }

    /// Queues the slot's request for the next system call.
    fn push(&mut self, slot: usize) {
        let sqe = sqe(slot, &self.slots[slot], &self.buffers, self.sqe_options);
        // SAFETY: the file is registered, only this slot uses the buffer until its completion is
        // reaped, and both outlive the ring's last request (see `drop`).
        let pushed = unsafe { self.ring.submission().push(&sqe) };
        // Each slot has at most one request.
        pushed.expect("the ring has an entry for each slot");
    }

    /// Creates a new ring if the ring is bound to another thread and idle.
    fn rebind_to_thread(&mut self) -> Result<(), DeviceError> {
        let thread = thread::current().id();
        if self.in_flight > 0 || self.owner.is_none_or(|owner| owner == thread) {
            return Ok(());
        }
        let failed = |error: OpenError| DeviceError::System {
            what: "creating a ring for another thread",
            source: std::io::Error::other(error),
        };
        let file = self.target.file.as_raw_fd();
        let ring = setup::ring(self.slots.len(), file, true).map_err(failed)?;
        if self.sqe_options.registered_buffers {
            // Otherwise they count twice as locked memory until the kernel has freed the old ring.
            let _ = self.ring.submitter().unregister_buffers();
            // SAFETY: `drop` waits for all requests before it frees the buffers.
            unsafe { setup::register(&ring, &self.buffers) }.map_err(failed)?;
        }
        let _ = self.ring.submitter().unregister_files();
        (self.ring, self.owner) = (ring, Some(thread));
        Ok(())
    }

    /// Makes the kernel post completions that it defers for this thread.
    fn get_events(&self) {
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no pointer is passed. An error can be ignored, as nothing is submitted.
        let _ = unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, flags, None) };
    }

    /// Whether a request is queued for the next system call.
    fn has_pushed(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    /// Completions to wait for: one, or in batch mode a part of those in flight.
    fn wait_count(&self) -> usize {
        if self.batch { self.in_flight.div_ceil(BATCH_WAIT_DIVISOR) } else { 1 }
    }

    /// Submits queued requests and waits for `want` completions or the timeout `left`.
    ///
    /// Temporary failures are not errors: requests that the kernel did not accept remain in the
    /// ring and are submitted by the next call.
    fn enter(&mut self, want: usize, left: Option<Duration>) -> Result<(), DeviceError> {
        let submitter = self.ring.submitter();
        let entered = match left {
            None => submitter.submit_and_wait(want),
            Some(left) => {
                let timeout = Timespec::from(left.min(WAIT_MAX));
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&timeout))
            }
        };
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) | Err((Some(libc::ETIME | libc::EINTR), _)) => Ok(()),
            Err((Some(libc::EAGAIN | libc::EBUSY), _)) => {
                // The kernel has no memory for requests. A call that fails to submit does not post
                // completions, so requests in flight would never make room; a call that submits
                // nothing does.
                thread::yield_now();
                self.get_events();
                Ok(())
            }
            Err((_, source)) => Err(DeviceError::System { what: "io_uring_enter", source }),
        }
    }

    /// Appends completions, and submits requests again that are not complete.
    fn collect(&mut self, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let mut again = Vec::new();
        let completions = self.ring.completion();
        if completions.is_empty() {
            return Ok(());
        }
        // The iterator only has completions posted before this time.
        let completed = self.clock.now();
        for completion in completions {
            let index = completion.user_data() as usize;
            let slot = &mut self.slots[index];
            match slot.handle_result(completion.result(), self.target.sector) {
                Step::Resubmit => again.push(index),
                Step::Done(outcome) => {
                    let Slot { request, submitted, .. } = *slot;
                    self.buffers.release(index);
                    self.in_flight -= 1;
                    done.push(Completion { id: request.id, submitted, completed, outcome });
                }
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        for slot in again {
            self.push(slot);
        }
        self.enter(0, None)
    }

    /// Waits for all requests in flight and discards their completions.
    fn drain(&mut self) -> Result<(), DeviceError> {
        let mut done = Vec::new();
        while self.in_flight > 0 {
            self.reap(Wait::One, &mut done)?;
        }
        Ok(())
    }
}

impl Device for UringDevice {
    fn capacity_bytes(&self) -> u64 {
        self.target.capacity
    }

    fn sector_bytes(&self) -> u64 {
        self.target.sector
    }

    fn request_bytes_max(&self) -> u64 {
        self.target.request_bytes_max
    }

    fn queue_depth(&self) -> usize {
        self.slots.len()
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.target.check(&request)?;
        if self.in_flight == 0 {
            self.rebind_to_thread()?;
        }
        if !self.batch && self.has_pushed() {
            self.enter(0, None)?;
        }
        let slot = self.buffers.acquire().expect("at most queue_depth requests are in flight");
        if request.op == Op::Write {
            self.buffers.fill_for_write(slot, request.lba.bytes(), request.bytes() as usize);
        }
        self.slots[slot] = Slot::new(request);
        self.push(slot);
        self.in_flight += 1;
        self.slots[slot].submitted = self.clock.now();
        if request.op == Op::Write && !self.batch {
            self.enter(0, None)?;
            self.buffers.prepare(request.bytes() as usize);
        }
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let before = done.len();
        if self.has_pushed() {
            let nothing_yet = self.ring.completion().is_empty();
            let least = if wait == Wait::One && nothing_yet { self.wait_count() } else { 0 };
            self.enter(least, None)?;
        }
        self.collect(done)?;
        if wait == Wait::Poll && done.len() == before {
            // The kernel may defer completions, and requests may still be queued.
            self.enter(0, None)?;
            self.get_events();
            return self.collect(done);
        }
        while done.len() == before && self.in_flight > 0 {
            let left = match wait {
                Wait::Poll => return Ok(()),
                Wait::One => None,
                Wait::Until(time) => match time.saturating_sub(self.now()) {
                    Nanos::ZERO => return Ok(()),
                    // The kernel wakes the thread too late, so the last part is polled.
                    left => Some(Duration::from_nanos(left.saturating_sub(SPIN).get())),
                },
            };
            let least = if wait == Wait::One { self.wait_count() } else { 1 };
            self.enter(least, left)?;
            self.collect(done)?;
        }
        if let Wait::Until(time) = wait
            && done.len() == before
        {
            self.clock.sleep_until(time);
        }
        Ok(())
    }
}

impl fmt::Debug for UringDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringDevice")
            .field("target", &self.target)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl Drop for UringDevice {
    /// Waits for requests in flight, because the drive would write to freed memory.
    fn drop(&mut self) {
        if self.drain().is_err() {
            // The ring has failed: leak the memory rather than reuse it.
            self.buffers.leak();
        }
        // The kernel frees a ring some time after it was closed. Until then the ring would keep the
        // file open, with its lock, exclusive access and mount, and locked memory. Errors are
        // ignored.
        let _ = self.ring.submitter().unregister_files();
        if self.sqe_options.registered_buffers {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ssdlab_device::{Device, Lba, Op, Request, Wait};

    use crate::slot::Slot;
    use crate::{OpenOptions, UringDevice};

    /// Reads two sectors, the first of which counts as transferred before.
    fn read_second_sector(registered_buffers: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let bytes: Vec<u8> = (0..4096_u32).map(|i| (i * i / 7) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        // Buffered: the folder for temporary files may be in memory.
        let options = OpenOptions {
            direct: false,
            queue_depth: 3,
            request_bytes_max: 4096,
            registered_buffers: Some(registered_buffers),
            ..Default::default()
        };
        let mut device = UringDevice::open(&path, &options).unwrap();
        let index = device.buffers.acquire().unwrap();
        let request = Request::new(9, Op::Read, Lba::new(1), 2);
        device.slots[index] = Slot::new(request);
        device.slots[index].transferred = 512;
        device.push(index);
        device.in_flight += 1;
        let mut done = Vec::new();
        device.reap(Wait::One, &mut done).unwrap();
        assert_eq!(done[0].outcome, Ok(()));
        let read = device.buffers.bytes(index, 4096);
        let zeros = |part: &[u8]| part.iter().all(|&byte| byte == 0);
        assert!(zeros(&read[..512]), "a transferred sector is not read again");
        assert_eq!(read[512..1024], bytes[1024..1536], "the rest follows it");
        assert!(zeros(&read[1024..]), "nothing is read beyond");
    }

    #[test]
    fn the_rest_of_a_short_read_is_read_to_its_offset() {
        read_second_sector(false);
        read_second_sector(true);
    }
}
