//! `Life`: a drive without time, the traffic on it, and what it costs in steady state.

use ssdlab_device::Hint;
use ssdlab_flash::{Profile, Study};
use ssdlab_time::Random;

/// A drive whose spare is counted as theory counts it.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    /// Units of a superblock.
    pub units: u32,
    /// Superblocks, with those that collection holds.
    pub superblocks: u32,
    /// Hidden share of the superblocks that hold data.
    pub spare: f64,
    /// Lines of the profile's section `[ftl]`.
    pub rules: &'static str,
}

/// `ftl.reserve` of every drive here.
pub const RESERVE: u32 = 2;

impl Drive {
    /// Superblocks' worth of flash that holds data, current or not: all but the reserve and one,
    /// which is what the open superblocks lack and the victim has lost (`docs/models/collection`).
    pub fn superblocks_in_use(&self) -> u32 {
        self.superblocks - RESERVE - 1
    }

    /// The profile: one die with pages of one unit, so that a block is a superblock.
    pub fn profile(&self) -> Profile {
        let flash = "channels = 1\ndies_per_channel = 1\nplanes = 1\npage = \"4 KiB\"";
        self.profile_on(flash, self.units)
    }

    /// The same on another geometry whose superblocks have as many units.
    pub fn profile_on(&self, flash: &str, pages_per_block: u32) -> Profile {
        let Self { units, superblocks, spare, rules } = *self;
        let in_use = f64::from(self.superblocks_in_use()) * f64::from(units);
        let capacity_kib = (in_use * (1.0 - spare)).round() as u64 * 4;
        let text = format!(
            "[drive]\nmodel = \"Known\"\ncapacity = \"{capacity_kib} KiB\"\ninterface = \"nvme\"\n\
             [link]\nbandwidth = \"3000 MB/s\"\nread_overhead = \"20 us\"\n\
             write_overhead = \"5 us\"\n\
             [flash]\n{flash}\npages_per_block = {pages_per_block}\n\
             blocks_per_plane = {superblocks}\nread = \"50 us\"\nprogram = \"700 us\"\n\
             erase = \"3 ms\"\nchannel_bandwidth = \"400 MB/s\"\n\
             [ftl]\nreserve = {RESERVE}\n{rules}\n\
             [buffer]\nsize = \"4 MiB\"\npower_loss_protection = true\n"
        );
        let profile = Profile::from_toml(&text).unwrap();
        assert_eq!(profile.geometry.superblock_units(), units);
        profile
    }
}

/// What a host does: the next unit to write.
pub type Pattern<'a> = &'a mut dyn FnMut(&mut Random) -> u32;

/// A drive at work.
pub struct Life {
    pub study: Study,
    pub random: Random,
    /// What is said of a unit when it is written.
    pub hint_of: fn(u32) -> Hint,
    flash_units: u64,
    superblock_units: u32,
    dies: u32,
    /// Erases up to the last look, and the samples of flash in use taken after erases.
    erases_seen: u64,
    in_use_sum: f64,
    in_use_samples: u32,
}

impl Life {
    /// An empty drive.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Self {
            study: Study::new(profile, seed),
            random: Random::new(seed, "known"),
            hint_of: |_| Hint::None,
            flash_units: profile.geometry.units(),
            superblock_units: profile.geometry.superblock_units(),
            dies: profile.geometry.dies(),
            erases_seen: 0,
            in_use_sum: 0.0,
            in_use_samples: 0,
        }
    }

    /// A drive that was written once from end to end.
    pub fn filled(profile: &Profile, seed: u64) -> Self {
        let mut life = Self::new(profile, seed);
        (0..life.study.logical_units()).for_each(|unit| life.study.write(unit));
        life
    }

    /// Host writes that are so many times the drive's size.
    pub fn writes(&self, times: f64) -> u64 {
        (f64::from(self.study.logical_units()) * times) as u64
    }

    /// Writes a unit.
    #[inline]
    pub fn write_unit(&mut self, unit: u32) {
        self.study.write_hinted(unit, (self.hint_of)(unit));
        if self.study.counters().erases != self.erases_seen {
            self.look_at_use();
        }
    }

    /// After an erase nothing is half collected: what was written and not erased is in use.
    fn look_at_use(&mut self) {
        let counters = self.study.counters();
        self.erases_seen = counters.erases;
        let moves = counters.collection_moves + counters.wear_moves;
        let written = (counters.host_writes + moves) as f64;
        let erased = counters.erases as f64 / f64::from(self.dies);
        self.in_use_sum += written / f64::from(self.superblock_units) - erased;
        self.in_use_samples += 1;
    }

    /// Writes so many units.
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

    /// Does something and returns what was counted meanwhile.
    pub fn count(&mut self, act: impl FnOnce(&mut Self)) -> Count {
        let before = *self.study.counters();
        (self.in_use_sum, self.in_use_samples) = (0.0, 0);
        act(self);
        let after = self.study.counters();
        Count {
            host: after.host_writes - before.host_writes,
            programs: after.nand_writes() - before.nand_writes(),
            moves: after.collection_moves - before.collection_moves,
            erases: (after.erases - before.erases) / u64::from(self.dies),
            superblocks_in_use: self.in_use_sum / f64::from(self.in_use_samples),
        }
    }

    /// Writes until so many times all flash has been programmed.
    pub fn turn_over(&mut self, times: f64, pattern: Pattern) {
        let programs = |life: &Self| life.study.counters().nand_writes();
        let until = programs(self) + (self.flash_units as f64 * times) as u64;
        while programs(self) < until {
            self.write(1000, pattern);
        }
    }

    /// Counts while all flash is programmed so many times, after others that are not counted.
    pub fn steady(&mut self, skipped: f64, counted: f64, pattern: Pattern) -> Count {
        self.turn_over(skipped, pattern);
        self.count(|life| life.turn_over(counted, pattern))
    }
}

/// Counts over a stretch of a life.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub host: u64,
    pub programs: u64,
    pub moves: u64,
    pub erases: u64,
    /// The mean of what was written and not erased; not a number where nothing was erased.
    pub superblocks_in_use: f64,
}

impl Count {
    /// Flash writes per host write.
    pub fn amplification(&self) -> f64 {
        self.programs as f64 / self.host as f64
    }

    /// Physical over logical capacity, the physical as it was in use.
    pub fn alpha(&self, superblock_units: u32, mapped: f64) -> f64 {
        self.superblocks_in_use * f64::from(superblock_units) / mapped
    }
}

/// Prints a row of the table in `docs/models/collection.md`, then holds model against theory.
pub fn compare(what: &str, theory: f64, model: f64, tolerance: f64) {
    let off = model / theory - 1.0;
    println!("| {what} | {theory:.3} | {model:.3} | {:+.2} % |", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: theory {theory:.4}, model {model:.4}");
}

/// Uniform traffic over the first so many units.
pub fn uniform(units: u32) -> impl FnMut(&mut Random) -> u32 {
    move |random| random.below(u64::from(units)) as u32
}

/// One unit in `stride` is hot, and those take a share of the writes. They lie between cold ones,
/// so that a drive filled in order is as mixed at the start as in steady state.
pub fn hot_and_cold_units(units: u32, stride: u32, writes: f64) -> impl FnMut(&mut Random) -> u32 {
    let groups = u64::from(units / stride);
    move |random| {
        let hot = random.unit() < writes;
        let group = random.below(groups) as u32;
        let in_group = if hot { 0 } else { 1 + random.below(u64::from(stride) - 1) as u32 };
        group * stride + in_group
    }
}
