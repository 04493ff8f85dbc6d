//! The record of a job: its times and counts, in total and for each interval.

use ssdlab_time::Nanos;

use crate::Op;

/// The number of requests of one kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that succeeded.
    pub requests: u64,
    /// Bytes read, written or trimmed.
    pub bytes: u64,
}

/// The counts of one interval of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The interval's start on the device's clock.
    pub start: Nanos,
    /// Requests that completed successfully in it, by `Op::index`.
    pub by_op: [Tally; Op::ALL.len()],
    /// Requests that failed in it.
    pub errors: u64,
    /// The longest latency among those that succeeded.
    pub latency_max: Nanos,
    /// Bytes programmed to the flash since the interval before; `None` if the device does not
    /// report them.
    pub flash_write_bytes: Option<u64>,
}

impl Interval {
    /// Successful requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.by_op.iter().map(|tally| tally.requests).sum()
    }

    /// Bytes of all kinds.
    pub fn bytes(&self) -> u64 {
        self.by_op.iter().map(|tally| tally.bytes).sum()
    }

    /// Adds bytes programmed to the flash.
    pub fn add_flash_writes(&mut self, bytes: u64) {
        self.flash_write_bytes = Some(self.flash_write_bytes.unwrap_or(0) + bytes);
    }

    /// Adds the counts of another queue in the same interval.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.by_op.iter_mut().zip(&other.by_op) {
            mine.requests += theirs.requests;
            mine.bytes += theirs.bytes;
        }
        self.errors += other.errors;
        self.latency_max = self.latency_max.max(other.latency_max);
        if let Some(bytes) = other.flash_write_bytes {
            self.add_flash_writes(bytes);
        }
    }
}

/// Times and counts of a job. Latencies are in the outcome's histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The job's start on the device's clock. The first request of a closed loop arrives then.
    pub start: Nanos,
    /// The time of the last completion.
    pub end: Nanos,
    /// Requests completed, including errors and the flushes that `sync` adds.
    pub requests: u64,
    /// Bytes of successful requests.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The error number of the first request that failed.
    pub first_errno: Option<i32>,
    /// Requests of an open loop that were due before the deadline but never started.
    pub unserved: u64,
    /// The intervals in order of time, without empty ones.
    pub intervals: Vec<Interval>,
}
