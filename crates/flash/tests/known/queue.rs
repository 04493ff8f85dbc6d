//! The drive with timing under garbage collection: completions, Little's law, die utilization.
//!
//! That each request completes once and in order is tested for any device by the conformance test
//! of `ssdlab-workload`, and after every step of a random sequence by `tests/twin/drive.rs`.

use ssdlab_device::{Device, Op};
use ssdlab_flash::{Profile, Study};
use ssdlab_time::{Nanos, Random};

use crate::host::{Host, request};
use crate::simulation::{Drive, FOUR_DIES};

const DIES: u64 = 4;
const PAGE_UNITS: u64 = 8;

fn profile() -> Profile {
    profile_with(0.2, "")
}

fn profile_with(spare: f64, ftl: &'static str) -> Profile {
    Drive { units: 512, superblocks: 128, spare, ftl }.profile_on(FOUR_DIES, 16)
}

fn write_sequentially(host: &mut Host) {
    (0..host.units()).for_each(|unit| host.submit(request(Op::Write, unit, 1), 64));
}

fn write_randomly(host: &mut Host, writes: u64, random: &mut Random) {
    let units = host.units();
    (0..writes).for_each(|_| host.submit(request(Op::Write, random.below(units), 1), 64));
}

/// A drive that was filled and then overwritten at random twice, with nothing in flight.
fn aged() -> Host {
    let mut host = Host::new(&profile());
    write_sequentially(&mut host);
    let writes = 2 * host.units();
    write_randomly(&mut host, writes, &mut Random::new(7, "age"));
    host.drain();
    host
}

#[test]
fn under_collection_at_depth_64_every_request_completes_and_littles_law_holds() {
    let mut host = aged();
    let (first, start) = (host.done.len(), host.drive.now());
    let moves_before = host.drive.counters().collection_moves;
    let mut random = Random::new(9, "mix");
    for _ in 0..60_000 {
        let op = if random.below(3) == 0 { Op::Read } else { Op::Write };
        host.submit(request(op, random.below(host.units()), 1), 64);
    }
    let end = host.drive.now();
    host.drain();
    let moves = host.drive.counters().collection_moves - moves_before;
    assert!(moves > 10_000, "collection moved only {moves} units");
    let done = &host.done[first..];
    let mut ids: Vec<u64> = done.iter().map(|each| each.id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(first as u64..host.submitted), "each request completes once");
    let latencies: Nanos = done.iter().map(|each| each.completed.min(end) - each.submitted).sum();
    let outstanding = latencies.get() as f64 / (end - start).get() as f64;
    assert!((63.9..=64.0).contains(&outstanding), "{outstanding} of 64 were outstanding");
    host.drive.assert_consistent();
}

#[test]
fn dies_execute_one_operation_at_a_time() {
    let mut host = aged();
    let (start, before) = (host.drive.now(), *host.drive.counters());
    write_randomly(&mut host, 40_000, &mut Random::new(9, "write"));
    host.drain();
    let (elapsed, after) = (host.drive.now() - start, host.drive.counters());
    let pages = (after.nand_writes() - before.nand_writes()) / PAGE_UNITS;
    let busy = Nanos::from_micros(700) * pages
        + Nanos::from_millis(3) * (after.erases - before.erases)
        + Nanos::from_micros(50) * (after.collection_senses - before.collection_senses);
    let share = busy.get() as f64 / (elapsed.get() * DIES) as f64;
    // At the end, programs of the buffer's size may be queued: 1 % of all. Dies wait for each
    // other: a page is programmed when all of its units have been fetched from other dies.
    assert!((0.4..1.01).contains(&share), "dies are busy for {share} of the time");
}

#[test]
fn latency_is_at_least_overhead_and_transfer_time() {
    let mut host = aged();
    let first = host.done.len();
    let mut random = Random::new(9, "mix");
    let mut reads = Vec::new();
    for _ in 0..20_000 {
        let read = random.below(2) == 0;
        reads.push(read);
        let op = if read { Op::Read } else { Op::Write };
        host.submit(request(op, random.below(host.units()), 1), 16);
    }
    host.drain();
    for each in &host.done[first..] {
        // 4 KiB at 3000 MB/s.
        let overhead = if reads[each.id as usize - first] { 20_000 } else { 5_000 };
        assert!(each.completed - each.submitted >= Nanos::new(overhead + 1_365), "{each:?}");
    }
    assert!(host.done[first..].is_sorted_by_key(|each| each.completed));
}

