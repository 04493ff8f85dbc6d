//! `Series`: the intervals of all jobs so far, one row each, for curves.

use ssdlab_device::{Interval, Op};
use ssdlab_flash::Ssd;
use ssdlab_time::Nanos;
use ssdlab_workload::{Bucket, Recorded};

/// The columns of a row.
pub const COLUMNS: [&str; 18] = [
    "step",
    "start_ns",
    "end_ns",
    "read_requests",
    "read_bytes",
    "write_requests",
    "write_bytes",
    "trim_requests",
    "trim_bytes",
    "flush_requests",
    "errors",
    "p50_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "flash_bytes",
    "free_superblocks",
    "mapped_units",
];

/// The intervals that have ended.
#[derive(Clone, Debug, Default)]
pub struct Series {
    rows: Vec<[f64; COLUMNS.len()]>,
}

/// How many intervals of a job have rows, and how many buckets these intervals have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub intervals: usize,
    buckets: usize,
}

/// Where rows belong.
#[derive(Clone, Copy, Debug)]
pub struct RowPlace {
    pub step: usize,
    /// What to add to the drive's clock.
    pub epoch: Nanos,
    /// The length of an interval, and a moment that none exceeds, by the drive's clock.
    pub length: Nanos,
    pub end: Nanos,
}

impl Series {
    pub fn rows(&self) -> &[[f64; COLUMNS.len()]] {
        &self.rows
    }

    /// Forgets all rows but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.rows.truncate(count);
    }

    /// Makes a row of each new interval, from row number `rows` on, unless there is one: the same
    /// from before going back. Free space is that of now. Returns the number of rows.
    pub fn put(
        &mut self,
        mut rows: usize,
        seen: &mut Seen,
        recorded: Recorded<'_>,
        place: RowPlace,
        ssd: &Ssd,
    ) -> usize {
        let new = recorded.intervals.iter().enumerate().skip(seen.intervals);
        for (number, interval) in new {
            let left = &recorded.buckets[seen.buckets..];
            let count = left.partition_point(|bucket| bucket.interval as usize == number);
            if rows == self.rows.len() {
                self.push(interval, &left[..count], place, ssd);
            }
            seen.buckets += count;
            rows += 1;
        }
        seen.intervals = recorded.intervals.len();
        rows
    }

    fn push(&mut self, interval: &Interval, buckets: &[Bucket], place: RowPlace, ssd: &Ssd) {
        let [read, write, trim, flush] = Op::ALL.map(|op| interval.by_op[op.index()]);
        let mut latencies: Vec<(u64, u64)> =
            buckets.iter().map(|bucket| (bucket.latency_ns, bucket.count)).collect();
        latencies.sort_unstable();
        let [median, p99, p999] = [0.5, 0.99, 0.999].map(|share| quantile(&latencies, share));
        let columns = [
            place.step as u64,
            (place.epoch + interval.start).get(),
            (place.epoch + (interval.start + place.length).min(place.end)).get(),
            read.requests,
            read.bytes,
            write.requests,
            write.bytes,
            trim.requests,
            trim.bytes,
            flush.requests,
            interval.errors,
            median,
            p99,
            p999,
            interval.latency_max.get(),
            interval.flash_write_bytes.unwrap_or(0),
            ssd.space().free_superblocks as u64,
            ssd.mapped_units(),
        ];
        self.rows.push(columns.map(|value| value as f64));
    }
}

/// The smallest latency that this share of the requests does not exceed; 0 without requests.
fn quantile(latencies: &[(u64, u64)], share: f64) -> u64 {
    let count: u64 = latencies.iter().map(|row| row.1).sum();
    let rank = (share * count as f64).ceil() as u64;
    let mut below = 0;
    let reached = latencies.iter().find(|row| {
        below += row.1;
        below >= rank
    });
    reached.map_or(0, |row| row.0)
}
