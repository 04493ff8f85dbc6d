//! `UringDevice`: the `Device` contract kept by an `io_uring`, one system call a request.

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
use crate::entry::{Manner, entry};
use crate::slot::{Slot, Step};
use crate::target::Target;
use crate::{OpenError, OpenOptions, setup};

/// The longest wait handed to the kernel: added to the time since boot it must not overflow.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// In batches one in so many of the requests in flight is waited for at least.
const BATCH_PART: usize = 4;

/// A file or block device, past the page cache, in real time.
///
/// Reads discard what they read. Writes carry content that neither compresses nor repeats. A trim
/// is `fallocate` with `PUNCH_HOLE | KEEP_SIZE`: a hole in a file, and on a block device the kernel
/// sends WRITE ZEROES with leave to unmap. A flush is a whole `fsync`, which reaches the drive's
/// cache.
///
/// A request goes to the kernel with the next call of `submit` or `reap`: so one system call hands
/// it over and waits. Writes go at once, and the next one's content is made meanwhile. With `batch`
/// all wait for `reap`. `submitted` is stamped when the request is put, after its content was made,
/// and `completed` right after it was reaped: all that are reaped together have one stamp.
pub struct UringDevice {
    ring: IoUring,
    /// Freed after `ring`, and never while a request is in flight: see `drop`.
    buffers: Buffers,
    target: Target,
    slots: Vec<Slot>,
    /// Requests that the ring has and that were not reaped.
    in_flight: usize,
    clock: Clock,
    request_bytes_max: u64,
    manner: Manner,
    batch: bool,
    /// Whose ring it is, where it is one thread's.
    owner: Option<ThreadId>,
}

