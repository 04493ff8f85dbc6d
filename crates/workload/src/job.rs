//! `Job`: what to ask of a device.

use serde::Deserialize;
use ssdlab_device::{Hint, Lba, Op, Region};
use ssdlab_time::Nanos;

use crate::PatternKind;
use crate::trace::Replay;

/// When a job's requests arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// As soon as one before it has ended: `queue_depth` are outstanding all the time.
    #[default]
    Closed,
    /// At times that the device does not change: an open loop. What finds `queue_depth` requests
    /// outstanding waits, and its latency counts from the time at which it should have started.
    Rate {
        /// Requests a second.
        per_s: f64,
        /// At random (a Poisson process) instead of evenly.
        #[serde(default)]
        poisson: bool,
    },
}

/// One job: a stream of requests. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What each request does, but for the shares below. A flush is one request; the fields on
    /// addresses are then ignored.
    pub op: Op,
    /// Of the requests, this share are reads instead; 0 to 1.
    #[serde(default)]
    pub read_share: f64,
    /// Of the requests, this share are trims instead; 0 to 1.
    #[serde(default)]
    pub trim_share: f64,
    /// In which order blocks are visited.
    #[serde(default)]
    pub pattern: PatternKind,
    /// First byte of the part of the device that is used.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Its length in bytes.
    #[serde(default)]
    pub length_bytes: u64,
    /// Bytes of each request.
    #[serde(default)]
    pub block_bytes: u64,
    /// Instead of `block_bytes`: lengths in bytes, each with its weight among the requests.
    #[serde(default)]
    pub block_mix: Vec<(u64, f64)>,
    /// Bytes of all requests together, rounded up to whole blocks; 0 where `seconds` is the limit.
    #[serde(default)]
    pub amount_bytes: u64,
    /// On the device's clock: no request starts later. The amount may end the job earlier.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// When requests arrive.
    #[serde(default)]
    pub arrival: Arrival,
    /// Requests outstanding at any time; of an open loop: at most.
    #[serde(default = "one")]
    pub queue_depth: usize,
    /// How writes are made durable.
    #[serde(default)]
    pub sync: Sync,
    /// What its writes let the drive know. A drive without a use for it writes as if nothing were
    /// said: every real one, as none of them is told.
    #[serde(default)]
    pub hint: HintKind,
    /// Queues that do this side by side, each with its own depth and seed and an equal part of the
    /// amount and of the rate. Each has its own part of the region where `pattern` is `sequential`
    /// or `random_once`, and all of it otherwise.
    #[serde(default = "one")]
    pub threads: usize,
    /// Instead of all that decides what is asked and when: a trace. Used are the part of the
    /// device, `queue_depth` and `interval_ms`; `op` says nothing.
    #[serde(default)]
    pub replay: Option<Replay>,
    /// Decides all that is random.
    #[serde(default)]
    pub seed: u64,
    /// The length of the intervals in which counts are kept, in milliseconds.
    #[serde(default = "tenth_of_a_second")]
    pub interval_ms: u64,
}

/// How the writes of a job are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sync {
    /// Not at all.
    #[default]
    None,
    /// A flush after each `every` writes that are done, as a database that commits. It takes a
    /// place in the queue as any request.
    Flush {
        /// 1 or more.
        every: u64,
    },
    /// Each write by itself: FUA, or `RWF_DSYNC` on a file.
    Durable,
}

/// What the writes of a job let the drive know, so that it can place them well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HintKind {
    /// Nothing.
    #[default]
    None,
    /// Each goes on where the write before it ended: the job appends to one file, which may lie in
    /// pieces. The first says nothing.
    Append,
    /// Each replaces content of a file in its place.
    Overwrite,
    /// All belong together, and apart from those of other streams: they are thought to die at the
    /// same time.
    Stream {
        /// 0 to 255; which of them a drive has is its own matter.
        number: u32,
    },
}

impl HintKind {
    /// The hint of a write that comes after one that ended with this block.
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
    100
}

impl Job {
    /// A job of nothing yet: closed loop at depth 1, intervals of 100 ms, seed 0.
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
            interval_ms: 100,
        }
    }

    /// The lengths of its requests in bytes, with their weights.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, f64)> {
        let only = self.block_mix.is_empty().then_some((self.block_bytes, 1.0));
        only.into_iter().chain(self.block_mix.iter().copied())
    }

    /// How many requests its amount is, without the flushes of `sync`; in the mean where lengths
    /// are mixed, and without end where only `seconds` limits it.
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

    /// Bytes after which no request starts.
    pub fn amount(&self) -> Option<u64> {
        if self.amount_bytes == 0 && self.seconds.is_some() {
            None
        } else {
            Some(self.amount_bytes)
        }
    }

    /// The part of the device that it visits.
    pub fn region(&self) -> Region {
        let block = if self.block_mix.is_empty() { self.block_bytes } else { 512 };
        Region::from_bytes(self.offset_bytes, self.length_bytes / block * block)
    }

    /// The length of an interval.
    pub fn interval(&self) -> Nanos {
        Nanos::from_millis(self.interval_ms)
    }

    /// When no more requests start, of a job that began at `start`.
    pub fn deadline(&self, start: Nanos) -> Nanos {
        self.seconds.map_or(Nanos::MAX, |seconds| start + Nanos::new((seconds * 1e9) as u64))
    }
}
