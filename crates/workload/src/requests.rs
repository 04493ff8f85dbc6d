//! `Requests`: a job's requests in order, drawn some at a time so that a device can be told.

use ssdlab_device::{Device, DeviceError, Hint, Lba, Op, Request};
use ssdlab_time::Nanos;

use crate::listed::Listing;
use crate::mix::{Ops, Sizes};
use crate::trace::{Replayed, TraceGround};
use crate::{Ground, HintKind, Job, Pattern, PatternKind, Sync};

/// How many requests ahead of its submission a device is told of one; of the first ones it is not.
const ANNOUNCED: usize = 4;

/// How many are drawn at a time: what it takes to begin is divided among them.
const DRAWN: usize = 16;

/// Places for requests that were drawn and not issued: the last ones of one draw and the next.
const PLACES: usize = 2 * DRAWN;

/// The job's requests, in order.
pub struct Requests {
    /// None once nothing more is to be drawn.
    source: Option<Source>,
    /// Of a trace: when each of `ahead` is due after the start.
    due: [Nanos; PLACES],
    /// What ended a trace before its end.
    failure: Option<DeviceError>,
    /// Drawn, but not issued: number `n` of the job has place `n % PLACES`.
    ahead: [Request; PLACES],
    drawn: usize,
    issued: usize,
}

/// Where requests come from.
enum Source {
    Drawn(Box<Drawn>),
    Trace(Box<Replayed>),
}

/// What a job draws its requests by.
struct Drawn {
    ops: Ops,
    pattern: Pattern,
    /// Instead of pattern, sizes and hint, where the job names its requests.
    listing: Option<Listing>,
    sizes: Sizes,
    durable: bool,
    hint: HintKind,
    /// The last block of the write that was drawn last.
    written: Option<Lba>,
    /// Bytes that are still to be drawn.
    bytes_left: u64,
}

impl Requests {
    /// All of a job that was checked, for a device with such sectors.
    ///
    /// # Errors
    /// A trace that cannot be opened.
    pub fn new(job: &Job, sector_bytes: u64) -> Result<Self, DeviceError> {
        let mut requests = Self {
            source: None,
            due: [Nanos::ZERO; PLACES],
            failure: None,
            ahead: [Request::flush(0); PLACES],
            drawn: 0,
            issued: 0,
        };
        requests.source = match &job.replay {
            Some(replay) => {
                let (offset_bytes, length_bytes) = (job.offset_bytes, job.length_bytes);
                let ground = TraceGround { offset_bytes, length_bytes, sector_bytes };
                Some(Source::Trace(Box::new(Replayed::new(replay, ground)?)))
            }
            None if job.op == Op::Flush => None,
            None => Some(Source::Drawn(Box::new(Drawn::new(job)))),
        };
        if requests.source.is_some() {
            requests.draw();
        } else {
            requests.drawn = 1;
        }
        Ok(requests)
    }

    /// Of a trace: when the next request is due after the start.
    pub fn due(&self) -> Nanos {
        self.due[self.issued % PLACES]
    }

    /// What ended a trace before its end, once.
    pub fn take_failure(&mut self) -> Option<DeviceError> {
        self.failure.take()
    }

    /// Whether the amount is not reached.
    #[inline]
    pub fn more(&self) -> bool {
        self.issued < self.drawn
    }

    /// The next one; there are more.
    #[inline]
    pub fn next(&mut self, id: u64, device: &mut impl Device) -> Request {
        assert!(self.more(), "some were drawn");
        let Request { op, lba, blocks, durable, hint, .. } = self.ahead[self.issued % PLACES];
        self.issued += 1;
        if self.drawn - self.issued < ANNOUNCED {
            self.draw();
        }
        let soon = self.issued - 1 + ANNOUNCED;
        if soon < self.drawn {
            let soon = &self.ahead[soon % PLACES];
            device.announce(soon.op, soon.lba);
        }
        Request { id, op, lba, blocks, durable, hint }
    }

    /// Draws some more, up to the amount.
    #[inline(never)]
    fn draw(&mut self) {
        let Some(source) = &mut self.source else { return };
        let first = self.drawn % PLACES;
        let places = first..first + DRAWN;
        let count = match source {
            Source::Drawn(drawn) => drawn.draw(&mut self.ahead[places]),
            Source::Trace(trace) => {
                let (ahead, due) = (&mut self.ahead[places.clone()], &mut self.due[places]);
                read(trace, ahead, due, &mut self.failure)
            }
        };
        self.drawn += count;
        if count < DRAWN {
            self.source = None;
        }
    }
}

