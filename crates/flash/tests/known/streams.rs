//! Streams: what it is worth to write hot and cold units to superblocks of their own.

use ssdlab_device::Hint;

use crate::life::{Count, Drive, Life, compare, hot_and_cold_units, uniform};
use crate::theory::{fifo_mixed, greedy, hot_and_cold};

const UNITS: u32 = 128;

/// One unit in `stride` is hot, and those take a share of the writes.
#[derive(Clone, Copy)]
struct Heat {
    stride: u32,
    writes: f64,
    /// What is said of each unit where streams are by heat.
    hint_of: fn(u32) -> Hint,
}

/// 20 % of the units take 80 % of the writes.
const WARM: Heat =
    Heat { stride: 5, writes: 0.8, hint_of: |unit| Hint::Stream(u8::from(unit.is_multiple_of(5))) };

/// 5 % of the units take 95 % of the writes.
const HOT: Heat = Heat {
    stride: 20,
    writes: 0.95,
    hint_of: |unit| Hint::Stream(u8::from(unit.is_multiple_of(20))),
};

/// All units are of one stream.
const TOGETHER: fn(u32) -> Hint = |_| Hint::Stream(0);

fn steady(drive: Drive, heat: Heat, hint_of: fn(u32) -> Hint) -> (Count, f64) {
    let mut life = Life::filled(&drive.profile(), 1);
    life.hint_of = hint_of;
    let logical = life.study.logical_units();
    life.turn_over(6.0, &mut uniform(logical));
    let count = life.steady(12.0, 8.0, &mut hot_and_cold_units(logical, heat.stride, heat.writes));
    life.study.assert_consistent();
    let alpha = count.alpha(UNITS, f64::from(logical));
    (count, alpha)
}

fn name(what: &str, heat: Heat, spare: f64) -> String {
    let (hot, writes) = (100.0 / f64::from(heat.stride), heat.writes * 100.0);
    format!("{what}, {writes:.0} % on {hot:.0} % | {UNITS} | {:.2} %", spare * 100.0)
}

#[test]
fn greedy_with_a_stream_for_each_heat_is_two_drives_with_one_spare() {
    // Victims of both streams are as empty. So each has the amplification of a drive of its own,
    // the same one, and so the same spare. That is exact for many hot superblocks: of few, some
    // wait longer than others (102 of them: 3.4 % below).
    let rules = "relocation = \"mixed\"\nplacement = \"streams\"\nstreams = 2";
    for (heat, superblocks, spare) in
        [(WARM, 2048, 0.07), (WARM, 2048, 0.28), (HOT, 8192, 0.07), (HOT, 8192, 0.28)]
    {
        let drive = Drive { units: UNITS, superblocks, spare, rules };
        let (count, alpha) = steady(drive, heat, heat.hint_of);
        let what = name("greedy, 2 streams by heat", heat, spare);
        compare(&what, greedy(alpha, UNITS), count.amplification(), 0.01);
    }
}

#[test]
fn streams_that_are_not_used_are_worth_nothing() {
    let rules = "relocation = \"mixed\"\nplacement = \"streams\"\nstreams = 2";
    // What an independent simulator finds without streams, as in `heat.rs`.
    for (spare, simulated) in [(0.07, 7.393), (0.28, 2.301)] {
        let drive = Drive { units: UNITS, superblocks: 2048, spare, rules };
        let (count, _) = steady(drive, WARM, TOGETHER);
        let what = name("greedy, 1 stream of 2", WARM, spare);
        compare(&what, simulated, count.amplification(), 0.02);
    }
}

#[test]
fn fifo_gains_nothing_by_streams() {
    // The oldest superblock is the victim, whosever it is: a unit has as long to die as without
    // streams, and the mixture form holds as it does there.
    let rules = "victim = \"fifo\"\nrelocation = \"mixed\"\nplacement = \"streams\"\nstreams = 2";
    for (heat, spare) in [(WARM, 0.07), (HOT, 0.07), (HOT, 0.28)] {
        let drive = Drive { units: UNITS, superblocks: 2048, spare, rules };
        let (count, alpha) = steady(drive, heat, heat.hint_of);
        let theory = fifo_mixed(alpha, &hot_and_cold(1.0 / f64::from(heat.stride), heat.writes));
        let what = name("fifo, 2 streams by heat", heat, spare);
        compare(&what, theory, count.amplification(), 0.01);
    }
}

/// With streams by heat, or without: where moved units return to their stream, or all go to one
/// place.
fn four_ways(victim: &str) -> [f64; 4] {
    let amplification = |relocation: &str, hint_of| {
        let rules = format!("relocation = \"{relocation}\"\nvictim = \"{victim}\"");
        let rules = format!("{rules}\nplacement = \"streams\"\nstreams = 2").leak();
        let drive = Drive { units: UNITS, superblocks: 1024, spare: 0.07, rules };
        steady(drive, HOT, hint_of).0.amplification()
    };
    [
        amplification("mixed", HOT.hint_of),
        amplification("separate", HOT.hint_of),
        amplification("separate", TOGETHER),
        amplification("mixed", TOGETHER),
    ]
}

#[test]
fn streams_are_worth_most_where_what_is_moved_stays_in_its_own() {
    for victim in ["greedy", "cost-benefit"] {
        let ways = four_ways(victim);
        println!("streams: {victim}: {ways:.3?}");
        assert!(ways.is_sorted() && ways[3] > 1.3 * ways[0], "{victim}: {ways:?}");
    }
}
