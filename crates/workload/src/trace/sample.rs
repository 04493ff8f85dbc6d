//! `Sample`: how often units are accessed, kept of so many as fit, chosen by their address alone.
//!
//! Source: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015: a unit is in
//! the sample for all of its accesses or for none, so counts by unit stay true.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Units that are kept at most. The standard error of a count of units is 1 / sqrt of half of it.
const KEPT: usize = 1 << 17;

/// Accesses of the units that are kept.
#[derive(Default)]
pub struct Sample {
    units: BTreeMap<(u32, u64), Accesses>,
    /// One unit in `1 << shift` is kept.
    shift: u32,
}

#[derive(Clone, Copy, Default)]
struct Accesses {
    all: u32,
    writes: u32,
}

impl Sample {
    /// Counts an access of each of these units.
    pub fn touch(&mut self, volume: u32, units: RangeInclusive<u64>, is_write: bool) {
        for unit in units {
            if self.keeps(volume, unit) {
                let accesses = self.units.entry((volume, unit)).or_default();
                accesses.all = accesses.all.saturating_add(1);
                accesses.writes = accesses.writes.saturating_add(u32::from(is_write));
            }
            // At once: one long access may touch more units than there is memory for.
            while self.units.len() > KEPT {
                self.shift += 1;
                let shift = self.shift;
                self.units.retain(|(volume, unit), _| is_kept(*volume, *unit, shift));
            }
        }
    }

    /// How many units were accessed.
    pub fn count(&self) -> u64 {
        (self.units.len() as u64) << self.shift
    }

    /// How many were written.
    pub fn count_written(&self) -> u64 {
        let written = self.units.values().filter(|accesses| accesses.writes > 0).count();
        (written as u64) << self.shift
    }

    /// The share of all accesses that the most accessed fifth of the units gets.
    pub fn hottest_fifth(&self) -> f64 {
        let mut counts: Vec<u64> = self.units.values().map(|each| u64::from(each.all)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (whole, part) = (counts.len() / 5, counts.len() % 5);
        let hottest: u64 = counts[..whole].iter().sum();
        let rest = counts.get(whole).map_or(0.0, |count| *count as f64 * part as f64 / 5.0);
        (hottest as f64 + rest) / counts.iter().sum::<u64>().max(1) as f64
    }

    fn keeps(&self, volume: u32, unit: u64) -> bool {
        self.shift == 0 || is_kept(volume, unit, self.shift)
    }
}

/// Whether a unit is among one in `1 << shift`: by a mix of its address whose bits are independent.
fn is_kept(volume: u32, unit: u64, shift: u32) -> bool {
    let mut mixed = unit ^ (u64::from(volume) << 44);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) & ((1 << shift) - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Sample};

    #[test]
    fn few_units_are_counted_exactly() {
        let mut sample = Sample::default();
        sample.touch(0, 0..=9, true);
        sample.touch(0, 5..=14, false);
        sample.touch(1, 0..=4, false);
        assert_eq!((sample.count(), sample.count_written()), (20, 10));
        // 25 accesses; the hottest 4 of 20 units have two each.
        assert!((sample.hottest_fifth() - 8.0 / 25.0).abs() < 1e-12);
    }

    #[test]
    fn many_units_are_estimated_from_a_sample_that_does_not_grow() {
        let mut sample = Sample::default();
        for unit in 0..3_000_000_u64 {
            sample.touch(0, unit * 7..=unit * 7, unit % 2 == 0);
        }
        assert!(sample.units.len() <= KEPT);
        let off = |count: u64, truth: f64| (count as f64 / truth - 1.0).abs();
        assert!(off(sample.count(), 3e6) < 0.02, "{}", sample.count());
        assert!(off(sample.count_written(), 1.5e6) < 0.03, "{}", sample.count_written());
        assert!((sample.hottest_fifth() - 0.2).abs() < 1e-6);
    }
}
