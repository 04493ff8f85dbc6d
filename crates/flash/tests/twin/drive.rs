//! Data path of a twin: write amplification, senses, latency, elided zeros, and
//! random sequences of requests.

use crate::sequences::{CheckedDrive, step};
use crate::small::{Twin, profile, profile_with, profile_with_lines};
use proptest::prelude::*;
use ssdlab_device::{Device, Op};
use ssdlab_testing::scaled;
use ssdlab_time::{Nanos, Random};

const UNIT: u64 = 4096;

const PAGE_UNITS: u64 = 8;

/// Units of the small drive.
const UNITS: u64 = (64 << 20) / UNIT;

#[test]
fn repeated_sequential_writes_have_a_write_amplification_of_one() {
    let mut twin = Twin::new(&profile());
    for _ in 0..4 {
        twin.write_all();
    }
    twin.drive.assert_consistent();
    assert_eq!(twin.drive.counters().collection_moves, 0);
    assert!(twin.drive.counters().erases > 0, "the drive was overwritten, so blocks were erased");
}

#[test]
fn a_full_drive_keeps_accepting_random_writes() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.write_random(4 * twin.units(), 3);
    twin.drive.assert_consistent();
    let waf = twin.drive.counters().waf().unwrap();
    assert!((1.5..12.0).contains(&waf), "write amplification is {waf}");
}

#[test]
fn after_trimming_everything_collection_moves_nothing() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.write_random(2 * twin.units(), 3);
    twin.trim_all();
    let moved = twin.drive.counters().collection_moves;
    for _ in 0..2 {
        twin.write_all();
    }
    assert_eq!(twin.drive.counters().collection_moves, moved);
    twin.drive.assert_consistent();
}

#[test]
fn a_drive_rewritten_sequentially_reads_as_fast_as_a_fresh_one() {
    let mut twin = Twin::filled(&profile());
    let fresh = twin.read_all();
    twin.write_random(twin.units() / 2, 9);
    twin.flush();
    let aged = twin.read_all();
    twin.write_all();
    twin.flush();
    let rewritten = twin.read_all();
    assert!(aged.get() * 10 > fresh.get() * 12, "fresh {fresh}, aged {aged}");
    assert!(rewritten.get() * 100 < fresh.get() * 102, "fresh {fresh}, rewritten {rewritten}");
}

#[test]
fn contiguous_units_of_a_page_need_one_sense_and_scattered_units_one_each() {
    let mut twin = Twin::new(&profile());
    twin.write(0, PAGE_UNITS);
    twin.flush();
    twin.read(0, PAGE_UNITS);
    assert_eq!(twin.drive.counters().host_senses, 1);
    for unit in (0..PAGE_UNITS).rev() {
        twin.write(unit, 1);
        twin.write(100 + unit * 8, 7);
    }
    twin.flush();
    let before = twin.drive.counters().host_senses;
    twin.read(0, PAGE_UNITS);
    assert_eq!(twin.drive.counters().host_senses - before, PAGE_UNITS);
}

#[test]
fn a_read_from_the_buffer_needs_no_sense() {
    let mut twin = Twin::new(&profile());
    twin.write(5, 1);
    twin.read(5, 1);
    assert_eq!(twin.drive.counters().host_senses, 0);
    twin.flush();
    twin.read(5, 1);
    assert_eq!(twin.drive.counters().host_senses, 1);
}

#[test]
fn a_flush_pads_pages_only_if_the_buffer_is_volatile_and_flushes_are_honoured() {
    let mut volatile = Twin::new(&profile());
    volatile.write(0, 1);
    let latency = volatile.flush();
    assert!(latency >= Nanos::from_micros(700), "tPROG is 700 us, the flush took {latency}");
    assert_eq!(volatile.drive.counters().nand_padding_writes, 7);

    for setting in ["power_loss_protection = true", "honours_flush = false"] {
        let mut quick = Twin::new(&profile_with("power_loss_protection = false", setting));
        quick.write(0, 1);
        assert!(quick.flush() < Nanos::from_micros(50), "{setting}");
        assert_eq!(quick.drive.counters().nand_padding_writes, 0, "{setting}");
    }
}

#[test]
fn writes_wait_when_the_buffer_is_full() {
    let mut twin = Twin::new(&profile());
    let first = twin.write(0, 8);
    for start in 1..400 {
        twin.write(start * 8, 8);
    }
    let late = twin.write(400 * 8, 8);
    assert!(first < Nanos::from_micros(100), "the first write took {first}");
    assert!(late > Nanos::from_micros(100), "with a full buffer a write took {late}");
}

#[test]
fn a_partial_write_of_a_mapping_unit_reads_it_first() {
    let mut twin = Twin::new(&profile());
    twin.write(0, 8);
    twin.flush();
    twin.request(Op::Write, 1, 1);
    assert_eq!(twin.drive.counters().host_senses, 1);
    twin.request(Op::Write, 100 * 8, 1);
    assert_eq!(twin.drive.counters().host_senses, 1, "an unmapped unit needs no read");
}

