//! `Requests`: a job's requests in order, generated in batches so that they can be announced.

use ssdlab_device::{DeviceError, Hint, LBA_BYTES, Lba, Op, Request};
use ssdlab_time::Nanos;

use crate::mix::{OpMix, SizeMix};
use crate::trace::{ReplayArea, TraceRequests};
use crate::{HintKind, Job, ListedHint, ListedRequest, Pattern, PatternArea, PatternKind, Sync};

/// Requests between the announcement of a request and its submission. The first ones of a job are
/// not announced.
const ANNOUNCED: usize = 4;

/// Requests generated at a time, to amortise the cost of a call.
const BATCH: usize = 16;

/// Size of the ring of generated requests: the rest of one batch, and the next one.
const RING: usize = 2 * BATCH;

pub struct Requests {
    /// `None` once all requests were generated.
    source: Option<Source>,
    /// For a trace: when each request of `ahead` is due, relative to the start.
    due: [Nanos; RING],
    /// The error that ended a trace early.
    failure: Option<DeviceError>,
    /// Requests generated but not issued; request number `n` is at index `n % RING`.
    ahead: [Request; RING],
    generated: usize,
    issued: usize,
}

enum Source {
    Generated(Box<Generator>),
    Trace(Box<TraceRequests>),
}

/// Generates requests from the parameters of a job.
#[derive(Clone)]
struct Generator {
    ops: OpMix,
    pattern: Pattern,
    /// If not empty, used instead of pattern, sizes and hint: the requests that the job lists,
    /// repeated from the start after the last one.
    list: Vec<ListedRequest>,
    /// The next request of the list.
    next: usize,
    sizes: SizeMix,
    durable: bool,
    hint: HintKind,
    /// The last block of the previous write.
    written: Option<Lba>,
    /// Bytes of the requests not generated yet.
    bytes_left: u64,
}

impl Requests {
    /// The requests of a checked job, for a device with this sector size.
    pub fn new(job: &Job, sector_bytes: u64) -> Result<Self, DeviceError> {
        let mut requests = Self {
            source: None,
            due: [Nanos::ZERO; RING],
            failure: None,
            ahead: [Request::flush(0); RING],
            generated: 0,
            issued: 0,
        };
        requests.source = match &job.replay {
            Some(replay) => {
                let (offset_bytes, length_bytes) = (job.offset_bytes, job.length_bytes);
                let area = ReplayArea { offset_bytes, length_bytes, sector_bytes };
                Some(Source::Trace(Box::new(TraceRequests::new(replay, area)?)))
            }
            None if job.op == Op::Flush => None,
            None => Some(Source::Generated(Box::new(Generator::new(job)))),
        };
        if requests.source.is_some() {
            requests.refill();
        } else {
            requests.generated = 1;
        }
        Ok(requests)
    }

    /// Requests that continue as these do; `None` for a trace, whose file is read only once, and
    /// after an error.
    pub fn try_clone(&self) -> Option<Self> {
        let source = match &self.source {
            None => None,
            Some(Source::Generated(generator)) => Some(Source::Generated(generator.clone())),
            Some(Source::Trace(_)) => return None,
        };
        let Self { due, ahead, generated, issued, .. } = *self;
        self.failure.is_none().then_some(Self {
            source,
            due,
            failure: None,
            ahead,
            generated,
            issued,
        })
    }

    /// For a trace: when the next request is due, relative to the start.
    pub fn due(&self) -> Nanos {
        self.due[self.issued % RING]
    }

    /// Takes the error that ended a trace early.
    pub fn take_failure(&mut self) -> Option<DeviceError> {
        self.failure.take()
    }

    #[inline]
    pub fn has_more(&self) -> bool {
        self.issued < self.generated
    }

    /// The next request; `has_more` must be true. Announces a later one, if there is one.
    #[inline]
    pub fn next(&mut self, id: u64, announce: impl FnOnce(Op, Lba)) -> Request {
        assert!(self.has_more(), "the caller checks has_more");
        let Request { op, lba, blocks, durable, hint, .. } = self.ahead[self.issued % RING];
        self.issued += 1;
        if self.generated - self.issued < ANNOUNCED {
            self.refill();
        }
        let announced = self.issued - 1 + ANNOUNCED;
        if announced < self.generated {
            let announced = &self.ahead[announced % RING];
            announce(announced.op, announced.lba);
        }
        Request { id, op, lba, blocks, durable, hint }
    }

