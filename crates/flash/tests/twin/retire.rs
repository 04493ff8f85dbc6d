//! End of life: blocks fail, the spare shrinks, and finally the drive is read-only.

use crate::small::{Twin, profile, profile_with_lines};
use ssdlab_device::{IoError, Lba, Op, Request};
use ssdlab_flash::{Profile, SuperblockState};
use ssdlab_time::Random;

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
