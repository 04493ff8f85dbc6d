//! Placement by hints in a drive that collects: what it costs, and that data stays on its die.

use ssdlab_device::{Device, Hint, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd, UnitLocation};
use ssdlab_time::Random;

use crate::life::{Drive, Life, compare, uniform};
use crate::theory::greedy;

/// Eight dies, and superblocks of 4096 units.
const FLASH: &str = "channels = 4\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";

#[test]
fn placing_by_die_amplifies_no_more_than_the_stripe_does() {
    // Which die a unit lies on is nothing to collection, which takes whole superblocks.
    for (how, rules, hint_of) in [
        ("no hints", "placement = \"hinted\"", (|_| Hint::None) as fn(u32) -> Hint),
        ("apart", "placement = \"hinted\"", |_| Hint::Overwrite),
        ("guessed", "placement = \"inferred\"", |_| Hint::None),
        ("packed", "placement = \"packed\"", |_| Hint::None),
        ("mixed", "placement = \"hinted\"\nrelocation = \"mixed\"", |_| Hint::Overwrite),
        ("chunks of a unit", "placement = \"hinted\"\nchunk = \"4 KiB\"", |_| Hint::Overwrite),
    ] {
        let drive = Drive { units: 4096, superblocks: 256, spare: 0.1, rules };
        let mut life = Life::filled(&drive.profile_on(FLASH, 64), 1);
        life.hint_of = hint_of;
        let logical = life.study.logical_units();
        let count = life.steady(10.0, 3.0, &mut uniform(logical));
        let alpha = count.alpha(drive.units, f64::from(logical));
        let what = format!("greedy, by hints, {how}, 8 dies | 4096 | 10.0 %");
        compare(&what, greedy(alpha, 4096), count.amplification(), 0.01);
        life.study.assert_consistent();
        let counters = life.study.counters();
        let displaced = counters.displaced_moves as f64 / counters.collection_moves as f64;
        assert!(displaced < 0.02, "{displaced} of the moves are to another die");
    }
}

/// A drive with a large file that never changes, and what asks it.
struct Host {
    drive: Ssd,
    random: Random,
}

impl Host {
    fn new(placement: &str) -> Self {
        let text = format!(
            "[drive]\nmodel = \"Known\"\ncapacity = \"128 MiB\"\ninterface = \"nvme\"\n\
             [link]\nbandwidth = \"3000 MB/s\"\nread_overhead = \"20 us\"\n\
             write_overhead = \"5 us\"\nmax_transfer = \"256 KiB\"\n\
             [flash]\n{FLASH}\npages_per_block = 16\nread = \"50 us\"\nprogram = \"700 us\"\n\
             erase = \"3 ms\"\nchannel_bandwidth = \"800 MB/s\"\n\
             [ftl]\nspare = 0.2\nplacement = \"{placement}\"\n[buffer]\nsize = \"2 MiB\"\n"
        );
        let drive = Ssd::new(&Profile::from_toml(&text).unwrap(), 1);
        Self { drive, random: Random::new(1, "hinted") }
    }

    fn units(&self) -> u64 {
        self.drive.capacity_bytes() / 4096
    }

    fn ask(&mut self, op: Op, unit: u64, units: u64, hint: Hint) {
        let request = Request::new(0, op, Lba::new(unit * 8), units as u32 * 8);
        self.drive.submit(Request { hint, ..request }).unwrap();
        self.drive.reap(Wait::One, &mut Vec::new()).unwrap();
    }

    /// Overwrites units that are not the file's.
    fn age(&mut self, writes: u64) {
        for _ in 0..writes {
            let unit = self.random.below(self.units());
            if !in_file(unit) {
                self.ask(Op::Write, unit, 1, Hint::Overwrite);
            }
        }
    }

