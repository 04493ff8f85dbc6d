//! `Simulation`: an untimed drive with a workload, and its write amplification in steady state.

use ssdlab_device::Hint;
use ssdlab_flash::{Profile, Study};
use ssdlab_time::Random;

use crate::host;

/// Geometries with four and with eight dies.
pub const FOUR_DIES: &str = "channels = 2\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";
pub const EIGHT_DIES: &str = "channels = 4\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";

/// The parameters of a drive. The spare is defined as in the theory.
#[derive(Clone, Copy, Debug)]
pub struct Drive<'a> {
    /// Units per superblock.
    pub units: u32,
    /// Superblocks, including the reserve.
    pub superblocks: u32,
    /// Hidden share of the superblocks in use.
    pub spare: f64,
    /// Lines of the profile's section `[ftl]`.
    pub ftl: &'a str,
}

/// `ftl.reserve` of every drive here.
pub const RESERVE: u32 = 2;

impl Drive<'_> {
    /// Superblocks of valid and invalid data: all except the reserve and one more, the free part of
    /// the open superblocks and the emptied part of the victim (`docs/models/collection.md`).
    pub fn superblocks_in_use(&self) -> u32 {
        self.superblocks - RESERVE - 1
    }

    /// A profile with one die and pages of one unit, so that a block is a superblock.
    pub fn profile(&self) -> Profile {
        let flash = "channels = 1\ndies_per_channel = 1\nplanes = 1\npage = \"4 KiB\"";
        self.profile_on(flash, self.units)
    }

    /// A profile with another geometry and superblocks of the same size.
    pub fn profile_on(&self, flash: &str, pages_per_block: u32) -> Profile {
        let Self { units, superblocks, spare, ftl } = *self;
        let in_use = f64::from(self.superblocks_in_use()) * f64::from(units);
        let capacity_kib = (in_use * (1.0 - spare)).round() as u64 * 4;
        let flash = format!(
            "{flash}\npages_per_block = {pages_per_block}\nblocks_per_plane = {superblocks}\n\
             channel_bandwidth = \"400 MB/s\""
        );
        let ftl = format!("reserve = {RESERVE}\n{ftl}");
        let buffer = "size = \"4 MiB\"\npower_loss_protection = true";
        let profile = host::profile(&format!("{capacity_kib} KiB"), &flash, &ftl, buffer);
        assert_eq!(profile.geometry.superblock_units(), units);
        profile
    }
}

/// Returns the next unit to write.
pub type Pattern<'a> = &'a mut dyn FnMut(&mut Random) -> u32;

/// A drive with its workload.
pub struct Simulation {
    pub study: Study,
    pub random: Random,
    /// The hint for writes of a unit.
    pub hint_of: fn(u32) -> Hint,
    flash_units: u64,
    superblock_units: u32,
    dies: u32,
    /// The erase count at the last sample of the superblocks in use.
    erases_sampled: u64,
    in_use_sum: f64,
    in_use_samples: u32,
}

