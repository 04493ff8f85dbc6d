//! Background work: collection policies, idle time, wear levelling, suspends; and the end of life:
//! blocks fail, the spare shrinks, and finally the drive is read-only.

use crate::small::{Twin, profile, profile_with, profile_with_lines};
use ssdlab_device::{Device, IoError, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Study, SuperblockState};
use ssdlab_time::{Nanos, Random};

fn with_ftl(lines: &str) -> Profile {
    profile_with_lines("[ftl]", lines)
}

#[test]
fn a_full_drive_stays_consistent_with_every_policy() {
    for victim in ["greedy", "fifo", "random", "d-choices", "cost-benefit"] {
        for relocation in ["separate", "mixed"] {
            let lines = format!("victim = \"{victim}\"\nrelocation = \"{relocation}\"");
            let mut twin = Twin::new(&with_ftl(&lines));
            twin.write_all();
            twin.write_random(2 * twin.units(), 3);
            twin.flush();
            twin.write_random(1000, 4);
            twin.drive.assert_consistent();
            let waf = twin.drive.counters().waf().unwrap();
            assert!((1.3..6.0).contains(&waf), "{victim}, {relocation}: {waf}");
        }
    }
}

#[test]
fn greedy_relocates_less_than_random() {
    let moves = |victim: &str| {
        let mut study = Study::new(&with_ftl(&format!("victim = \"{victim}\"")), 5);
        let units = study.logical_units();
        let mut random = Random::new(1, "test");
        (0..units).for_each(|unit| study.write(unit));
        (0..4 * units).for_each(|_| study.write(random.below(u64::from(units)) as u32));
        study.assert_consistent();
        study.counters().collection_moves
    };
    let (greedy, random) = (moves("greedy"), moves("random"));
    assert!(greedy * 3 < random * 2, "greedy moves {greedy}, random {random}");
}

#[test]
fn collection_in_idle_time_stops_at_the_idle_reserve() {
    let mut eager = Twin::new(&with_ftl("idle_reserve = 5"));
    let mut lazy = Twin::new(&with_ftl(""));
    for twin in [&mut eager, &mut lazy] {
        twin.write_all();
        twin.write_random(twin.units(), 3);
    }
    let moved = |twin: &Twin| twin.drive.counters().collection_moves;
    let (eager_before, lazy_before) = (moved(&eager), moved(&lazy));
    for twin in [&mut eager, &mut lazy] {
        twin.rest(Nanos::from_secs(10));
        twin.read(0, 1);
    }
    assert!(moved(&eager) > eager_before, "collection runs in idle time");
    assert_eq!(moved(&lazy), lazy_before, "without idle_reserve nothing moves in idle time");
    let after = moved(&eager);
    eager.rest(Nanos::from_secs(10));
    eager.read(0, 1);
    assert_eq!(moved(&eager), after, "idle_reserve is reached");
    eager.drive.assert_consistent();
}

#[test]
fn a_burst_is_faster_after_collection_in_idle_time() {
    let burst = |lines: &str| {
        let mut twin = Twin::new(&with_ftl(lines));
        twin.write_all();
        twin.write_random(2 * twin.units(), 3);
        twin.rest(Nanos::from_secs(20));
        let start = twin.drive.now();
        twin.write_random(1500, 8);
        twin.drive.now() - start
    };
    let (prepared, unprepared) = (burst("idle_reserve = 8"), burst(""));
    assert!(prepared * 10 < unprepared * 9, "prepared {prepared}, unprepared {unprepared}");
}

/// The highest and lowest erase count after writes to a tenth of the drive.
fn erase_counts(lines: &str) -> (u32, u32) {
    let mut study = Study::new(&with_ftl(lines), 1);
    let units = study.logical_units();
    let mut random = Random::new(1, "test");
    (0..units).for_each(|unit| study.write(unit));
    for _ in 0..60 * units {
        study.write(random.below(u64::from(units / 10)) as u32);
    }
    study.assert_consistent();
    (study.wear().erases_most, study.wear().erases_least)
}

#[test]
fn static_wear_levelling_levels_erase_counts_and_dynamic_does_not() {
    let (most, least) = erase_counts("wear_levelling = \"dynamic\"");
    assert!(least == 0 && most > 100, "cold blocks are not erased: {least} to {most}");
    let (most, least) = erase_counts("wear_levelling = \"static\"\nwear_spread = 16");
    assert!(most - least < 60, "erases from {least} to {most}");
}

#[test]
fn writes_of_wear_levelling_are_counted() {
    let lines = "wear_levelling = \"static\"\nwear_spread = 4";
    let mut study = Study::new(&with_ftl(lines), 1);
    let units = study.logical_units();
    (0..units).for_each(|unit| study.write(unit));
    (0..40 * units).for_each(|i| study.write(i % (units / 16)));
    let counters = study.counters();
    assert!(counters.nand_wear_writes > 0);
    let causes = counters.nand_host_writes
        + counters.nand_collection_writes
        + counters.nand_wear_writes
        + counters.nand_padding_writes;
    assert_eq!(causes, counters.nand_writes());
    study.assert_consistent();
}