/// Reads requests of a trace up to its end, or to what is wrong; returns how many.
fn read(
    trace: &mut Replayed,
    ahead: &mut [Request],
    due: &mut [Nanos],
    failure: &mut Option<DeviceError>,
) -> usize {
    let mut count = 0;
    for (request, due) in ahead.iter_mut().zip(due) {
        match trace.next() {
            Ok(Some(next)) => (*request, *due) = next,
            Ok(None) => break,
            Err(error) => {
                *failure = Some(error);
                break;
            }
        }
        count += 1;
    }
    count
}

impl Drawn {
    fn new(job: &Job) -> Self {
        let sizes = Sizes::new(job);
        let ground =
            Ground { region: job.region(), grain: sizes.grain(), longest: sizes.longest() };
        let listing = match &job.pattern {
            PatternKind::Listed { list } => Some(Listing::new(list)),
            _ => None,
        };
        Self {
            listing,
            ops: Ops::new(job),
            pattern: Pattern::new(&job.pattern, ground, job.seed),
            sizes,
            durable: job.sync == Sync::Durable,
            hint: job.hint,
            written: None,
            bytes_left: job.amount().unwrap_or(u64::MAX),
        }
    }

    /// Draws requests up to the amount; returns how many.
    fn draw(&mut self, requests: &mut [Request]) -> usize {
        let (op, blocks) = (self.ops.only(), self.sizes.only());
        let mut count = 0;
        for request in &mut *requests {
            if self.bytes_left == 0 {
                break;
            }
            // Field by field: a copy is read in wider words than it was written in, and stalls.
            request.op = op.unwrap_or_else(|| self.ops.draw());
            request.blocks = blocks.unwrap_or_else(|| self.sizes.draw());
            request.durable = self.durable && request.op == Op::Write;
            request.hint = Hint::None;
            if let Some(listing) = &mut self.listing {
                listing.place(request);
            }
            self.bytes_left = self.bytes_left.saturating_sub(request.bytes());
            count += 1;
        }
        if self.listing.is_some() {
            return count;
        }
        self.pattern.place(&mut requests[..count]);
        if self.hint != HintKind::None {
            self.say_what_writes_are(&mut requests[..count]);
        }
        count
    }

    fn say_what_writes_are(&mut self, requests: &mut [Request]) {
        for request in requests.iter_mut().filter(|each| each.op == Op::Write) {
            request.hint = self.hint.of_write_after(self.written);
            self.written = Some(request.lba.plus(u64::from(request.blocks) - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{Completion, Device, DeviceError, Lba, Op, Request, Wait};
    use ssdlab_time::Nanos;

    use super::{ANNOUNCED, Requests};
    use crate::Job;

    /// A device that remembers what it was told of.
    struct Listener(Vec<Lba>);

    impl Device for Listener {
        fn capacity_bytes(&self) -> u64 {
            1 << 30
        }

        fn sector_bytes(&self) -> u64 {
            512
        }

        fn queue_depth(&self) -> usize {
            1
        }

        fn now(&self) -> Nanos {
            Nanos::ZERO
        }

        fn announce(&mut self, _op: Op, lba: Lba) {
            self.0.push(lba);
        }

        fn submit(&mut self, _request: Request) -> Result<(), DeviceError> {
            Ok(())
        }

        fn reap(&mut self, _wait: Wait, _done: &mut Vec<Completion>) -> Result<(), DeviceError> {
            Ok(())
        }
    }

    #[test]
    fn requests_come_in_order_to_the_amount_and_are_announced_ahead() {
        for count in [1, 3, 15, 16, 17, 100] {
            let size = (1 << 30, 4096, count * 4096 - 1);
            let (length_bytes, block_bytes, amount_bytes) = size;
            let job = Job { length_bytes, block_bytes, amount_bytes, ..Job::new(Op::Write) };
            let mut requests = Requests::new(&job, 512).unwrap();
            let mut device = Listener(Vec::new());
            for number in 0..count {
                assert!(requests.more());
                let request = requests.next(number, &mut device);
                assert_eq!((request.id, request.lba), (number, Lba::new(number * 8)));
                let told = ANNOUNCED as u64..count.min(number + 1 + ANNOUNCED as u64);
                let expected: Vec<_> = told.map(|n| Lba::new(n * 8)).collect();
                assert_eq!(device.0, expected, "each once, in order, and {ANNOUNCED} ahead");
            }
            assert!(!requests.more());
        }
    }

    #[test]
    fn a_flush_is_one_request_and_has_no_address_to_announce() {
        let mut requests = Requests::new(&Job::new(Op::Flush), 512).unwrap();
        let mut device = Listener(Vec::new());
        assert_eq!(requests.next(7, &mut device), Request::flush(7));
        assert!(!requests.more() && device.0.is_empty());
    }
}