#[test]
fn timing_changes_counts_only_where_an_erase_has_to_wait() {
    let (profile, mut random) = (profile(), Random::new(3, "both"));
    let units = profile.logical_units();
    let mut host = Host::new(&profile);
    let mut study = Study::new(&profile, 1);
    for index in 0..4 * units {
        let unit = if index < units { index } else { random.below(units) };
        host.submit(request(Op::Write, unit, 1), 32);
        study.write(unit as u32);
        if index % 10_000 == 0 {
            // An erase waits for programs, so other superblocks are free and a page may be padded.
            let (timed, untimed) = (host.drive.counters(), study.counters());
            assert_eq!(timed.host_writes, untimed.host_writes);
            let ratio = timed.nand_writes() as f64 / untimed.nand_writes().max(1) as f64;
            assert!(index == 0 || (0.99..1.01).contains(&ratio), "{timed:?}, {untimed:?}");
        }
    }
    host.drain();
    assert!(study.counters().collection_moves > units);
}

#[test]
fn more_spare_speeds_up_writes_slightly_more_than_it_reduces_amplification() {
    let measure = |spare: f64| {
        let mut host = Host::new(&profile_with(spare, ""));
        let units = host.units();
        write_sequentially(&mut host);
        let mut random = Random::new(7, "spare");
        write_randomly(&mut host, 3 * units, &mut random);
        let (start, before) = (host.drive.now(), host.drive.counters().nand_writes());
        write_randomly(&mut host, 2 * units, &mut random);
        let writes = 2.0 * units as f64;
        let programs = host.drive.counters().nand_writes() - before;
        (writes / (host.drive.now() - start).get() as f64, programs as f64 / writes)
    };
    let ((slow, high_waf), (fast, low_waf)) = (measure(0.0685), measure(0.2724));
    let (speed, saved) = (fast / slow, high_waf / low_waf);
    // Relocated units must also be read first, and a program waits for them.
    let gain = speed / saved;
    assert!((1.0..1.3).contains(&gain), "{speed} times the speed, {saved} times fewer writes");
}

/// Seconds until `work` is done and flushed.
fn seconds(host: &mut Host, work: impl FnOnce(&mut Host)) -> f64 {
    let start = host.drive.now();
    work(host);
    host.drain();
    host.flush();
    (host.drive.now() - start).get() as f64 / 1e9
}

/// Seconds for a sequential fill, a sequential read, and random writes.
fn durations(host: &mut Host) -> [f64; 3] {
    let units = host.units();
    let fill = seconds(host, write_sequentially);
    let read = seconds(host, |host| {
        (0..units).for_each(|unit| host.submit(request(Op::Read, unit, 1), 64));
    });
    let write = seconds(host, |host| write_randomly(host, 8000, &mut Random::new(5, "pace")));
    [fill, read, write]
}

#[test]
fn trimming_everything_restores_the_speed_of_a_fresh_drive() {
    let mut host = Host::new(&profile_with(0.2, "idle_reserve = 125"));
    let units = host.units();
    let fresh = durations(&mut host);
    write_randomly(&mut host, 2 * units, &mut Random::new(7, "age"));
    host.drain();
    let aged = durations(&mut host);
    (0..units).for_each(|unit| host.submit(request(Op::Trim, unit, 1), 64));
    host.drain();
    // Time to erase the superblocks without valid data.
    host.rest(Nanos::from_secs(10));
    let trimmed = durations(&mut host);
    for (fresh, trimmed) in fresh.into_iter().zip(trimmed) {
        assert!((trimmed / fresh - 1.0).abs() < 0.01, "fresh {fresh} s, trimmed {trimmed} s");
    }
    assert!(aged[0] > 2.0 * fresh[0] && aged[2] > 1.1 * fresh[2], "{aged:?}, fresh {fresh:?}");
}