    /// The die of each unit for which `which` holds; none of what collection has in hand.
    fn dies(&mut self, which: fn(u64) -> bool) -> Vec<Option<u32>> {
        self.ask(Op::Flush, 0, 0, Hint::None);
        let die = |unit| match self.drive.locate(unit) {
            UnitLocation::Flash { die, .. } => Some(die),
            UnitLocation::Buffer => None,
            UnitLocation::Unmapped => panic!("unit {unit} was written"),
        };
        (0..self.units()).filter(|unit| which(*unit)).map(die).collect()
    }
}

/// Every other stripe of a drive written in order is the file's: collection cannot spare it.
fn in_file(unit: u64) -> bool {
    (unit / 64).is_multiple_of(2)
}

/// The share of a file's units that lie on the die on which they lay before the drive collected.
fn share_kept(placement: &str) -> f64 {
    let mut host = Host::new(placement);
    for unit in (0..host.units()).step_by(64) {
        host.ask(Op::Write, unit, 64, Hint::None);
    }
    let before = host.dies(in_file);
    host.age(host.units() * 12);
    let after = host.dies(in_file);
    let moved = host.drive.counters().collection_moves;
    assert!(moved > host.units(), "{moved} units were moved");
    host.drive.assert_consistent();
    let kept = before.iter().zip(&after).filter(|(before, after)| before == after).count();
    kept as f64 / before.len() as f64
}

#[test]
fn what_collection_moves_stays_on_its_die_but_where_that_has_run_out() {
    let (by_die, along_the_stripe) = (share_kept("hinted"), share_kept("striped"));
    // Each unit is moved some ten times, and of a hundred moves two are to another die.
    assert!(by_die > 0.7, "{by_die} of the units are on the die on which they were written");
    assert!(share_kept("inferred") > 0.7, "guessing keeps what is moved as hints do");
    assert!(share_kept("packed") > 0.7, "packing does, too");
    assert!(along_the_stripe < 0.2, "{along_the_stripe}, and chance would have one in eight");
}

/// Of a drive filled by large writes, then overwritten: for each write of the host the units
/// written to flash, and those that only filled a page up.
fn writes_and_padding(placement: &str) -> (f64, f64) {
    let mut host = Host::new(placement);
    for unit in (0..host.units()).step_by(64) {
        host.ask(Op::Write, unit, 64, Hint::None);
    }
    // The drive is a whole number of superblocks: this begins another one.
    host.ask(Op::Write, 0, 64, Hint::None);
    let before = *host.drive.counters();
    host.age(host.units() * 12);
    host.drive.assert_consistent();
    let after = host.drive.counters();
    let written = (after.host_writes - before.host_writes) as f64;
    let padded = after.nand_padding_writes - before.nand_padding_writes;
    ((after.nand_writes() - before.nand_writes()) as f64 / written, padded as f64 / written)
}

#[test]
fn where_room_runs_out_only_the_dies_that_an_erase_waits_for_are_padded() {
    // Each die has a page that is half full: to pad all of them each time takes 9 % more writes.
    let (_, padded) = writes_and_padding("hinted");
    assert!(padded < 0.01, "{padded} of the host's writes were padded");
}

#[test]
fn a_superblock_for_whole_pages_holds_no_room_back_while_none_are_written() {
    let ((by_die, _), (packed, _)) = (writes_and_padding("hinted"), writes_and_padding("packed"));
    assert!(packed / by_die < 1.02, "packed {packed}, by hints alone {by_die}");
}

#[test]
fn an_overwrite_that_is_guessed_stays_on_its_die() {
    let mut host = Host::new("inferred");
    for unit in (0..host.units()).step_by(64) {
        host.ask(Op::Write, unit, 64, Hint::None);
    }
    let before = host.dies(|_| true);
    let overwritten: Vec<u64> = (0..1000).map(|_| host.random.below(host.units())).collect();
    for unit in &overwritten {
        host.ask(Op::Write, *unit, 1, Hint::None);
    }
    let after = host.dies(|_| true);
    let stays = |unit: &&u64| before[**unit as usize] == after[**unit as usize];
    let stayed = overwritten.iter().filter(stays).count();
    assert!(stayed > 950, "{stayed} of a thousand");
}
