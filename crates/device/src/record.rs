//! What is kept of a job: its times, its counts, and how they were spread over its intervals.

use ssdlab_time::Nanos;

use crate::Op;

/// Requests of one kind, and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that succeeded.
    pub requests: u64,
    /// Bytes that they moved; for trims, bytes that they named.
    pub bytes: u64,
}

/// What happened in one interval of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Its start on the device's clock.
    pub start: Nanos,
    /// Requests that succeeded and ended in it, by `Op::index`.
    pub by_op: [Tally; Op::ALL.len()],
    /// Requests that failed in it.
    pub errors: u64,
    /// The longest latency among those that succeeded.
    pub latency_max: Nanos,
}

impl Interval {
    /// Requests that succeeded, of all kinds.
    pub fn requests(&self) -> u64 {
        self.by_op.iter().map(|tally| tally.requests).sum()
    }

    /// Bytes of them, of all kinds.
    pub fn bytes(&self) -> u64 {
        self.by_op.iter().map(|tally| tally.bytes).sum()
    }

    /// Adds what another device did in the same interval.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.by_op.iter_mut().zip(&other.by_op) {
            mine.requests += theirs.requests;
            mine.bytes += theirs.bytes;
        }
        self.errors += other.errors;
        self.latency_max = self.latency_max.max(other.latency_max);
    }
}

/// What a job did, but for its latencies, which the outcome's histograms hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When the job began, on the device's clock: the first request of a closed loop arrives then.
    pub start: Nanos,
    /// When the last one was done.
    pub end: Nanos,
    /// Requests completed, errors and the flushes that `sync` asks for among them.
    pub requests: u64,
    /// Bytes moved by requests that succeeded.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The error number of the first that failed.
    pub first_errno: Option<i32>,
    /// Requests of an open loop that should have started before its time was up and never did.
    pub unserved: u64,
    /// Its intervals in order of time, without empty ones.
    pub intervals: Vec<Interval>,
}