#[test]
fn program_suspend_shortens_the_longest_read() {
    let slowest = |line: &str| {
        let mut twin = Twin::filled(&profile_with_lines("[flash]", line));
        let mut random = Random::new(1, "test");
        let mut slowest = Nanos::ZERO;
        for _ in 0..2000 {
            let unit = random.below(twin.units());
            twin.write(unit, 1);
            let unit = random.below(twin.units());
            slowest = slowest.max(twin.read(unit, 1));
        }
        slowest
    };
    let (waits, suspends) = (slowest(""), slowest("suspend = \"20 us\""));
    assert!(waits > Nanos::from_micros(700), "the longest read waits for a program: {waits}");
    assert!(suspends < Nanos::from_micros(400), "the longest read with suspends took {suspends}");
}

#[test]
fn a_drive_reads_map_pages_from_flash_if_they_are_not_cached() {
    let latency = |lines: &str| {
        let mut twin = Twin::filled(&with_ftl(lines));
        let mut random = Random::new(1, "test");
        let mut total = Nanos::ZERO;
        for _ in 0..500 {
            let unit = random.below(twin.units());
            total += twin.read(unit, 1);
        }
        twin.drive.assert_consistent();
        (total, *twin.drive.counters())
    };
    let (whole, counters) = latency("");
    assert_eq!((counters.mapping_senses, counters.nand_mapping_writes), (0, 0));
    // The map of 64 MiB has 4 pages of 16 KiB; one of them fits.
    let (part, counters) = latency("map_cache = \"16 KiB\"");
    assert!(counters.mapping_senses > 300, "three of four reads miss: {counters:?}");
    assert!(counters.nand_mapping_writes >= 3 * 4, "changed map pages were stored");
    assert!(part.get() * 10 > whole.get() * 15, "whole map cached {whole}, a part {part}");
    let (fits, _) = latency("map_cache = \"64 KiB\"");
    assert_eq!(fits, whole, "a cache for the whole map adds no latency");
}

#[test]
fn percentage_used_is_the_mean_erase_count_over_the_endurance() {
    let mut twin = Twin::new(&profile_with_lines("[flash]", "endurance = 50"));
    assert_eq!(twin.drive.wear().percentage_used, Some(0.0));
    (0..10).for_each(|_| twin.write_all());
    let wear = twin.drive.wear();
    // Ten times 64 MiB on 89 MiB of flash: about 6 erases per block.
    assert!((5.0..8.0).contains(&wear.erases_mean), "{wear:?}");
    assert_eq!(wear.percentage_used, Some(2.0 * wear.erases_mean));
    assert!(f64::from(wear.erases_most) - wear.erases_mean < 2.5, "{wear:?}");
    assert_eq!(Twin::new(&with_ftl("")).drive.wear().percentage_used, None);
}

#[test]
fn with_a_flush_after_each_write_relocations_are_still_spread_over_requests() {
    let mut twin = Twin::new(&with_ftl(""));
    twin.write_all();
    twin.write_random(2 * twin.units(), 3);
    let mut random = Random::new(1, "test");
    let (mut most, mut before) = (0, twin.drive.counters().collection_moves);
    for _ in 0..3000 {
        let unit = random.below(twin.units());
        twin.write(unit, 1);
        twin.flush();
        let moves = twin.drive.counters().collection_moves;
        most = most.max(moves - before);
        before = moves;
    }
    // A superblock has 512 units; a padded page of 8 units causes a few dozen moves.
    assert!((1..100).contains(&most), "{most} moves in one request");
    twin.drive.assert_consistent();
}

#[test]
fn read_ahead_continues_across_superblocks() {
    let mut twin = Twin::new(&with_ftl("read_ahead = \"128 KiB\""));
    // After random writes, superblocks are not filled in the order of their numbers.
    twin.write_all();
    twin.write_random(2 * twin.units(), 3);
    (0..3).for_each(|_| twin.write_all());
    twin.flush();
    twin.rest(Nanos::from_secs(1));
    let (mut slow, mut commands) = (0, 0);
    for unit in (64..twin.units()).step_by(32) {
        // A read-ahead hit waits for the link only, not for a sense of 50 us.
        slow += u32::from(twin.read(unit, 32) > Nanos::from_micros(20 + 134 + 25));
        commands += 1;
    }
    let borders = twin.units() / 512;
    assert!(
        u64::from(slow) < borders / 4,
        "{slow} slow of {commands} reads, {borders} superblock borders"
    );
}

