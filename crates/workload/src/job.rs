//! `Job`: a stream of requests, described by its parameters.

use serde::Deserialize;
use ssdlab_device::{Hint, Lba, Op, Region};
use ssdlab_time::Nanos;

use crate::PatternKind;
use crate::trace::Replay;

/// When a job's requests arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// When another request completes: `queue_depth` requests are always outstanding.
    #[default]
    Closed,
    /// At times independent of the device: an open loop. A request that arrives while `queue_depth`
    /// are outstanding waits, and its latency counts from its arrival.
    Rate {
        /// Requests per second.
        per_s: f64,
        /// As a Poisson process instead of at equal intervals.
        #[serde(default)]
        poisson: bool,
    },
}

/// One job: a stream of requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The operation of the requests that the shares below leave. A flush is one request, for which
    /// the address fields are ignored.
    pub op: Op,
    /// The share of requests that are reads instead, 0 to 1.
    #[serde(default)]
    pub read_share: f64,
    /// The share of requests that are trims instead, 0 to 1.
    #[serde(default)]
    pub trim_share: f64,
    /// The order in which blocks are visited.
    #[serde(default)]
    pub pattern: PatternKind,
    /// First byte of the region of the device that is used.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Length of that region in bytes.
    #[serde(default)]
    pub length_bytes: u64,
    /// Length of each request in bytes.
    #[serde(default)]
    pub block_bytes: u64,
    /// Instead of `block_bytes`: lengths in bytes, each with its weight.
    #[serde(default)]
    pub block_mix: Vec<(u64, f64)>,
    /// Total bytes of all requests, rounded up to whole blocks; 0 if `seconds` is the limit.
    #[serde(default)]
    pub amount_bytes: u64,
    /// Time limit on the device's clock: no request starts later. The amount may end the job
    /// earlier.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The arrival process.
    #[serde(default)]
    pub arrival: Arrival,
    /// The number of outstanding requests; for an open loop, the maximum.
    #[serde(default = "one")]
    pub queue_depth: usize,
    /// How writes are made durable.
    #[serde(default)]
    pub sync: Sync,
    /// Hints of the writes. Drives without support ignore them; real drives never receive them.
    #[serde(default)]
    pub hint: HintKind,
    /// The number of queues that run the job in parallel, each with the full depth, its own seed,
    /// and an equal part of the amount and the rate. Each has its own part of the region if
    /// `pattern` is `sequential` or `random_once`, and the whole region otherwise.
    #[serde(default = "one")]
    pub threads: usize,
    /// A trace that determines the requests and their times. Of the other fields only the region,
    /// `queue_depth` and `interval_us` are used.
    #[serde(default)]
    pub replay: Option<Replay>,
    /// The seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Length of the intervals of the record, in microseconds.
    #[serde(default = "tenth_of_a_second")]
    pub interval_us: u64,
}

/// How the writes of a job are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sync {
    /// No flushes.
    #[default]
    None,
    /// A flush after every `every` completed writes, as a database commits. It counts towards the
    /// queue depth like any request.
    Flush {
        /// Writes per flush, 1 or more.
        every: u64,
    },
    /// Each write is durable: FUA, or `RWF_DSYNC` on a file.
    Durable,
}

/// The hints that a job's writes give the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HintKind {
    /// No hints.
    #[default]
    None,
    /// The job appends to one file, which may be fragmented: each write names the end of the write
    /// before it. The first write has no hint.
    Append,
    /// Each write replaces content of a file in place.
    Overwrite,
    /// All writes belong to one stream, whose data is expected to be invalidated together.
    Stream {
        /// The stream's number, 0 to 255. A drive may support fewer.
        number: u32,
    },
}

impl HintKind {
    /// The hint of a write, given the last block of the previous write.
    #[inline]
    pub fn of_write_after(self, last: Option<Lba>) -> Hint {
        match self {
            Self::None => Hint::None,
            Self::Append => last.map_or(Hint::None, Hint::AppendAfter),
            Self::Overwrite => Hint::Overwrite,
            Self::Stream { number } => Hint::Stream(number as u8),
        }
    }
}

fn one() -> usize {
    1
}

fn tenth_of_a_second() -> u64 {
    100_000
}

impl Job {
    /// A job without requests: closed loop at depth 1, intervals of 100 ms, seed 0.
    pub fn new(op: Op) -> Self {
        Self {
            op,
            read_share: 0.0,
            trim_share: 0.0,
            pattern: PatternKind::Sequential,
            offset_bytes: 0,
            length_bytes: 0,
            block_bytes: 0,
            block_mix: Vec::new(),
            amount_bytes: 0,
            seconds: None,
            arrival: Arrival::Closed,
            queue_depth: 1,
            sync: Sync::None,
            hint: HintKind::None,
            threads: 1,
            replay: None,
            seed: 0,
            interval_us: 100_000,
        }
    }

    /// The request lengths in bytes, with their weights.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, f64)> {
        let only = self.block_mix.is_empty().then_some((self.block_bytes, 1.0));
        only.into_iter().chain(self.block_mix.iter().copied())
    }

    /// The maximum request length in bytes.
    pub(crate) fn longest_bytes(&self) -> u64 {
        self.sizes().map(|(bytes, _)| bytes).max().expect("a job has a size")
    }

    /// The number of requests of the amount, without the flushes of `sync`: the expected number if
    /// lengths are mixed, and `u64::MAX` if only `seconds` limits the job.
    pub fn requests(&self) -> u64 {
        if let Some(replay) = &self.replay {
            return replay.requests;
        }
        if self.op == Op::Flush {
            return 1;
        }
        let Some(amount) = self.amount() else { return u64::MAX };
        if self.block_mix.is_empty() {
            return amount.div_ceil(self.block_bytes);
        }
        let weights: f64 = self.sizes().map(|(_, weight)| weight).sum();
        let mean = self.sizes().map(|(bytes, weight)| bytes as f64 * weight).sum::<f64>() / weights;
        (amount as f64 / mean).ceil() as u64
    }

    /// The byte limit, or `None` if only `seconds` limits the job.
    pub fn amount(&self) -> Option<u64> {
        (self.amount_bytes > 0 || self.seconds.is_none()).then_some(self.amount_bytes)
    }

    /// The part of the device that the job visits.
    pub fn region(&self) -> Region {
        let block = if self.block_mix.is_empty() { self.block_bytes } else { 512 };
        Region::from_bytes(self.offset_bytes, self.length_bytes / block * block)
    }

    /// The time from which no request starts, for a job that began at `start`.
    pub fn deadline(&self, start: Nanos) -> Nanos {
        self.seconds.map_or(Nanos::MAX, |seconds| start + Nanos::new((seconds * 1e9) as u64))
    }
}
