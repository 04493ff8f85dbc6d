//! `Slot`: a request in flight, and what becomes of it when the kernel answers.

use ssdlab_device::{IoError, Op, Request};
use ssdlab_time::Nanos;

/// How often one request is handed over again that the kernel asks to repeat.
const REPEATS_MAX: u32 = 100;

/// What is known of the request in a slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub request: Request,
    pub submitted: Nanos,
    /// Bytes moved so far.
    pub moved: u64,
    /// How often the kernel asked to repeat it.
    repeats: u32,
}

/// What becomes of a request after the kernel answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is over.
    Done(Result<(), IoError>),
    /// The rest, or all of it, is handed over again.
    Again,
}

impl Slot {
    /// Nothing of the request is done yet.
    pub const fn new(request: Request) -> Self {
        Self { request, submitted: Nanos::ZERO, moved: 0, repeats: 0 }
    }

    /// Takes the kernel's answer: a count of bytes, or a negative error number.
    pub fn answer(&mut self, result: i32, sector: u64) -> Step {
        let failed = |errno| Step::Done(Err(IoError { errno }));
        match result {
            // The kernel may ask for a repeat; a device that always does must not hang us.
            result if result == -libc::EAGAIN || result == -libc::EINTR => {
                self.repeats += 1;
                if self.repeats > REPEATS_MAX { failed(-result) } else { Step::Again }
            }
            ..0 => failed(-result),
            _ if matches!(self.request.op, Op::Trim | Op::Flush) => Step::Done(Ok(())),
            count => {
                let count = u64::from(count.unsigned_abs());
                self.moved += count;
                if self.moved >= self.request.bytes() {
                    Step::Done(Ok(()))
                } else if count == 0 || !count.is_multiple_of(sector) {
                    // Part of a sector, or nothing: the file has become shorter.
                    failed(libc::EIO)
                } else {
                    Step::Again
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{IoError, Lba, Op, Request};

    use super::{REPEATS_MAX, Slot, Step};

    const SECTOR: u64 = 512;
    const FAILED: Step = Step::Done(Err(IoError { errno: libc::EIO }));

    /// A slot with a request of eight sectors.
    fn slot(op: Op) -> Slot {
        Slot::new(Request::new(0, op, Lba::new(8), 8))
    }

    #[test]
    fn a_short_transfer_is_continued_until_all_is_moved() {
        let mut slot = slot(Op::Write);
        assert_eq!(slot.answer(1024, SECTOR), Step::Again);
        assert_eq!(slot.answer(2048, SECTOR), Step::Again);
        assert_eq!(slot.moved, 3072);
        assert_eq!(slot.answer(1024, SECTOR), Step::Done(Ok(())));
    }

    #[test]
    fn a_transfer_that_gets_nowhere_fails() {
        assert_eq!(slot(Op::Read).answer(0, SECTOR), FAILED);
        assert_eq!(slot(Op::Read).answer(700, SECTOR), FAILED);
        assert_eq!(slot(Op::Read).answer(-libc::EIO, SECTOR), FAILED);
    }

    #[test]
    fn trims_and_flushes_move_no_bytes() {
        assert_eq!(slot(Op::Trim).answer(0, SECTOR), Step::Done(Ok(())));
        assert_eq!(slot(Op::Flush).answer(0, SECTOR), Step::Done(Ok(())));
        assert_eq!(slot(Op::Flush).answer(-libc::EIO, SECTOR), FAILED);
    }

    #[test]
    fn a_device_that_always_asks_for_a_repeat_fails_in_the_end() {
        for errno in [libc::EAGAIN, libc::EINTR] {
            let mut slot = slot(Op::Read);
            for _ in 0..REPEATS_MAX {
                assert_eq!(slot.answer(-errno, SECTOR), Step::Again);
            }
            assert_eq!(slot.answer(-errno, SECTOR), Step::Done(Err(IoError { errno })));
        }
    }
}
