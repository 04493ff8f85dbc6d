//! The `Device` contract of a twin: what is in flight, and the clock that moves in `reap`.

use ssdlab_device::{Completion, Device, DeviceError, IoError, LBA_BYTES, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

use super::Ssd;
use crate::ftl::Lpn;

/// How a drive answers writes when it has no flash left for them: EIO, as the kernel would say.
const WORN_OUT: IoError = IoError { errno: 5 };

impl Device for Ssd {
    fn capacity_bytes(&self) -> u64 {
        self.capacity
    }

    fn sector_bytes(&self) -> u64 {
        LBA_BYTES
    }

    fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn announce(&mut self, op: Op, lba: Lba) {
        let unit = lba.get().saturating_mul(LBA_BYTES) >> self.unit_shift;
        if unit < self.capacity >> self.unit_shift {
            self.ftl.announce(Lpn(unit as u32), op == Op::Write);
        }
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        DeviceError::check(&request, self.capacity, LBA_BYTES)?;
        self.submit_timed(request);
        Ok(())
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let next = self.flight.next();
        let until = match wait {
            Wait::Poll => self.now,
            Wait::One => next.unwrap_or(self.now),
            Wait::Until(time) => next.map_or(time, |next| next.min(time)),
        };
        self.now = self.now.max(until);
        let before = done.len();
        self.flight.land(self.now, done);
        if done.len() > before {
            self.idle_since = self.now;
        }
        Ok(())
    }
}

impl Ssd {
    /// Hands over a request that is inside the drive; tells at once how and when it will end.
    ///
    /// # Panics
    /// As `submit`; outside the drive.
    #[inline]
    pub fn submit_timed(&mut self, request: Request) -> Completion {
        assert!(self.flight.len() < self.queue_depth, "more in flight than the queue holds");
        if self.flight.len() == 0 && self.now > self.idle_since {
            self.collect_idle();
        }
        self.array.advance(self.now);
        let changes = matches!(request.op, Op::Write | Op::Trim);
        let (completed, outcome) = if changes && self.ftl.service().read_only {
            (self.now + self.link.write_overhead, Err(WORN_OUT))
        } else {
            (self.start(&request), Ok(()))
        };
        let completion = Completion { id: request.id, submitted: self.now, completed, outcome };
        self.flight.take(completion);
        completion
    }

    /// Lets a stream go on in another superblock, where the drive keeps streams apart; false where
    /// nothing of the open one is used, or all of it.
    pub fn renew_stream(&mut self, stream: u32) -> bool {
        if self.flight.len() == 0 && self.now > self.idle_since {
            self.collect_idle();
            self.idle_since = self.now;
        }
        self.array.advance(self.now);
        self.ftl.renew_stream(stream, self.now, &mut self.array)
    }

    /// Uses the time since the last request was done.
    #[inline(never)]
    fn collect_idle(&mut self) {
        self.ftl.collect_idle(self.idle_since, self.now, &mut self.array);
    }
}
