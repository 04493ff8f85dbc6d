//! `Recorder` and `Outcome`: the measurements of a running job, and its result.

use std::collections::BTreeMap;

use ssdlab_device::{DeviceError, Histogram, Interval, IoError, LBA_BYTES, Op, Record, Tally};
use ssdlab_time::Nanos;

use crate::Job;
use crate::in_flight::Pending;

/// Latencies in nanoseconds, to three significant digits.
pub type Latencies = Histogram<10>;

/// The number of requests of one kind and of one latency in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The index of the interval in the record.
    pub interval: u32,
    /// The kind of request.
    pub op: Op,
    /// The largest latency of the histogram's bucket, in nanoseconds.
    pub latency_ns: u64,
    /// The number of requests.
    pub count: u64,
}

/// How late the requests of an open loop were submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Sum over all requests.
    pub sum: Nanos,
    /// Maximum.
    pub max: Nanos,
    /// Requests submitted more than a millisecond late.
    pub late: u64,
}

impl Lag {
    /// Counts a request that was submitted `lag` after it was due.
    pub fn add(&mut self, lag: Nanos) {
        self.sum += lag;
        self.max = self.max.max(lag);
        self.late += u64::from(lag > Nanos::from_millis(1));
    }

    fn merge(self, other: Self) -> Self {
        let max = self.max.max(other.max);
        Self { sum: self.sum + other.sum, max, late: self.late + other.late }
    }
}

/// The result of a job.
#[derive(Debug)]
pub struct Outcome {
    /// Times and counts.
    pub record: Record,
    /// Latencies from arrival to completion, in ascending order of interval, operation and latency.
    pub buckets: Vec<Bucket>,
    /// How late the requests of an open loop were submitted; zero for a closed loop.
    pub lag: Lag,
    /// Whether the watcher stopped the job.
    pub stopped: bool,
    /// The error that ended the job early: the device is gone, or refused a request.
    pub failure: Option<DeviceError>,
}

impl Outcome {
    /// The latencies of the whole job, for one operation or for all.
    pub fn latency(&self, op: Option<Op>) -> Latencies {
        let mut latencies = Latencies::default();
        for bucket in self.buckets.iter().filter(|bucket| op.is_none_or(|op| op == bucket.op)) {
            latencies.record_many(bucket.latency_ns, bucket.count);
        }
        latencies
    }

    /// The merged outcomes of a job's parts, with the first failure; that failure if no part got as
    /// far as an outcome.
    pub fn merge_parts(parts: Vec<Result<Self, DeviceError>>) -> Result<Self, DeviceError> {
        let (outcomes, failures): (Vec<_>, Vec<_>) = parts.into_iter().partition(Result::is_ok);
        let failure = failures.into_iter().find_map(Result::err);
        let outcomes: Vec<Self> = outcomes.into_iter().flatten().collect();
        match failure {
            Some(failure) if outcomes.is_empty() => Err(failure),
            failure => {
                let mut outcome = Self::merge(outcomes);
                outcome.failure = outcome.failure.or(failure);
                Ok(outcome)
            }
        }
    }

    /// Merges the outcomes of queues that ran in parallel, on one clock and with the same
    /// intervals.
    fn merge(outcomes: Vec<Self>) -> Self {
        let mut intervals: BTreeMap<Nanos, Interval> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for outcome in &outcomes {
            for interval in &outcome.record.intervals {
                let empty = Interval { start: interval.start, ..Interval::default() };
                intervals.entry(interval.start).or_insert(empty).merge(interval);
            }
            for bucket in &outcome.buckets {
                let start = outcome.record.intervals[bucket.interval as usize].start;
                let key = (start, bucket.op.index(), bucket.latency_ns);
                *counts.entry(key).or_insert(0) += bucket.count;
            }
        }
        let numbers: BTreeMap<Nanos, u32> = intervals.keys().copied().zip(0..).collect();
        let bucket = |((start, op, latency_ns), count): ((Nanos, usize, u64), u64)| Bucket {
            interval: numbers[&start],
            op: Op::ALL[op],
            latency_ns,
            count,
        };
        let buckets = counts.into_iter().map(bucket).collect();
        let stopped = outcomes.iter().any(|outcome| outcome.stopped);
        let lag = outcomes.iter().fold(Lag::default(), |lag, each| lag.merge(each.lag));
        let (records, failures): (Vec<_>, Vec<_>) =
            outcomes.into_iter().map(|outcome| (outcome.record, outcome.failure)).unzip();
        let sum = |pick: fn(&Record) -> u64| records.iter().map(pick).sum();
        let record = Record {
            start: records.iter().map(|record| record.start).min().expect("one outcome or more"),
            end: records.iter().map(|record| record.end).max().expect("one outcome or more"),
            requests: sum(|record| record.requests),
            bytes: sum(|record| record.bytes),
            errors: sum(|record| record.errors),
            first_errno: records.iter().find_map(|record| record.first_errno),
            unserved: sum(|record| record.unserved),
            intervals: intervals.into_values().collect(),
        };
        Self { record, buckets, lag, stopped, failure: failures.into_iter().flatten().next() }
    }
}

