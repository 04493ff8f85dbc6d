//! `Requests`: a job's requests in order, drawn a little ahead so that a device can be told.

use ssdlab_device::{Device, LBA_BYTES, Lba, Op, Request};

use crate::mix::{Ops, Sizes};
use crate::{Ground, Job, Pattern, Sync};

/// How many requests ahead a device is told of.
const ANNOUNCED: usize = 4;

/// The job's requests, in order.
pub struct Requests {
    ops: Ops,
    /// None for a flush.
    places: Option<(Pattern, Sizes)>,
    durable: bool,
    /// Bytes after which none is drawn.
    amount: u64,
    bytes_drawn: u64,
    bytes_issued: u64,
    /// Drawn and announced, but not issued: number `n` of the job has place `n % ANNOUNCED`.
    ahead: [(Op, Lba, u32); ANNOUNCED],
    drawn: usize,
    issued: usize,
}

impl Requests {
    /// All of a job that was checked.
    pub fn new(job: &Job) -> Self {
        let places = (job.op != Op::Flush).then(|| {
            let sizes = Sizes::new(job);
            let (grain, longest) = (sizes.grain(), sizes.longest());
            let ground = Ground { region: job.region(), grain, longest };
            (Pattern::new(&job.pattern, ground, job.seed), sizes)
        });
        Self {
            ops: Ops::new(job),
            amount: if places.is_some() { job.amount().unwrap_or(u64::MAX) } else { 1 },
            places,
            durable: job.sync == Sync::Durable,
            bytes_drawn: 0,
            bytes_issued: 0,
            ahead: [(job.op, Lba::new(0), 0); ANNOUNCED],
            drawn: 0,
            issued: 0,
        }
    }

    /// Whether the amount is not reached.
    #[inline]
    pub fn more(&self) -> bool {
        self.bytes_issued < self.amount
    }

    /// The next one; there are more.
    #[inline]
    pub fn next(&mut self, id: u64, device: &mut impl Device) -> Request {
        let Some((pattern, sizes)) = &mut self.places else {
            self.bytes_issued = self.amount;
            return Request::flush(id);
        };
        while self.drawn < self.issued + ANNOUNCED && self.bytes_drawn < self.amount {
            let (op, blocks) = (self.ops.draw(), sizes.draw());
            let lba = pattern.next(u64::from(blocks));
            device.announce(op, lba);
            self.bytes_drawn += u64::from(blocks) * LBA_BYTES;
            self.ahead[self.drawn % ANNOUNCED] = (op, lba, blocks);
            self.drawn += 1;
        }
        assert!(self.issued < self.drawn, "some were drawn");
        let (op, lba, blocks) = self.ahead[self.issued % ANNOUNCED];
        self.issued += 1;
        self.bytes_issued += u64::from(blocks) * LBA_BYTES;
        Request { id, op, lba, blocks, durable: self.durable && op == Op::Write }
    }
}
