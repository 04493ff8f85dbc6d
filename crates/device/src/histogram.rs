//! `Histogram`: counts of values in buckets whose width is proportional to the value.

/// Counts of values, such as latencies in nanoseconds, in the buckets of `HdrHistogram`.
///
/// Each value below `2^(BITS + 1)` has its own bucket. Above that each doubling has `2^BITS`
/// buckets, so a bucket is at most `2^-BITS` of its value wide: with 10 bits, three significant
/// digits. The limits of the buckets depend on `BITS` alone, so counts of equal buckets may be
/// added.
#[derive(Clone, Debug, Default)]
pub struct Histogram<const BITS: u32> {
    /// By bucket; grows with the largest value.
    counts: Vec<u64>,
    /// Buckets with a count above 0, in the order of their first value. Draining visits these
    /// alone: the histogram of one interval may hold a single value.
    used: Vec<u32>,
}

impl<const BITS: u32> Histogram<BITS> {
    /// The lowest value that shares its bucket with another.
    const EXACT: u64 = 2 << BITS;

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = Self::bucket_of(value);
        match self.counts.get_mut(bucket) {
            Some(count @ 1..) => *count += 1,
            _ => self.add_to_unused(bucket, 1),
        }
    }

    /// Counts a value several times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        let bucket = Self::bucket_of(value);
        match self.counts.get_mut(bucket) {
            Some(present @ 1..) => *present += count,
            _ if count > 0 => self.add_to_unused(bucket, count),
            _ => {}
        }
    }

    #[cold]
    fn add_to_unused(&mut self, bucket: usize, count: u64) {
        if bucket >= self.counts.len() {
            self.counts.resize((bucket + 1).next_multiple_of(Self::EXACT as usize), 0);
        }
        self.used.push(bucket as u32);
        self.counts[bucket] = count;
    }

    /// Calls `each` with the largest value and the count of each bucket in use, ascending, and
    /// resets all counts.
    pub fn drain(&mut self, mut each: impl FnMut(u64, u64)) {
        self.used.sort_unstable();
        for bucket in self.used.drain(..) {
            let bucket = bucket as usize;
            each(Self::largest_in(bucket), std::mem::take(&mut self.counts[bucket]));
        }
    }

    /// The largest value and the count of each bucket in use, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(b, count)| (Self::largest_in(b), *count))
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean, each value rounded up to the largest of its bucket; 0 without values.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.buckets().map(|(value, count)| value as f64 * count as f64).sum();
        sum / self.count().max(1) as f64
    }

    /// The maximum, rounded up as in `mean`; 0 without values.
    pub fn max(&self) -> u64 {
        self.buckets().last().map_or(0, |(value, _)| value)
    }

    /// The smallest value that this share of the values (0 to 1) does not exceed, rounded up as in
    /// `mean`; 0 without values.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.count() as f64).ceil() as u64;
        let mut below = 0;
        let reached = self.buckets().find(|(_, count)| {
            below += count;
            below >= rank
        });
        reached.map_or(0, |(value, _)| value)
    }

    #[inline]
    fn bucket_of(value: u64) -> usize {
        if value < Self::EXACT {
            return value as usize;
        }
        let shift = u64::from(value.ilog2() - BITS);
        ((shift << BITS) + (value >> shift)) as usize
    }

    fn largest_in(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < Self::EXACT {
            return bucket;
        }
        let shift = (bucket >> BITS) - 1;
        let in_doubling = bucket - (shift << BITS);
        // One less than the next bucket's smallest value: in this order it fits in 64 bits.
        ((in_doubling << shift) - 1) + (1 << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    fn check_bucket_limits<const BITS: u32>() {
        type Of<const BITS: u32> = Histogram<BITS>;
        assert_eq!(Of::<BITS>::largest_in(Of::<BITS>::bucket_of(u64::MAX)), u64::MAX);
        for bucket in 0..=Of::<BITS>::bucket_of(u64::MAX >> 12) {
            let low = if bucket == 0 { 0 } else { Of::<BITS>::largest_in(bucket - 1) + 1 };
            let high = Of::<BITS>::largest_in(bucket);
            assert_eq!((Of::<BITS>::bucket_of(low), Of::<BITS>::bucket_of(high)), (bucket, bucket));
            assert!((high - low) << BITS <= low, "{low} to {high}");
        }
    }

    #[test]
    fn buckets_are_adjacent_and_no_wider_than_their_share_of_the_value() {
        check_bucket_limits::<2>();
        check_bucket_limits::<10>();
    }

    #[test]
    fn draining_returns_ascending_buckets_and_resets_the_counts() {
        let mut histogram = Histogram::<10>::default();
        let mut drain = |values: &[u64]| {
            for value in values {
                histogram.record(*value);
            }
            let mut rows = Vec::new();
            histogram.drain(|value, count| rows.push((value, count)));
            rows
        };
        assert_eq!(drain(&[5000, 70, 5001, 70]), [(70, 2), (5003, 2)]);
        assert_eq!(drain(&[70]), [(70, 1)]);
    }

    #[test]
    fn histograms_are_merged_bucket_by_bucket() {
        let mut sum = Histogram::<10>::default();
        for (value, count) in [(5003, 2), (70, 2), (70, 0), (9, 0), (70, 1)] {
            sum.record_many(value, count);
        }
        assert_eq!(sum.buckets().collect::<Vec<_>>(), [(70, 3), (5003, 2)]);
    }

    #[test]
    fn a_quantile_is_the_value_that_this_share_does_not_exceed() {
        let mut histogram = Histogram::<10>::default();
        assert_eq!((histogram.quantile(0.5), histogram.max()), (0, 0));
        (1..=1000).for_each(|value| histogram.record(value));
        let quantiles = [0.0, 0.5, 0.9891, 0.99, 0.999, 1.0].map(|share| histogram.quantile(share));
        assert_eq!(quantiles, [1, 500, 990, 990, 999, 1000]);
        assert_eq!((histogram.count(), histogram.max()), (1000, 1000));
        assert!((histogram.mean() - 500.5).abs() < 1e-9);
    }
}