impl Simulation {
    /// An empty drive.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Self {
            study: Study::new(profile, seed),
            random: Random::new(seed, "known"),
            hint_of: |_| Hint::None,
            flash_units: profile.geometry.units(),
            superblock_units: profile.geometry.superblock_units(),
            dies: profile.geometry.dies(),
            erases_sampled: 0,
            in_use_sum: 0.0,
            in_use_samples: 0,
        }
    }

    /// A drive that was written sequentially once.
    pub fn filled(profile: &Profile, seed: u64) -> Self {
        let mut sim = Self::new(profile, seed);
        (0..sim.study.logical_units()).for_each(|unit| sim.study.write(unit));
        sim
    }

    /// The number of unit writes in `times` drive writes.
    pub fn writes(&self, times: f64) -> u64 {
        (f64::from(self.study.logical_units()) * times) as u64
    }

    #[inline]
    pub fn write_unit(&mut self, unit: u32) {
        self.study.write_hinted(unit, (self.hint_of)(unit));
        if self.study.counters().erases != self.erases_sampled {
            self.sample_use();
        }
    }

    /// Samples the superblocks in use; right after an erase, no victim is partly collected.
    fn sample_use(&mut self) {
        let counters = self.study.counters();
        self.erases_sampled = counters.erases;
        let moves = counters.collection_moves + counters.wear_moves;
        let written = (counters.host_writes + moves) as f64;
        let erased = counters.erases as f64 / f64::from(self.dies);
        self.in_use_sum += written / f64::from(self.superblock_units) - erased;
        self.in_use_samples += 1;
    }

    pub fn write(&mut self, writes: u64, pattern: Pattern) {
        let mut ahead = [0; 4].map(|_: u32| pattern(&mut self.random));
        for index in 4..writes + 4 {
            let next = &mut ahead[index as usize % 4];
            self.write_unit(*next);
            if index < writes {
                *next = pattern(&mut self.random);
                self.study.announce(*next);
            }
        }
    }

    /// Runs `work` and returns its counts.
    pub fn count(&mut self, work: impl FnOnce(&mut Self)) -> Count {
        let before = *self.study.counters();
        (self.in_use_sum, self.in_use_samples) = (0.0, 0);
        work(self);
        let after = self.study.counters();
        Count {
            host: after.host_writes - before.host_writes,
            programs: after.nand_writes() - before.nand_writes(),
            moves: after.collection_moves - before.collection_moves,
            erases: (after.erases - before.erases) / u64::from(self.dies),
            superblocks_in_use: self.in_use_sum / f64::from(self.in_use_samples),
        }
    }

    /// Writes until the whole flash has been programmed `times` times.
    pub fn program_flash(&mut self, times: f64, pattern: Pattern) {
        let programs = |sim: &Self| sim.study.counters().nand_writes();
        let until = programs(self) + (self.flash_units as f64 * times) as u64;
        while programs(self) < until {
            self.write(1000, pattern);
        }
    }

    /// Programs the whole flash `skipped` times without counting, then `counted` times.
    pub fn steady(&mut self, skipped: f64, counted: f64, pattern: Pattern) -> Count {
        self.program_flash(skipped, pattern);
        self.count(|sim| sim.program_flash(counted, pattern))
    }
}

/// The operations of a period.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub host: u64,
    pub programs: u64,
    pub moves: u64,
    pub erases: u64,
    /// The mean over samples; NaN if nothing was erased.
    pub superblocks_in_use: f64,
}

impl Count {
    /// Flash writes per host write.
    pub fn amplification(&self) -> f64 {
        self.programs as f64 / self.host as f64
    }

    /// Physical over logical capacity, counting superblocks in use only.
    pub fn alpha(&self, superblock_units: u32, mapped: f64) -> f64 {
        self.superblocks_in_use * f64::from(superblock_units) / mapped
    }
}

/// Prints a row of the table in `docs/models/collection.md`, then compares model and theory.
pub fn compare(label: &str, theory: f64, model: f64, tolerance: f64) {
    let off = model / theory - 1.0;
    println!("| {label} | {theory:.3} | {model:.3} | {:+.2} % |", off * 100.0);
    assert!(off.abs() <= tolerance, "{label}: theory {theory:.4}, model {model:.4}");
}

/// Uniform random writes to the first `units` units.
pub fn uniform(units: u32) -> impl FnMut(&mut Random) -> u32 {
    move |random| random.below(u64::from(units)) as u32
}

/// One unit in `stride` is hot, and these get a share of the writes. Hot units are spread evenly,
/// so that a sequentially filled drive starts as mixed as it is in steady state.
pub fn hot_and_cold_units(units: u32, stride: u32, writes: f64) -> impl FnMut(&mut Random) -> u32 {
    let groups = u64::from(units / stride);
    move |random| {
        let hot = random.unit() < writes;
        let group = random.below(groups) as u32;
        let in_group = if hot { 0 } else { 1 + random.below(u64::from(stride) - 1) as u32 };
        group * stride + in_group
    }
}