#[test]
fn trims_take_time_per_command_and_length_and_do_not_overlap() {
    let trim = "[trim]\ntime = \"100 us\"\ntime_per_gib = \"16 ms\"\n[buffer]";
    let mut twin = Twin::new(&profile_with("[buffer]", trim));
    // 5 us for the command, 100 us, and 16 ms / 1024 per MiB.
    let (small, large) = (twin.request(Op::Trim, 0, 8), twin.request(Op::Trim, 0, 64 << 11));
    assert_eq!(small, Nanos::new(5_000 + 100_000 + 16_000_000 / 262_144));
    assert_eq!(large, Nanos::new(5_000 + 100_000 + 1_000_000));
    for id in 0..2 {
        twin.drive.submit(Request::new(id, Op::Trim, Lba::new(0), 8)).unwrap();
    }
    let mut done = Vec::new();
    twin.drive.reap(Wait::One, &mut done).unwrap();
    twin.drive.reap(Wait::One, &mut done).unwrap();
    assert_eq!(done[1].completed - done[0].completed, small - Nanos::from_micros(5));
}

#[test]
fn writes_smaller_than_a_mapping_unit_cause_reads_and_write_amplification() {
    let large = profile_with("mapping_unit = \"4 KiB\"", "mapping_unit = \"16 KiB\"");
    let mut twin = Twin::new(&large);
    let sectors = twin.units() * 8;
    for lba in (0..sectors).step_by(512) {
        twin.request(Op::Write, lba, 512);
    }
    twin.flush();
    let before = *twin.drive.counters();
    let mut random = Random::new(1, "test");
    for _ in 0..1000 {
        twin.request(Op::Write, random.below(sectors / 32) * 32 + 8, 8);
    }
    twin.flush();
    let after = *twin.drive.counters();
    let bytes = after.host_write_bytes - before.host_write_bytes;
    assert_eq!(bytes, 1000 * 4096);
    let flash = (after.nand_writes() - before.nand_writes()) * after.unit_bytes;
    assert!(flash >= 4 * bytes, "a quarter of each unit is new: {flash} bytes for {bytes}");
    let senses = after.host_senses - before.host_senses;
    assert!((900..=1000).contains(&senses), "all except those still in the buffer: {senses}");
}

fn failing_after(cycles: u32) -> Profile {
    let lines = format!("failure_cycles = {cycles}\nfailure_spread = 0.15");
    profile_with_lines("[flash]", &lines)
}

fn retired(twin: &Twin) -> usize {
    let superblocks = twin.drive.superblocks();
    superblocks.iter().filter(|each| each.state == SuperblockState::Retired).count()
}

fn try_write(twin: &mut Twin, unit: u64) -> Result<(), IoError> {
    twin.run(Request::new(0, Op::Write, Lba::new(unit * 8), 8)).outcome
}

#[test]
fn a_worn_drive_loses_its_spare_then_becomes_read_only_and_keeps_its_data() {
    let mut twin = Twin::new(&failing_after(40));
    twin.write_all();
    let units = twin.units();
    let mut random = Random::new(4, "wear");
    let (mut writes, mut spare) = (0_u64, 100.0);
    while try_write(&mut twin, random.below(units)) == Ok(()) {
        writes += 1;
        assert!(writes < 100 * units, "the drive fails after about 40 cycles");
        if writes.is_multiple_of(5000) {
            twin.drive.assert_consistent();
            let service = twin.drive.service();
            assert!(service.spare_percent() <= spare, "spare only shrinks");
            spare = service.spare_percent();
            assert_eq!(retired(&twin) as u32, service.at_first - service.now);
        }
    }
    let service = twin.drive.service();
    assert!(service.read_only && service.spare_percent() < 1e-9, "{service:?}");
    assert!(retired(&twin) as u32 + service.owed > 5, "{service:?}");
    // The first of 200 blocks fails at about 24 erases; at the end, a sixth of one die is bad.
    let erases = twin.drive.wear().erases_mean;
    assert!((30.0..40.0).contains(&erases), "{erases} erases on average");
    assert_eq!(try_write(&mut twin, 3), Err(IoError { errno: 5 }));
    twin.drive.assert_consistent();
    let before = twin.drive.counters().host_senses;
    twin.read_all();
    assert!(twin.drive.counters().host_senses > before + units / 8, "all data can still be read");
}

#[test]
fn total_writes_are_proportional_to_failure_cycles() {
    let writes = |cycles| {
        let mut twin = Twin::new(&failing_after(cycles));
        let units = twin.units();
        let mut random = Random::new(4, "wear");
        let mut writes = 0_u32;
        while try_write(&mut twin, random.below(units)) == Ok(()) {
            writes += 1;
        }
        f64::from(writes)
    };
    let ratio = writes(60) / writes(30);
    assert!((1.8..2.2).contains(&ratio), "twice the cycles last {ratio} times as long");
}

#[test]
fn without_failures_no_superblock_retires() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.write_random(3 * twin.units(), 1);
    assert_eq!(retired(&twin), 0);
    assert!((twin.drive.service().spare_percent() - 100.0).abs() < 1e-9);
}
