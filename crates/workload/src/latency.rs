//! `Latency`: how often each latency occurred; three digits, mergeable, kept interval by interval.

use std::collections::BTreeMap;

use ssdlab_device::Op;

/// Values below this have a bucket each; above, each doubling has half as many.
const EXACT: u64 = 2048;

/// How often a latency occurred in one interval among requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Which of the record's intervals.
    pub interval: u32,
    /// What the requests did.
    pub op: Op,
    /// The upper end of the bucket in nanoseconds.
    pub latency_ns: u64,
    /// How many requests.
    pub count: u64,
}

/// The buckets of `HdrHistogram` with three significant digits: a bucket is at most 1/1024 of its
/// value wide, so that counts of equal buckets may be added, whoever counted them.
#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < EXACT {
        return ns as usize;
    }
    let shift = u64::from(ns.ilog2() - EXACT.ilog2() + 1);
    (shift * EXACT / 2 + (ns >> shift)) as usize
}

/// The largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / (EXACT / 2) - 1;
    let in_doubling = bucket - shift * EXACT / 2;
    // One less than the next bucket's smallest: in this order it fits in 64 bits.
    ((in_doubling << shift) - 1) + (1 << shift)
}

/// The counts of the interval that is going on, for requests of one kind.
///
/// Emptied at a cost in proportion to the buckets in use, not to all there are: intervals of a twin
/// may hold a single request.
#[derive(Debug, Default)]
pub struct Window {
    counts: Vec<u32>,
    used: Vec<u32>,
}

impl Window {
    /// Counts one request.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket_of(ns);
        match self.counts.get_mut(bucket) {
            Some(count @ 1..) => *count += 1,
            _ => self.use_first(bucket),
        }
    }

    /// Counts the first request of a bucket.
    #[cold]
    fn use_first(&mut self, bucket: usize) {
        if bucket >= self.counts.len() {
            self.counts.resize((bucket + 1).next_multiple_of(EXACT as usize), 0);
        }
        self.used.push(bucket as u32);
        self.counts[bucket] = 1;
    }

    /// Moves the counts to the end of `buckets`, in order of latency; returns their sum.
    pub fn empty_into(&mut self, buckets: &mut Vec<Bucket>, interval: u32, op: Op) -> u64 {
        let mut requests = 0;
        self.used.sort_unstable();
        for bucket in self.used.drain(..) {
            let bucket = bucket as usize;
            let count = u64::from(std::mem::take(&mut self.counts[bucket]));
            buckets.push(Bucket { interval, op, latency_ns: upper_end(bucket), count });
            requests += count;
        }
        requests
    }
}

/// The latencies of some requests: ascending, each the upper end of a bucket, with its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency(Vec<(u64, u64)>);

impl Latency {
    /// All of these buckets together.
    pub fn of<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> Self {
        let mut counts = BTreeMap::new();
        for bucket in buckets {
            *counts.entry(bucket.latency_ns).or_insert(0) += bucket.count;
        }
        Self(counts.into_iter().collect())
    }

    /// Latencies in nanoseconds and counts, ascending.
    pub fn rows(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// How many requests.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|row| row.1).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In nanoseconds; 0 of none.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|row| row.0 as f64 * row.1 as f64).sum();
        sum / self.len().max(1) as f64
    }

    /// In nanoseconds; 0 of none.
    pub fn max(&self) -> u64 {
        self.0.last().map_or(0, |row| row.0)
    }

    /// The smallest latency that this share of the requests (0 to 1) did not exceed, in
    /// nanoseconds; 0 of none.
    pub fn at(&self, share: f64) -> u64 {
        let wanted = (share * self.len() as f64).ceil() as u64;
        let mut count = 0;
        let reached = self.0.iter().find(|row| {
            count += row.1;
            count >= wanted
        });
        reached.map_or(0, |row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::Op;

    use super::{Latency, Window, bucket_of, upper_end};

    #[test]
    fn a_bucket_holds_its_values_to_three_digits_and_touches_the_next() {
        assert_eq!(upper_end(bucket_of(u64::MAX)), u64::MAX);
        for bucket in 0..20_000 {
            let (low, high) =
                (if bucket == 0 { 0 } else { upper_end(bucket - 1) + 1 }, upper_end(bucket));
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            assert!((high - low) * 1000 <= low, "{low} to {high}");
        }
    }

    #[test]
    fn a_window_gives_each_request_to_one_interval() {
        let (mut window, mut buckets) = (Window::default(), Vec::new());
        for ns in [5000, 70, 5001, 70] {
            window.record(ns);
        }
        window.empty_into(&mut buckets, 0, Op::Read);
        window.record(70);
        window.empty_into(&mut buckets, 1, Op::Read);
        let rows: Vec<_> = buckets.iter().map(|b| (b.interval, b.latency_ns, b.count)).collect();
        assert_eq!(rows, [(0, 70, 2), (0, 5003, 2), (1, 70, 1)]);
        assert_eq!(Latency::of(buckets.iter()).rows(), [(70, 3), (5003, 2)]);
    }

    #[test]
    fn a_percentile_is_the_latency_that_so_many_did_not_exceed() {
        let (mut window, mut buckets) = (Window::default(), Vec::new());
        (1..=1000).for_each(|ns| window.record(ns));
        window.empty_into(&mut buckets, 0, Op::Read);
        let latency = Latency::of(buckets.iter());
        assert_eq!(
            [0.0, 0.5, 0.99, 0.999, 1.0].map(|share| latency.at(share)),
            [1, 500, 990, 999, 1000]
        );
        assert_eq!((latency.len(), latency.max()), (1000, 1000));
        assert!((latency.mean() - 500.5).abs() < 1e-9);
    }
}
