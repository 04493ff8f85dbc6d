//! What is kept of a job: its times, its counts, and how they were spread over its intervals.

use ssdlab_time::Nanos;

/// What happened in one interval of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Its start on the device's clock.
    pub start: Nanos,
    /// Requests completed in it.
    pub requests: u64,
    /// Bytes that these requests moved.
    pub bytes: u64,
    /// The longest latency among them.
    pub latency_max: Nanos,
}

/// What a job did, but for its latencies, which the job's histogram holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When the first request arrived, on the device's clock.
    pub start: Nanos,
    /// When the last one was done.
    pub end: Nanos,
    /// Requests completed, errors among them.
    pub requests: u64,
    /// Bytes moved by requests that succeeded.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The error number of the first that failed.
    pub first_errno: Option<i32>,
    /// Its intervals in order of time, without empty ones.
    pub intervals: Vec<Interval>,
}