impl UringDevice {
    /// Opens an existing file or block device. Its capacity is its length, in whole sectors.
    ///
    /// # Errors
    /// Where it cannot be measured; never a silent fall-back to buffered I/O.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(Target::open(path.as_ref(), options)?, Clock::start(), options)
    }

    /// Takes a file that the caller opened, and may have locked, with the flags the options imply:
    /// `O_DIRECT` if `direct`, `O_RDWR` if `writable`. `exclusive` was the caller's matter.
    ///
    /// # Errors
    /// Where a flag is missing, or it cannot be measured.
    pub fn from_file(file: File, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(Target::from_file(file, options)?, Clock::start(), options)
    }

    /// Another ring on the same open file, with this one's clock and content of its own.
    ///
    /// # Errors
    /// Where the system has no room for one more.
    pub fn sibling(&self, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(self.target.again()?, self.clock, options)
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
            request_bytes_max: options.request_bytes_max as u64,
            manner: Manner { registered_buffers: false, flush: options.flush },
            batch: options.batch,
            owner: options.single_issuer.then(|| thread::current().id()),
        };
        if options.registered_buffers != Some(false) {
            // SAFETY: `drop` waits for all requests before the buffers are freed.
            let registered = unsafe { setup::register(&device.ring, &device.buffers) };
            device.manner.registered_buffers = registered.is_ok();
            if options.registered_buffers.is_some() {
                registered?;
            }
        }
        Ok(device)
    }

    /// Whether its buffers are pinned once, instead of for each request.
    pub fn registered_buffers(&self) -> bool {
        self.manner.registered_buffers
    }

    /// Puts the slot's request where the kernel finds it at the next system call.
    fn push(&mut self, slot: usize) {
        let entry = entry(slot, &self.slots[slot], &self.buffers, self.manner);
        // SAFETY: the file is registered, the buffer belongs to this slot alone until its
        // completion was reaped, and both outlive the ring's last request: see `drop`.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There is an entry for each slot, and each slot has one request at most.
        pushed.expect("the ring has an entry for each slot");
    }

    /// Makes the ring anew if it is another thread's and has nothing to do any more.
    fn adopt(&mut self) -> Result<(), DeviceError> {
        let thread = thread::current().id();
        if self.in_flight > 0 || self.owner.is_none_or(|owner| owner == thread) {
            return Ok(());
        }
        let failed = |error: OpenError| DeviceError::System {
            what: "a ring for another thread",
            source: std::io::Error::other(error),
        };
        let file = self.target.file.as_raw_fd();
        let ring = setup::ring(self.slots.len(), file, true).map_err(failed)?;
        if self.manner.registered_buffers {
            // Else they are locked memory twice, until the kernel has taken the old ring apart.
            let _ = self.ring.submitter().unregister_buffers();
            // SAFETY: `drop` waits for all requests before the buffers are freed.
            unsafe { setup::register(&ring, &self.buffers) }.map_err(failed)?;
        }
        let _ = self.ring.submitter().unregister_files();
        (self.ring, self.owner) = (ring, Some(thread));
        Ok(())
    }

    /// Lets the kernel put down the completions that it keeps for this thread.
    fn look(&self) {
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no pointer is passed. It submits nothing: an error leaves it at that.
        let _ = unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, flags, None) };
    }

    /// Whether a request waits for the next system call.
    fn has_pushed(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    /// How many completions are worth waking up for: one, or in batches a part of those in flight.
    fn share(&self) -> usize {
        if self.batch { self.in_flight.div_ceil(BATCH_PART) } else { 1 }
    }

    /// Hands over what was pushed, and waits for `want` completions, or until `left` has passed.
    ///
    /// An answer that means "not now" is no error: what was not taken stays in the ring and goes
    /// along with the next call.
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
                // Out of memory for requests. A call that submits in vain does not look for
                // completions, so that those in flight would never make room: one that submits
                // nothing does.
                thread::yield_now();
                self.look();
                Ok(())
            }
            Err((_, source)) => Err(DeviceError::System { what: "io_uring_enter", source }),
        }
    }

    /// Appends what the kernel has answered, and hands over again what is not all done.
    fn collect(&mut self, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let mut again = Vec::new();
        let answers = self.ring.completion();
        if answers.is_empty() {
            return Ok(());
        }
        // The iterator shows what was there before this stamp, and nothing that came later.
        let completed = self.clock.now();
        for answer in answers {
            let index = answer.user_data() as usize;
            let slot = &mut self.slots[index];
            match slot.answer(answer.result(), self.target.sector) {
                Step::Again => again.push(index),
                Step::Done(outcome) => {
                    let Slot { request, submitted, .. } = *slot;
                    self.buffers.give_back(index);
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

    /// Waits for all that is in flight and forgets it.
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
        self.request_bytes_max
    }

    fn queue_depth(&self) -> usize {
        self.slots.len()
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.target.check(&request, self.request_bytes_max)?;
        if self.in_flight == 0 {
            self.adopt()?;
        }
        if !self.batch && self.has_pushed() {
            self.enter(0, None)?;
        }
        let slot = self.buffers.take().expect("no more than queue_depth requests in flight");
        if request.op == Op::Write {
            self.buffers.load(slot, request.lba.bytes(), request.bytes() as usize);
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
            let least = if wait == Wait::One && nothing_yet { self.share() } else { 0 };
            self.enter(least, None)?;
        }
        self.collect(done)?;
        if wait == Wait::Poll && done.len() == before {
            // The kernel may hold back completions, and requests may still be in the ring.
            self.enter(0, None)?;
            self.look();
            return self.collect(done);
        }
        while done.len() == before && self.in_flight > 0 {
            let left = match wait {
                Wait::Poll => return Ok(()),
                Wait::One => None,
                Wait::Until(time) => match time.saturating_sub(self.now()) {
                    Nanos::ZERO => return Ok(()),
                    // The kernel wakes a little too late: the last part is spent looking.
                    left => Some(Duration::from_nanos(left.saturating_sub(SPIN).get())),
                },
            };
            let least = if wait == Wait::One { self.share() } else { 1 };
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
    /// Waits for what is in flight: the drive would else write into memory that is used anew.
    fn drop(&mut self) {
        if self.drain().is_err() {
            // A ring that cannot be asked any more: lose the memory rather than share it.
            self.buffers.leak();
        }
        // The kernel takes a ring apart some time after it was closed. Until then the ring would
        // hold the file: its lock, its exclusive access, its mount; and locked memory. An error
        // leaves it at that.
        let _ = self.ring.submitter().unregister_files();
        if self.manner.registered_buffers {
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

    /// Reads two sectors, the first of them as if it had been moved before.
    fn read_second_sector(registered_buffers: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let bytes: Vec<u8> = (0..4096_u32).map(|i| (i * i / 7) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        // Buffered: the system's directory for such files may be in memory.
        let options = OpenOptions {
            direct: false,
            queue_depth: 3,
            request_bytes_max: 4096,
            registered_buffers: Some(registered_buffers),
            ..Default::default()
        };
        let mut device = UringDevice::open(&path, &options).unwrap();
        let index = device.buffers.take().unwrap();
        let request = Request::new(9, Op::Read, Lba::new(1), 2);
        device.slots[index] = Slot::new(request);
        device.slots[index].moved = 512;
        device.push(index);
        device.in_flight += 1;
        let mut done = Vec::new();
        device.reap(Wait::One, &mut done).unwrap();
        assert_eq!(done[0].outcome, Ok(()));
        let read = device.buffers.bytes(index, 4096);
        assert!(read[..512].iter().all(|&byte| byte == 0), "what was moved is not read again");
        assert_eq!(read[512..1024], bytes[1024..1536], "the rest goes behind it");
        assert!(read[1024..].iter().all(|&byte| byte == 0), "and no further");
    }

    #[test]
    fn the_rest_of_a_short_read_is_read_to_its_place() {
        read_second_sector(false);
        read_second_sector(true);
    }
}
