//! Merging of writes in order that each cover a part of a mapping unit.

use crate::small::{Twin, profile, profile_with_lines};
use ssdlab_device::{Device, Op};
use ssdlab_flash::UnitLocation;
use ssdlab_time::Random;

/// Blocks of a mapping unit of 4 KiB, and of a write of a quarter of it.
const UNIT: u64 = 8;
const QUARTER: u64 = 2;

fn merging() -> Twin {
    Twin::filled(&profile_with_lines("[buffer]", "merges_writes = true"))
}

/// Writes `count` blocks from `first` in order, a quarter of a unit at a time.
fn write_quarters(twin: &mut Twin, first: u64, count: u64) {
    for lba in (first..first + count).step_by(QUARTER as usize) {
        twin.request(Op::Write, lba, QUARTER as u32);
    }
}

/// Units that the host wrote, units programmed for it, and senses for it, since `before`.
fn since(twin: &Twin, before: ssdlab_flash::Counters) -> (u64, u64, u64) {
    let now = twin.drive.counters();
    (
        now.host_writes - before.host_writes,
        now.nand_host_writes - before.nand_host_writes,
        now.host_senses - before.host_senses,
    )
}

#[test]
fn parts_in_order_become_one_write_of_their_unit() {
    let mut twin = merging();
    let before = *twin.drive.counters();
    write_quarters(&mut twin, 0, 256 * UNIT);
    twin.flush();
    // The first part does not continue a write: the drive cannot know that others follow.
    assert_eq!(since(&twin, before), (256, 256, 1));
    assert_eq!(twin.drive.counters().host_write_bytes - before.host_write_bytes, 256 * 4096);
    twin.drive.assert_consistent();
}

#[test]
fn a_drive_that_does_not_merge_writes_each_part_as_a_unit() {
    let mut twin = Twin::filled(&profile());
    let before = *twin.drive.counters();
    write_quarters(&mut twin, 0, 256 * UNIT);
    twin.flush();
    let (written, programmed, senses) = since(&twin, before);
    assert_eq!((written, programmed), (4 * 256, 4 * 256));
    assert!(senses > 200, "{senses}");
}

#[test]
fn parts_at_random_are_not_merged() {
    let mut twin = merging();
    let mut random = Random::new(1, "test");
    let before = *twin.drive.counters();
    for _ in 0..400 {
        let quarter = random.below(twin.units() * 4);
        twin.request(Op::Write, quarter * QUARTER, QUARTER as u32);
    }
    twin.flush();
    let (written, programmed, senses) = since(&twin, before);
    assert_eq!((written, programmed), (400, 400));
    assert!(senses > 390, "{senses}: the rest of each unit is read");
}

#[test]
fn sixteen_streams_are_merged_and_seventeen_are_not() {
    for (streams, written) in [(16, 16 * 8), (17, 17 * 32)] {
        // Nothing is on it, so that no part waits for a read while its page is programmed.
        let mut twin = Twin::new(&profile_with_lines("[buffer]", "merges_writes = true"));
        let before = *twin.drive.counters();
        for part in 0..32 {
            for stream in 0..streams {
                twin.request(Op::Write, stream * 800 + part * QUARTER, QUARTER as u32);
            }
        }
        assert_eq!(since(&twin, before).0, written, "{streams} streams");
    }
}

#[test]
fn a_part_is_not_merged_with_a_unit_that_is_in_flash() {
    let mut twin = merging();
    twin.request(Op::Write, 0, QUARTER as u32);
    twin.flush();
    let before = *twin.drive.counters();
    twin.request(Op::Write, QUARTER, QUARTER as u32);
    twin.flush();
    assert_eq!(since(&twin, before), (1, 1, 1));
}

#[test]
fn whole_units_and_the_parts_at_both_ends_of_a_request_are_written_once() {
    let mut twin = merging();
    let before = *twin.drive.counters();
    // Requests of one and a half units: the second half of each other unit is merged.
    for request in 0..40 {
        twin.request(Op::Write, request * 12, 12);
    }
    twin.flush();
    let (written, programmed, _) = since(&twin, before);
    assert_eq!((written, programmed), (60, 60));
    twin.drive.assert_consistent();
}

#[test]
fn a_power_cut_loses_all_writes_that_were_merged_and_no_older_ones() {
    let mut random = Random::new(2, "cuts");
    let mut lost_writes = 0;
    for _ in 0..60 {
        let mut twin = merging();
        let parts = 1 + random.below(60);
        write_quarters(&mut twin, 0, parts * QUARTER);
        let buffered: Vec<u64> = (0..parts.div_ceil(4))
            .filter(|unit| twin.drive.locate(*unit) == UnitLocation::Buffer)
            .collect();
        let cut = twin.drive.power_cut(twin.drive.now());
        let units: Vec<u64> = cut.lost.iter().map(|each| each.unit).collect();
        assert_eq!(units, buffered);
        for lost in &cut.lost {
            assert!(lost.has_older, "the filled drive has older content");
            assert_eq!(u64::from(lost.writes), (parts - lost.unit * 4).min(4));
            lost_writes += lost.writes;
        }
        twin.drive.assert_consistent();
    }
    assert!(lost_writes > 100, "{lost_writes}");
}

#[test]
fn after_a_power_cut_no_write_continues_an_earlier_one() {
    for (cuts, senses) in [(false, 0), (true, 1)] {
        let mut twin = merging();
        write_quarters(&mut twin, 0, UNIT);
        twin.flush();
        if cuts {
            twin.drive.power_cut(twin.drive.now());
        }
        let before = *twin.drive.counters();
        twin.request(Op::Write, UNIT, QUARTER as u32);
        twin.flush();
        assert_eq!(since(&twin, before), (1, 1, senses), "cut: {cuts}");
    }
}
