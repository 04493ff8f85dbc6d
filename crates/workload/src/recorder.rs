//! `Recorder` and `Outcome`: what is kept of a job while it runs, and what came of it.

use std::collections::BTreeMap;

use ssdlab_device::{Completion, DeviceError, Interval, Op, Record};
use ssdlab_time::Nanos;

use crate::flight::Passenger;
use crate::latency::Window;
use crate::{Bucket, Job, Latency};

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    /// Times and counts.
    pub record: Record,
    /// How often each latency occurred, from a request's arrival to its completion: by interval,
    /// kind and latency, ascending.
    pub buckets: Vec<Bucket>,
    /// Whether the watcher broke it off.
    pub stopped: bool,
    /// What ended the job early: the device is gone, or refused a request.
    pub failure: Option<DeviceError>,
}

impl Outcome {
    /// The latencies of the whole job, of one kind of request or of all.
    pub fn latency(&self, op: Option<Op>) -> Latency {
        Latency::of(self.buckets.iter().filter(|bucket| op.is_none_or(|op| op == bucket.op)))
    }

    /// What several devices did side by side, with one clock and intervals that began together.
    ///
    /// # Panics
    /// Without any.
    pub fn merge(outcomes: Vec<Self>) -> Self {
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
        Self { record, buckets, stopped, failure: failures.into_iter().flatten().next() }
    }
}

/// Counts what is done, interval by interval.
pub struct Recorder {
    pub record: Record,
    pub stopped: bool,
    windows: [Window; Op::ALL.len()],
    buckets: Vec<Bucket>,
    interval: Nanos,
    interval_end: Nanos,
}

impl Recorder {
    pub fn new(job: &Job, start: Nanos) -> Self {
        Self {
            record: Record { start, end: start, ..Record::default() },
            stopped: false,
            windows: std::array::from_fn(|_| Window::default()),
            buckets: Vec::new(),
            interval: job.interval(),
            interval_end: Nanos::ZERO,
        }
    }

    #[inline]
    pub fn add(&mut self, completion: &Completion, passenger: &Passenger, arrival: Nanos) {
        let latency = completion.completed.saturating_sub(arrival);
        if completion.completed >= self.interval_end {
            self.begin_interval(completion.completed);
        }
        let record = &mut self.record;
        record.requests += 1;
        record.end = record.end.max(completion.completed);
        let interval = record.intervals.last_mut().expect("one was begun");
        if let Err(error) = completion.outcome {
            record.errors += 1;
            record.first_errno.get_or_insert(error.errno);
            interval.errors += 1;
            return;
        }
        record.bytes += passenger.bytes;
        let index = passenger.op.index();
        let tally = &mut interval.by_op[index];
        tally.requests += 1;
        tally.bytes += passenger.bytes;
        interval.latency_max = interval.latency_max.max(latency);
        self.windows[index].record(latency.get().max(1));
    }

    fn begin_interval(&mut self, completed: Nanos) {
        self.end_interval();
        let since = completed.saturating_sub(self.record.start).get();
        let start = self.record.start + self.interval * (since / self.interval.get());
        self.interval_end = start + self.interval;
        self.record.intervals.push(Interval { start, ..Interval::default() });
    }

    fn end_interval(&mut self) {
        let Some(interval) = self.record.intervals.len().checked_sub(1) else { return };
        for (window, op) in self.windows.iter_mut().zip(Op::ALL) {
            window.empty_into(&mut self.buckets, interval as u32, op);
        }
    }

    pub fn finish(mut self, failure: Option<DeviceError>) -> Outcome {
        self.end_interval();
        let Self { record, buckets, stopped, .. } = self;
        Outcome { record, buckets, stopped, failure }
    }
}
