//! Two twins as RAID 1.

use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Mirror, Ssd};

use crate::small::{profile, profile_with_lines};

const UNIT: u64 = 4096;

/// Submits requests of one unit each, all at once, and waits for them.
fn all_at_once(
    device: &mut impl Device,
    op: Op,
    units: impl Iterator<Item = u64>,
) -> Vec<Completion> {
    let mut done = Vec::new();
    for (id, unit) in units.enumerate() {
        if id >= device.queue_depth() {
            device.reap(Wait::One, &mut done).unwrap();
        }
        device.submit(Request::new(id as u64, op, Lba::new(unit * 8), 8)).unwrap();
    }
    loop {
        let before = done.len();
        device.reap(Wait::One, &mut done).unwrap();
        if done.len() == before {
            return done;
        }
    }
}

#[test]
fn both_drives_get_each_write_and_a_mirror_of_equal_drives_is_as_fast_as_one() {
    let (mut mirror, mut single) = (Mirror::new(&profile(), 0), Ssd::new(&profile(), 0));
    let units = || (0..4096).map(|each| each * 37 % 4096);
    let mirrored = all_at_once(&mut mirror, Op::Write, units());
    assert_eq!(mirrored, all_at_once(&mut single, Op::Write, units()));
    for member in mirror.members() {
        assert_eq!(member.counters().host_writes, 4096);
        assert_eq!(member.mapped_units(), 4096);
    }
    all_at_once(&mut mirror, Op::Trim, 0..1024);
    assert!(mirror.members().iter().all(|member| member.mapped_units() == 3072));
}

#[test]
fn a_write_completes_with_the_slower_drive() {
    // Random victims: the drives' own seeds make them differ once they collect.
    let profile = profile_with_lines("[ftl]", "victim = \"random\"");
    let mut mirror = Mirror::new(&profile, 0);
    let units = mirror.capacity_bytes() / UNIT;
    let mut single = Ssd::new(&profile, 0);
    for pass in 0..4 {
        let order = |each: u64| (each * 48_271 + pass * 7) % units;
        all_at_once(&mut mirror, Op::Write, (0..units).map(order));
        all_at_once(&mut single, Op::Write, (0..units).map(order));
    }
    let [first, second] = mirror.members();
    assert_ne!(first.counters().collection_moves, second.counters().collection_moves);
    assert!(mirror.now() > single.now(), "{:?} {:?}", mirror.now(), single.now());
}

#[test]
fn reads_are_shared_between_the_drives() {
    let mut mirror = Mirror::new(&profile(), 0);
    all_at_once(&mut mirror, Op::Write, 0..1024);
    mirror.submit(Request::flush(0)).unwrap();
    mirror.reap(Wait::One, &mut Vec::new()).unwrap();
    all_at_once(&mut mirror, Op::Read, 0..1024);
    let reads = mirror.members().each_ref().map(|member| member.counters().host_reads);
    assert_eq!(reads.iter().sum::<u64>(), 1024);
    assert!(reads[0].abs_diff(reads[1]) < 256, "{reads:?}");
}

#[test]
fn a_resync_writes_the_whole_second_drive_and_takes_time() {
    let mut mirror = Mirror::new(&profile(), 0);
    let units = mirror.capacity_bytes() / UNIT;
    all_at_once(&mut mirror, Op::Write, 0..16);
    let before = mirror.now();
    mirror.resync();
    let [first, second] = mirror.members();
    assert_eq!((first.mapped_units(), second.mapped_units()), (16, units));
    assert_eq!(first.counters().host_writes, 16);
    assert_eq!(second.counters().host_writes, 16 + units);
    assert!(mirror.now() > before);
    assert!(mirror.members().iter().all(|member| member.now() == mirror.now()));
    all_at_once(&mut mirror, Op::Trim, 0..units);
    assert!(mirror.members().iter().all(|member| member.mapped_units() == 0));
}
