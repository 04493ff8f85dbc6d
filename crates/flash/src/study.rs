//! `Study`: the translation layer alone, without timing, to count writes.

use ssdlab_device::Hint;
use ssdlab_time::Nanos;

use crate::config::Profile;
use crate::counters::Counters;
use crate::ftl::{self, Ftl, Lpn, Wear};
use crate::nand::Untimed;

/// A drive that only counts: the translation layer of `Ssd`, without a clock.
///
/// For studies of write amplification, with billions of writes per drive. Its blocks never fail.
#[derive(Clone, Debug)]
pub struct Study {
    ftl: Ftl,
    logical_units: u32,
    unit_bytes: u64,
}

impl Study {
    /// A new, empty drive of this profile. The seed determines all random choices.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let lasting = Profile { failure: None, ..profile.clone() };
        Self {
            ftl: Ftl::new(&lasting, seed),
            logical_units: profile.logical_units() as u32,
            unit_bytes: profile.geometry.unit_bytes(),
        }
    }

    /// Mapping units that the host sees.
    pub fn logical_units(&self) -> u32 {
        self.logical_units
    }

    /// Announces a unit that will be written soon, which makes the simulation faster.
    #[inline]
    pub fn announce(&mut self, unit: u32) {
        self.ftl.announce(Lpn(unit), true);
    }

    /// Writes a mapping unit, which must be in the drive.
    #[inline]
    pub fn write(&mut self, unit: u32) {
        self.write_hinted(unit, Hint::None);
    }

    /// Writes a mapping unit with a hint.
    #[inline]
    pub fn write_hinted(&mut self, unit: u32, hint: Hint) {
        let shift = self.unit_bytes.trailing_zeros();
        let hint = ftl::Hint::of_request(hint, shift, u64::from(self.logical_units));
        self.ftl.store.counters.host_write_bytes += self.unit_bytes;
        self.ftl.begin_command(1);
        self.ftl.write(Lpn(unit), hint, Nanos::ZERO, &mut Untimed);
    }

    /// Trims a mapping unit.
    pub fn trim(&mut self, unit: u32) {
        self.ftl.trim(Lpn(unit), Nanos::ZERO, &mut Untimed);
    }

    /// What the drive has counted since it was new.
    pub fn counters(&self) -> &Counters {
        &self.ftl.store.counters
    }

    /// The wear of the flash.
    pub fn wear(&self) -> Wear {
        self.ftl.store.superblocks.wear(None)
    }

    /// Checks the maps and counts against each other; panics if they disagree.
    pub fn assert_consistent(&self) {
        self.ftl.store.assert_consistent();
    }
}
