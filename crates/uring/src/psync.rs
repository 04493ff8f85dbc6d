//! `SyncDevice`: a `Device` that uses one pread or pwrite at a time.

use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, ReadWriteFlags};
use ssdlab_device::{Completion, Device, DeviceError, IoError, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::slot::{Slot, Step};
use crate::target::{Flush, Target};
use crate::{OpenError, OpenOptions};

/// A file or block device without `io_uring`, one request at a time.
///
/// Users choose it by name; it is never a fallback. `submit` executes the request, and `reap`
/// returns its completion.
#[derive(Debug)]
pub struct SyncDevice {
    target: Target,
    buffers: Buffers,
    clock: Clock,
    flush: Flush,
    done: Option<Completion>,
}

impl SyncDevice {
    /// Opens an existing file or block device. The queue depth is always 1; `batch` and
    /// `registered_buffers` are ignored.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenError> {
        let options = OpenOptions { queue_depth: 1, ..options.clone() };
        let target = Target::open(path.as_ref(), &options)?;
        Self::new(target, Clock::start(), &options)
    }

    /// Another device on the same open file, with the same clock and its own content.
    pub fn sibling(&self, options: &OpenOptions) -> Result<Self, OpenError> {
        let options = OpenOptions { queue_depth: 1, ..options.clone() };
        Self::new(self.target.try_clone(&options)?, self.clock, &options)
    }

    fn new(target: Target, clock: Clock, options: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self {
            buffers: Buffers::new(options, target.memory_align)?,
            target,
            clock,
            flush: options.flush,
            done: None,
        })
    }

    /// One system call; returns the number of bytes or a negative error number, like `io_uring`.
    fn call(&mut self, slot: &Slot) -> i32 {
        let Slot { request, transferred, .. } = *slot;
        let (file, offset) = (&self.target.file, request.lba.bytes() + transferred);
        let range = transferred as usize..request.bytes() as usize;
        let answer = match request.op {
            Op::Read => {
                let buffer = self.buffers.bytes(Buffers::read_index(0), request.bytes() as usize);
                rustix::io::pread(file, &mut buffer[range], offset)
            }
            Op::Write => {
                let index = self.buffers.write_index(0);
                let buffer = &self.buffers.bytes(index, request.bytes() as usize)[range];
                if request.durable {
                    let slices = [std::io::IoSlice::new(buffer)];
                    rustix::io::pwritev2(file, &slices, offset, ReadWriteFlags::DSYNC)
                } else {
                    rustix::io::pwrite(file, buffer, offset)
                }
            }
            Op::Trim => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(file, hole, offset, request.bytes()).map(|()| 0)
            }
            Op::Flush => match self.flush {
                Flush::Fsync => rustix::fs::fsync(file),
                Flush::Fdatasync => rustix::fs::fdatasync(file),
            }
            .map(|()| 0),
        };
        answer.map_or_else(
            |errno: Errno| -errno.raw_os_error(),
            |count| i32::try_from(count).expect("requests are at most 1 GiB"),
        )
    }
}

impl Device for SyncDevice {
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
        1
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.target.check(&request)?;
        assert!(self.done.is_none(), "at most one request is in flight");
        if request.op == Op::Write {
            self.buffers.fill_for_write(0, request.lba.bytes(), request.bytes() as usize);
        }
        let mut slot = Slot::new(request);
        let submitted = self.clock.now();
        let outcome: Result<(), IoError> = loop {
            let answer = self.call(&slot);
            if let Step::Done(outcome) = slot.handle_result(answer, self.target.sector) {
                break outcome;
            }
        };
        let completed = self.clock.now();
        self.done = Some(Completion { id: request.id, submitted, completed, outcome });
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if let Some(completion) = self.done.take() {
            done.push(completion);
        } else if let Wait::Until(time) = wait {
            self.clock.sleep_until(time);
        }
        Ok(())
    }
}