#[test]
fn two_drives_in_one_process_are_independent() {
    let run = |other: bool| {
        let mut twin = Twin::new(&profile());
        let mut second = Twin::new(&profile());
        twin.write_all();
        if other {
            second.write_random(1000, 5);
        }
        twin.write_random(3000, 1);
        (twin.drive.now(), *twin.drive.counters())
    };
    assert_eq!(run(false), run(true));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(64), ..ProptestConfig::default() })]

    #[test]
    fn maps_agree_and_no_request_is_lost_after_any_step(
        steps in prop::collection::vec(step(UNITS, 600 * 8), 1..150),
        seed in 0..8_u64,
    ) {
        // Start full, so that the first write already requires collection.
        let mut twin = Twin::new(&profile());
        twin.write_all();
        twin.write_random(20_000, seed);
        let mut checked = CheckedDrive::new(twin.drive);
        checked.run_all(&steps);
    }
}

#[test]
fn latencies_are_deterministic() {
    let run = || {
        let mut twin = Twin::new(&profile());
        let mut random = Random::new(4, "test");
        let mut times = Vec::new();
        for _ in 0..2000 {
            let unit = random.below(twin.units() - 16);
            times.push(if random.below(3) == 0 { twin.read(unit, 4) } else { twin.write(unit, 2) });
        }
        times
    };
    assert_eq!(run(), run());
}

#[test]
fn read_latency_follows_from_geometry_and_timing() {
    let mut twin = Twin::filled(&profile());
    // Overhead 20 us, tR 50 us, 4 KiB at 400 MB/s on the channel and at 1000 MB/s on the link.
    let by_hand = Nanos::new(20_000 + 50_000 + 10_240 + 4_096);
    assert_eq!(twin.read(0, 1), by_hand);
    // One multi-plane page of 32 KiB: one sense, one transfer, and the link is one unit behind the
    // channel.
    let by_hand = Nanos::new(20_000 + 50_000 + 8 * 10_240 + UNIT);
    assert_eq!(twin.read(80, 8), by_hand);
    // Four pages on four dies of two channels: parallel senses, two transfers per channel. The last
    // page of the second channel waits for the link.
    let channel = 8 * 10_240;
    let by_hand = Nanos::new(20_000 + 50_000 + 2 * channel + UNIT + 8 * UNIT);
    assert_eq!(twin.read(160, 32), by_hand);
}

#[test]
fn a_stream_can_be_renewed_any_number_of_times() {
    let streams = "placement = \"streams\"\nstreams = 2";
    let mut twin = Twin::new(&profile_with_lines("[ftl]", streams));
    let whole = twin.drive.stream_room(0);
    assert!(!twin.drive.renew_stream(0), "an unused stream is not renewed");
    for round in 0..500 {
        twin.write(round % 40, 1);
        assert!(twin.drive.stream_room(0) < whole);
        assert!(twin.drive.renew_stream(0));
        assert_eq!((twin.drive.stream_room(0), twin.drive.stream_room(1)), (whole, whole));
        assert!(!twin.drive.renew_stream(0) && !twin.drive.renew_stream(2));
        twin.drive.assert_consistent();
    }
    assert_eq!(twin.drive.mapped_units(), 40);
    assert!(twin.drive.counters().erases > 0, "the old superblocks are collected");
    assert!(twin.drive.counters().collection_moves < 500, "with few moves");
}

/// A twin whose controller elides zeros.
fn eliding() -> Twin {
    Twin::new(&profile_with_lines("[buffer]", "elides_zeros = true"))
}

#[test]
fn zeros_use_no_flash_if_they_are_elided_and_as_much_as_other_data_if_not() {
    let units = Twin::new(&profile()).units();
    for (mut twin, elided) in [(eliding(), units), (Twin::new(&profile()), 0)] {
        twin.drive.set_writes_zeros(true);
        twin.write_all();
        twin.flush();
        let counters = twin.drive.counters();
        assert_eq!((counters.host_writes, counters.host_writes_elided), (units, elided));
        assert_eq!(counters.nand_host_writes, units - elided);
        assert_eq!(counters.nand_writes(), units - elided);
        twin.drive.assert_consistent();
    }
}

#[test]
fn data_other_than_zeros_is_not_elided() {
    let mut twin = eliding();
    twin.drive.set_writes_zeros(true);
    twin.write(0, PAGE_UNITS);
    twin.drive.set_writes_zeros(false);
    twin.write(0, PAGE_UNITS);
    twin.flush();
    assert_eq!(twin.drive.counters().nand_host_writes, PAGE_UNITS);
    twin.drive.assert_consistent();
}

#[test]
fn zeros_over_data_invalidate_it_and_are_read_without_a_sense() {
    let mut twin = eliding();
    twin.write(0, PAGE_UNITS);
    twin.flush();
    twin.drive.set_writes_zeros(true);
    twin.write(0, PAGE_UNITS);
    twin.read(0, PAGE_UNITS);
    assert_eq!(twin.drive.counters().host_senses, 0);
    twin.drive.assert_consistent();
}

#[test]
fn zeros_in_part_of_a_unit_are_not_elided() {
    let mut twin = eliding();
    twin.drive.set_writes_zeros(true);
    twin.request(Op::Write, 0, 4);
    twin.flush();
    assert_eq!(twin.drive.counters().host_writes_elided, 0);
    assert_eq!(twin.drive.counters().nand_host_writes, 1);
}
