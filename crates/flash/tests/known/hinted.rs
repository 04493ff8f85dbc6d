//! Placement by hints under garbage collection: its cost, and whether data stays on its die.

use ssdlab_device::{Hint, Op, Request};
use ssdlab_flash::UnitLocation;
use ssdlab_time::Random;

use crate::host::{Host, profile, request};
use crate::simulation::{Drive, EIGHT_DIES, Simulation, compare, uniform};
use crate::theory::greedy;

#[test]
fn placement_by_die_has_the_amplification_of_striping() {
    // Collection takes whole superblocks, so the die of a unit does not matter to it.
    for (how, ftl, hint_of) in [
        ("no hints", "placement = \"hinted\"", (|_| Hint::None) as fn(u32) -> Hint),
        ("apart", "placement = \"hinted\"", |_| Hint::Overwrite),
        ("guessed", "placement = \"inferred\"", |_| Hint::None),
        ("packed", "placement = \"packed\"", |_| Hint::None),
        ("mixed", "placement = \"hinted\"\nrelocation = \"mixed\"", |_| Hint::Overwrite),
        ("chunks of a unit", "placement = \"hinted\"\nchunk = \"4 KiB\"", |_| Hint::Overwrite),
    ] {
        let drive = Drive { units: 4096, superblocks: 256, spare: 0.1, ftl };
        let mut sim = Simulation::filled(&drive.profile_on(EIGHT_DIES, 64), 1);
        sim.hint_of = hint_of;
        let logical = sim.study.logical_units();
        let count = sim.steady(10.0, 3.0, &mut uniform(logical));
        let alpha = count.alpha(drive.units, f64::from(logical));
        let label = format!("greedy, by hints, {how}, 8 dies | 4096 | 10.0 %");
        compare(&label, greedy(alpha, 4096), count.amplification(), 0.01);
        sim.study.assert_consistent();
        let counters = sim.study.counters();
        let displaced = counters.displaced_moves as f64 / counters.collection_moves as f64;
        assert!(displaced < 0.02, "{displaced} of the moves are to another die");
    }
}

/// A drive with a large file that never changes, and a host that overwrites other data.
struct FileDrive {
    host: Host,
    random: Random,
}

impl FileDrive {
    fn new(placement: &str) -> Self {
        let flash = format!("{EIGHT_DIES}\npages_per_block = 16\nchannel_bandwidth = \"800 MB/s\"");
        let ftl = format!("spare = 0.2\nplacement = \"{placement}\"");
        let mut profile = profile("128 MiB", &flash, &ftl, "size = \"2 MiB\"");
        profile.link.max_transfer = 256 << 10;
        Self { host: Host::new(&profile), random: Random::new(1, "hinted") }
    }

    /// The same, written once in order.
    fn filled(placement: &str) -> Self {
        let mut drive = Self::new(placement);
        for unit in (0..drive.host.units()).step_by(64) {
            drive.host.run(request(Op::Write, unit, 64));
        }
        drive
    }

    /// Overwrites random units outside the file.
    fn age(&mut self, writes: u64) {
        for _ in 0..writes {
            let unit = self.random.below(self.host.units());
            if !in_file(unit) {
                let write = Request { hint: Hint::Overwrite, ..request(Op::Write, unit, 1) };
                self.host.run(write);
            }
        }
    }

    /// The die of each unit that `filter` selects; `None` if collection is moving it.
    fn dies(&mut self, filter: fn(u64) -> bool) -> Vec<Option<u32>> {
        self.host.flush();
        let die = |unit| match self.host.drive.locate(unit) {
            UnitLocation::Flash { die, .. } => Some(die),
            UnitLocation::Buffer => None,
            UnitLocation::Unmapped => panic!("unit {unit} was written"),
        };
        (0..self.host.units()).filter(|unit| filter(*unit)).map(die).collect()
    }
}

/// Every other stripe of a sequentially written drive is the file's, so that collection moves it.
fn in_file(unit: u64) -> bool {
    (unit / 64).is_multiple_of(2)
}

/// The share of a file's units that are still on their original die after garbage collection.
fn share_kept(placement: &str) -> f64 {
    let mut drive = FileDrive::filled(placement);
    let before = drive.dies(in_file);
    drive.age(drive.host.units() * 12);
    let after = drive.dies(in_file);
    let moved = drive.host.drive.counters().collection_moves;
    assert!(moved > drive.host.units(), "{moved} units were moved");
    drive.host.drive.assert_consistent();
    let kept = before.iter().zip(&after).filter(|(before, after)| before == after).count();
    kept as f64 / before.len() as f64
}

#[test]
fn collection_keeps_units_on_their_die_unless_it_is_full() {
    let (by_die, striped) = (share_kept("hinted"), share_kept("striped"));
    // Each unit is moved about ten times, and two of a hundred moves are to another die.
    assert!(by_die > 0.7, "{by_die} of the units are on their original die");
    assert!(share_kept("inferred") > 0.7, "inferred placement keeps units on their die");
    assert!(share_kept("packed") > 0.7, "packed placement keeps units on their die");
    assert!(striped < 0.2, "{striped} of the units; by chance it would be one in eight");
}

/// Flash writes and padding writes per host write, for a drive filled and then overwritten.
fn writes_and_padding(placement: &str) -> (f64, f64) {
    let mut drive = FileDrive::filled(placement);
    // The capacity is a whole number of superblocks: this write opens another one.
    drive.host.run(request(Op::Write, 0, 64));
    let before = *drive.host.drive.counters();
    drive.age(drive.host.units() * 12);
    drive.host.drive.assert_consistent();
    let after = drive.host.drive.counters();
    let written = (after.host_writes - before.host_writes) as f64;
    let padded = after.nand_padding_writes - before.nand_padding_writes;
    ((after.nand_writes() - before.nand_writes()) as f64 / written, padded as f64 / written)
}

#[test]
fn without_free_space_only_dies_that_an_erase_waits_for_are_padded() {
    // Each die has a half-full page: padding all of them every time takes 9 % more writes.
    let (_, padded) = writes_and_padding("hinted");
    assert!(padded < 0.01, "{padded} padding writes per host write");
}

#[test]
fn packed_placement_reserves_no_superblock_while_no_whole_pages_are_written() {
    let ((by_die, _), (packed, _)) = (writes_and_padding("hinted"), writes_and_padding("packed"));
    assert!(packed / by_die < 1.02, "packed {packed}, hinted {by_die}");
}

#[test]
fn inferred_placement_keeps_an_overwrite_on_its_die() {
    let mut drive = FileDrive::filled("inferred");
    let before = drive.dies(|_| true);
    let overwritten: Vec<u64> = (0..1000).map(|_| drive.random.below(drive.host.units())).collect();
    for unit in &overwritten {
        drive.host.run(request(Op::Write, *unit, 1));
    }
    let after = drive.dies(|_| true);
    let unmoved = |unit: &&u64| before[**unit as usize] == after[**unit as usize];
    let kept = overwritten.iter().filter(unmoved).count();
    assert!(kept > 950, "{kept} of 1000 overwrites stayed on their die");
}
