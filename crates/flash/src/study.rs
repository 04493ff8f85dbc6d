//! `Study`: the translation layer alone, on flash where nothing takes time, to count writes.

use ssdlab_device::Hint;
use ssdlab_time::Nanos;

use crate::config::Profile;
use crate::counters::{Counters, Wear};
use crate::ftl::{self, Ftl, Lpn};
use crate::nand::Untimed;

/// A drive that only counts: the same policy as `Ssd`, without a clock.
///
/// For studies of write amplification, where a drive's life is billions of writes: its blocks never
/// fail.
#[derive(Clone, Debug)]
pub struct Study {
    ftl: Ftl,
    logical_units: u32,
    unit_bytes: u64,
}

impl Study {
    /// A new drive of this profile; the seed decides what chance does.
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

    /// Says that a unit will be written soon, which makes writing it faster.
    #[inline]
    pub fn announce(&mut self, unit: u32) {
        self.ftl.announce(Lpn(unit), true);
    }

    /// Writes a mapping unit.
    ///
    /// # Panics
    /// Beyond the last one.
    #[inline]
    pub fn write(&mut self, unit: u32) {
        self.write_hinted(unit, Hint::None);
    }

    /// Writes a mapping unit of which something is said.
    ///
    /// # Panics
    /// Beyond the last one.
    #[inline]
    pub fn write_hinted(&mut self, unit: u32, hint: Hint) {
        self.ftl.count_written(self.unit_bytes);
        let shift = self.unit_bytes.trailing_zeros();
        let hint = ftl::Hint::of_request(hint, shift, u64::from(self.logical_units));
        self.ftl.begin_command(1);
        self.ftl.write(Lpn(unit), hint, Nanos::ZERO, &mut Untimed);
    }

    /// Trims a mapping unit.
    ///
    /// # Panics
    /// Beyond the last one.
    pub fn trim(&mut self, unit: u32) {
        self.ftl.trim(Lpn(unit), Nanos::ZERO, &mut Untimed);
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        self.ftl.counters()
    }

    /// How worn it is.
    pub fn wear(&self) -> Wear {
        Wear::new(self.ftl.erases(), None)
    }

    /// Checks the maps and counts against each other; panics where they disagree.
    pub fn assert_consistent(&self) {
        self.ftl.assert_consistent();
    }
}
