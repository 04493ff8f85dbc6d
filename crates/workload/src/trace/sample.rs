//! `Sample`: access counts of a bounded sample of units, selected by a hash of their address.
//!
//! Source: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015: a unit is in
//! the sample for all of its accesses or for none, so counts by unit stay true.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Maximum size of the sample. The relative standard error of an estimated number of units is
/// 1 / sqrt(half of this).
const SAMPLE_UNITS_MAX: usize = 1 << 17;

#[derive(Default)]
pub struct Sample {
    units: BTreeMap<(u32, u64), Accesses>,
    /// One unit in `1 << shift` is sampled.
    shift: u32,
}

#[derive(Clone, Copy, Default)]
struct Accesses {
    all: u32,
    writes: u32,
}

impl Sample {
    /// Counts an access of each of these units.
    pub fn record(&mut self, volume: u32, units: RangeInclusive<u64>, is_write: bool) {
        for unit in units {
            if self.samples(volume, unit) {
                let accesses = self.units.entry((volume, unit)).or_default();
                accesses.all = accesses.all.saturating_add(1);
                accesses.writes = accesses.writes.saturating_add(u32::from(is_write));
            }
            // Inside the loop: one long access may have more units than fit into memory.
            while self.units.len() > SAMPLE_UNITS_MAX {
                self.shift += 1;
                let shift = self.shift;
                self.units.retain(|(volume, unit), _| is_sampled(*volume, *unit, shift));
            }
        }
    }

    /// The estimated number of units accessed.
    pub fn count(&self) -> u64 {
        (self.units.len() as u64) << self.shift
    }

    /// The estimated number of units written.
    pub fn count_written(&self) -> u64 {
        let written = self.units.values().filter(|accesses| accesses.writes > 0).count();
        (written as u64) << self.shift
    }

    /// The share of accesses that go to the most accessed fifth of the units.
    pub fn hottest_fifth(&self) -> f64 {
        let mut counts: Vec<u64> = self.units.values().map(|each| u64::from(each.all)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (whole, part) = (counts.len() / 5, counts.len() % 5);
        let hottest: u64 = counts[..whole].iter().sum();
        let rest = counts.get(whole).map_or(0.0, |count| *count as f64 * part as f64 / 5.0);
        (hottest as f64 + rest) / counts.iter().sum::<u64>().max(1) as f64
    }

    fn samples(&self, volume: u32, unit: u64) -> bool {
        self.shift == 0 || is_sampled(volume, unit, self.shift)
    }
}

/// Whether a unit belongs to a sample of one in `1 << shift`, by a hash of its address.
fn is_sampled(volume: u32, unit: u64, shift: u32) -> bool {
    let mut mixed = unit ^ (u64::from(volume) << 44);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) & ((1 << shift) - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE_UNITS_MAX, Sample};

    #[test]
    fn few_units_are_counted_exactly() {
        let mut sample = Sample::default();
        sample.record(0, 0..=9, true);
        sample.record(0, 5..=14, false);
        sample.record(1, 0..=4, false);
        assert_eq!((sample.count(), sample.count_written()), (20, 10));
        // 25 accesses; the hottest 4 of 20 units have two each.
        assert!((sample.hottest_fifth() - 8.0 / 25.0).abs() < 1e-12);
    }

    #[test]
    fn many_units_are_estimated_from_a_sample_that_does_not_grow() {
        let mut sample = Sample::default();
        for unit in 0..3_000_000_u64 {
            sample.record(0, unit * 7..=unit * 7, unit % 2 == 0);
        }
        assert!(sample.units.len() <= SAMPLE_UNITS_MAX);
        let off = |count: u64, truth: f64| (count as f64 / truth - 1.0).abs();
        assert!(off(sample.count(), 3e6) < 0.02, "{}", sample.count());
        assert!(off(sample.count_written(), 1.5e6) < 0.03, "{}", sample.count_written());
        assert!((sample.hottest_fifth() - 0.2).abs() < 1e-6);
    }
}
