//! `Slot`: a request in flight, its submission queue entry (SQE), and its result.

use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{opcode, squeue};
use ssdlab_device::{IoError, Op, Request};
use ssdlab_time::Nanos;

use crate::buffers::Buffers;
use crate::target::Flush;

/// Maximum number of retries of one request after EAGAIN or EINTR.
const RETRIES_MAX: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub request: Request,
    pub submitted: Nanos,
    /// Bytes transferred so far.
    pub transferred: u64,
    /// Retries after EAGAIN or EINTR.
    retries: u32,
}

/// What to do after a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Done(Result<(), IoError>),
    /// Submit the rest of the request again.
    Resubmit,
}

impl Slot {
    /// A request of which nothing is transferred yet.
    pub const fn new(request: Request) -> Self {
        Self { request, submitted: Nanos::ZERO, transferred: 0, retries: 0 }
    }

    /// Handles a result from the kernel: a number of bytes, or a negative error number.
    pub fn handle_result(&mut self, result: i32, sector: u64) -> Step {
        let failed = |errno| Step::Done(Err(IoError { errno }));
        match result {
            // A device that always returns these must not cause an endless loop.
            result if result == -libc::EAGAIN || result == -libc::EINTR => {
                self.retries += 1;
                if self.retries > RETRIES_MAX { failed(-result) } else { Step::Resubmit }
            }
            ..0 => failed(-result),
            _ if matches!(self.request.op, Op::Trim | Op::Flush) => Step::Done(Ok(())),
            count => {
                let count = u64::from(count.unsigned_abs());
                self.transferred += count;
                if self.transferred >= self.request.bytes() {
                    Step::Done(Ok(()))
                } else if count == 0 || !count.is_multiple_of(sector) {
                    // Part of a sector, or nothing: the file was truncated.
                    failed(libc::EIO)
                } else {
                    Step::Resubmit
                }
            }
        }
    }
}

/// The registered file.
const FILE: Fixed = Fixed(0);

#[derive(Clone, Copy, Debug)]
pub struct SqeOptions {
    pub registered_buffers: bool,
    pub flush: Flush,
}

/// An entry for the part of the slot's request that is not transferred yet.
pub fn sqe(index: usize, slot: &Slot, buffers: &Buffers, sqe_options: SqeOptions) -> squeue::Entry {
    let Slot { request, transferred, .. } = *slot;
    let offset = request.lba.bytes() + transferred;
    let length = (request.bytes() - transferred) as u32;
    let flags = if request.durable { libc::RWF_DSYNC } else { 0 };
    let buffer = match request.op {
        Op::Write => buffers.write_index(index),
        Op::Read | Op::Trim | Op::Flush => Buffers::read_index(index),
    };
    let start = buffers.start(buffer).wrapping_add(transferred as usize);
    let sqe = match (request.op, sqe_options.registered_buffers) {
        (Op::Read, false) => opcode::Read::new(FILE, start, length).offset(offset).build(),
        (Op::Read, true) => {
            opcode::ReadFixed::new(FILE, start, length, buffer as u16).offset(offset).build()
        }
        (Op::Write, false) => {
            opcode::Write::new(FILE, start, length).offset(offset).rw_flags(flags).build()
        }
        (Op::Write, true) => opcode::WriteFixed::new(FILE, start, length, buffer as u16)
            .offset(offset)
            .rw_flags(flags)
            .build(),
        (Op::Trim, _) => opcode::Fallocate::new(FILE, request.bytes())
            .offset(offset)
            .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            .build(),
        (Op::Flush, _) => {
            let flags = match sqe_options.flush {
                Flush::Fsync => FsyncFlags::empty(),
                Flush::Fdatasync => FsyncFlags::DATASYNC,
            };
            opcode::Fsync::new(FILE).flags(flags).build()
        }
    };
    sqe.user_data(index as u64)
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{IoError, Lba, Op, Request};

    use super::{RETRIES_MAX, Slot, Step};

    const SECTOR: u64 = 512;
    const FAILED: Step = Step::Done(Err(IoError { errno: libc::EIO }));

    /// A slot with a request of eight sectors.
    fn slot(op: Op) -> Slot {
        Slot::new(Request::new(0, op, Lba::new(8), 8))
    }

    #[test]
    fn a_short_transfer_is_continued_until_all_bytes_are_transferred() {
        let mut slot = slot(Op::Write);
        assert_eq!(slot.handle_result(1024, SECTOR), Step::Resubmit);
        assert_eq!(slot.handle_result(2048, SECTOR), Step::Resubmit);
        assert_eq!(slot.transferred, 3072);
        assert_eq!(slot.handle_result(1024, SECTOR), Step::Done(Ok(())));
    }

    #[test]
    fn a_transfer_without_progress_fails() {
        assert_eq!(slot(Op::Read).handle_result(0, SECTOR), FAILED);
        assert_eq!(slot(Op::Read).handle_result(700, SECTOR), FAILED);
        assert_eq!(slot(Op::Read).handle_result(-libc::EIO, SECTOR), FAILED);
    }

    #[test]
    fn trims_and_flushes_transfer_no_bytes() {
        assert_eq!(slot(Op::Trim).handle_result(0, SECTOR), Step::Done(Ok(())));
        assert_eq!(slot(Op::Flush).handle_result(0, SECTOR), Step::Done(Ok(())));
        assert_eq!(slot(Op::Flush).handle_result(-libc::EIO, SECTOR), FAILED);
    }

    #[test]
    fn the_number_of_retries_is_limited() {
        for errno in [libc::EAGAIN, libc::EINTR] {
            let mut slot = slot(Op::Read);
            for _ in 0..RETRIES_MAX {
                assert_eq!(slot.handle_result(-errno, SECTOR), Step::Resubmit);
            }
            assert_eq!(slot.handle_result(-errno, SECTOR), Step::Done(Err(IoError { errno })));
        }
    }
}