/// Counts completions by interval.
#[derive(Clone)]
pub struct Recorder {
    /// Without the current interval, of which only `record.requests` counts the requests.
    pub record: Record,
    pub lag: Lag,
    pub stopped: bool,
    /// Intervals of `record` for which `FlashWrites` has looked.
    pub intervals_attributed: usize,
    /// The current interval, whose tallies are in `kinds`.
    interval: Interval,
    kinds: [Kind; Op::ALL.len()],
    buckets: Vec<Bucket>,
    interval_length: Nanos,
    /// Zero before the first completion.
    interval_end: Nanos,
}

/// Requests of one kind in the current interval.
#[derive(Clone, Default)]
struct Kind {
    blocks: u64,
    latencies: Latencies,
}

impl Recorder {
    pub fn new(job: &Job, start: Nanos) -> Self {
        Self {
            record: Record { start, end: start, ..Record::default() },
            lag: Lag::default(),
            stopped: false,
            intervals_attributed: 0,
            interval: Interval::default(),
            kinds: Default::default(),
            buckets: Vec::new(),
            interval_length: Nanos::from_micros(job.interval_us),
            interval_end: Nanos::ZERO,
        }
    }

    /// Counts a successful request.
    #[inline]
    pub fn add(&mut self, completed: Nanos, pending: Pending) {
        self.end_request(completed);
        let latency = completed.saturating_sub(pending.arrival);
        self.interval.latency_max = self.interval.latency_max.max(latency);
        let kind = &mut self.kinds[pending.op.index()];
        kind.blocks += u64::from(pending.blocks);
        kind.latencies.record(latency.get().max(1));
    }

    #[cold]
    pub fn add_error(&mut self, completed: Nanos, error: IoError) {
        self.end_request(completed);
        self.record.errors += 1;
        self.record.first_errno.get_or_insert(error.errno);
        self.interval.errors += 1;
    }

    #[inline]
    fn end_request(&mut self, completed: Nanos) {
        if completed >= self.interval_end {
            self.begin_interval(completed);
        }
        self.record.requests += 1;
        self.record.end = self.record.end.max(completed);
    }

    #[cold]
    fn begin_interval(&mut self, completed: Nanos) {
        self.end_interval();
        let since = completed.saturating_sub(self.record.start).get();
        let number = since / self.interval_length.get();
        let start = self.record.start + self.interval_length * number;
        self.interval_end = start + self.interval_length;
        self.interval = Interval { start, ..Interval::default() };
    }

    /// Moves the current interval, if one has begun, to `record`.
    pub fn end_interval(&mut self) {
        if self.interval_end == Nanos::ZERO {
            return;
        }
        self.interval_end = Nanos::ZERO;
        let number = self.record.intervals.len() as u32;
        for (op, kind) in Op::ALL.into_iter().zip(&mut self.kinds) {
            let bytes = std::mem::take(&mut kind.blocks) * LBA_BYTES;
            let mut tally = Tally { requests: 0, bytes };
            kind.latencies.drain(|latency_ns, count| {
                self.buckets.push(Bucket { interval: number, op, latency_ns, count });
                tally.requests += count;
            });
            self.interval.by_op[op.index()] = tally;
        }
        self.record.bytes += self.interval.bytes();
        self.record.intervals.push(self.interval);
    }

    /// The latencies of the intervals in `record`, in their order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The result; the caller has ended the last interval.
    pub fn finish(self, failure: Option<DeviceError>) -> Outcome {
        let Self { record, buckets, lag, stopped, .. } = self;
        Outcome { record, buckets, lag, stopped, failure }
    }
}