    #[inline(never)]
    fn refill(&mut self) {
        let Some(source) = &mut self.source else { return };
        let first = self.generated % RING;
        let range = first..first + BATCH;
        let count = match source {
            Source::Generated(generator) => generator.generate(&mut self.ahead[range]),
            Source::Trace(trace) => {
                let (ahead, due) = (&mut self.ahead[range.clone()], &mut self.due[range]);
                read(trace, ahead, due, &mut self.failure)
            }
        };
        self.generated += count;
        if count < BATCH {
            self.source = None;
        }
    }
}

/// Reads requests of a trace up to its end or to an error; returns their number.
fn read(
    trace: &mut TraceRequests,
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

impl Generator {
    fn new(job: &Job) -> Self {
        let sizes = SizeMix::new(job);
        let area = PatternArea {
            region: job.region(),
            granularity: sizes.granularity(),
            longest: sizes.longest(),
        };
        let list = match &job.pattern {
            PatternKind::Listed { list } => list.clone(),
            _ => Vec::new(),
        };
        Self {
            list,
            next: 0,
            ops: OpMix::new(job),
            pattern: Pattern::new(&job.pattern, area, job.seed),
            sizes,
            durable: job.sync == Sync::Durable,
            hint: job.hint,
            written: None,
            bytes_left: job.amount().unwrap_or(u64::MAX),
        }
    }

    /// Generates requests up to the job's amount; returns their number.
    fn generate(&mut self, requests: &mut [Request]) -> usize {
        let (op, blocks) = (self.ops.single(), self.sizes.single());
        let is_listed = !self.list.is_empty();
        let mut count = 0;
        for request in &mut *requests {
            if self.bytes_left == 0 {
                break;
            }
            // Field by field: reading a struct in wider words than it was written in stalls the
            // CPU.
            request.op = op.unwrap_or_else(|| self.ops.draw());
            request.blocks = blocks.unwrap_or_else(|| self.sizes.draw());
            request.durable = self.durable && request.op == Op::Write;
            request.hint = Hint::None;
            if is_listed {
                self.take_listed(request);
            }
            self.bytes_left = self.bytes_left.saturating_sub(request.bytes());
            count += 1;
        }
        if is_listed {
            return count;
        }
        self.pattern.place(&mut requests[..count]);
        if self.hint != HintKind::None {
            self.add_hints(&mut requests[..count]);
        }
        count
    }

    /// Gives a request the address, length and hint of the next one of the list.
    #[inline(never)]
    fn take_listed(&mut self, request: &mut Request) {
        let listed = &self.list[self.next];
        self.next = (self.next + 1) % self.list.len();
        request.lba = Lba::from_bytes(listed.offset_bytes);
        request.blocks = (listed.length_bytes / LBA_BYTES) as u32;
        if listed.hint == ListedHint::Read {
            (request.op, request.durable) = (Op::Read, false);
        }
        if request.op == Op::Write {
            request.hint = listed.hint.into();
        }
    }

    fn add_hints(&mut self, requests: &mut [Request]) {
        for request in requests.iter_mut().filter(|each| each.op == Op::Write) {
            request.hint = self.hint.of_write_after(self.written);
            self.written = Some(request.lba.plus(u64::from(request.blocks) - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{Lba, Op, Request};

    use super::{ANNOUNCED, Requests};
    use crate::Job;

    #[test]
    fn requests_come_in_order_up_to_the_amount_and_are_announced_ahead() {
        for count in [1, 3, 15, 16, 17, 100] {
            let job = Job {
                length_bytes: 1 << 30,
                block_bytes: 4096,
                amount_bytes: count * 4096 - 1,
                ..Job::new(Op::Write)
            };
            let mut requests = Requests::new(&job, 512).unwrap();
            let mut announcements = Vec::new();
            for number in 0..count {
                assert!(requests.has_more());
                let request = requests.next(number, |_, lba| announcements.push(lba));
                assert_eq!((request.id, request.lba), (number, Lba::new(number * 8)));
                let announced = ANNOUNCED as u64..count.min(number + 1 + ANNOUNCED as u64);
                let expected: Vec<_> = announced.map(|n| Lba::new(n * 8)).collect();
                assert_eq!(
                    announcements, expected,
                    "each once, in order, {ANNOUNCED} requests ahead"
                );
            }
            assert!(!requests.has_more());
        }
    }

    #[test]
    fn a_flush_is_one_request_and_is_not_announced() {
        let mut requests = Requests::new(&Job::new(Op::Flush), 512).unwrap();
        let announce = |op, lba| panic!("{op:?} at {lba:?} is announced");
        assert_eq!(requests.next(7, announce), Request::flush(7));
        assert!(!requests.has_more());
    }
}
