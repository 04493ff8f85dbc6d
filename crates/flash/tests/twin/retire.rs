//! The end of a drive: blocks fail, spare shrinks, and finally the drive is read-only.

use crate::small::{PROFILE, Twin};
use ssdlab_device::{Device, IoError, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd, SuperblockState};
use ssdlab_time::Random;

fn mortal(cycles: u32) -> Profile {
    let line = format!("erase = \"3 ms\"\nfailure_cycles = {cycles}\nfailure_spread = 0.15");
    Profile::from_toml(&PROFILE.replace("erase = \"3 ms\"", &line)).unwrap()
}

fn retired(drive: &Ssd) -> usize {
    let retired = |each: &&ssdlab_flash::Superblock| each.state == SuperblockState::Retired;
    drive.superblocks().iter().filter(retired).count()
}

fn try_write(drive: &mut Ssd, unit: u64) -> Result<(), IoError> {
    let lba = Lba::new(unit * 8);
    drive.submit(Request::new(0, Op::Write, lba, 8)).unwrap();
    let mut done = Vec::new();
    drive.reap(Wait::One, &mut done).unwrap();
    done[0].outcome
}

#[test]
fn a_worn_drive_loses_its_spare_then_is_read_only_and_keeps_its_data() {
    let mut twin = Twin::new(&mortal(40));
    twin.write_all();
    let units = twin.units();
    let mut random = Random::new(4, "wear");
    let (mut writes, mut spare) = (0_u64, 100.0);
    while try_write(&mut twin.drive, random.below(units)) == Ok(()) {
        writes += 1;
        assert!(writes < 100 * units, "40 cycles end some time");
        if writes.is_multiple_of(5000) {
            twin.drive.assert_consistent();
            let service = twin.drive.service();
            assert!(service.spare_percent() <= spare, "spare only shrinks");
            spare = service.spare_percent();
            assert_eq!(retired(&twin.drive) as u32, service.at_first - service.now);
        }
    }
    let service = twin.drive.service();
    assert!(service.read_only && service.spare_percent() < 1e-9, "{service:?}");
    assert!(retired(&twin.drive) as u32 + service.owed > 5, "{service:?}");
    // The first of 200 blocks fails near 24 erases; the drive ends with a sixth of one die bad.
    let erases = twin.drive.wear().erases_mean;
    assert!((30.0..40.0).contains(&erases), "{erases} erases on average");
    assert_eq!(try_write(&mut twin.drive, 3), Err(IoError { errno: 5 }));
    twin.drive.assert_consistent();
    let before = twin.drive.counters().host_senses;
    twin.read_all();
    assert!(twin.drive.counters().host_senses > before + units / 8, "all can still be read");
}

#[test]
fn lifetime_is_proportional_to_cycles() {
    let writes = |cycles| {
        let mut twin = Twin::new(&mortal(cycles));
        let units = twin.units();
        let mut random = Random::new(4, "wear");
        let mut writes = 0_u32;
        while try_write(&mut twin.drive, random.below(units)) == Ok(()) {
            writes += 1;
        }
        f64::from(writes)
    };
    let ratio = writes(60) / writes(30);
    assert!((1.8..2.2).contains(&ratio), "twice the cycles last {ratio} times as long");
}

#[test]
fn without_failures_no_superblock_retires() {
    let mut twin = Twin::new(&Profile::from_toml(PROFILE).unwrap());
    twin.write_all();
    twin.write_random(3 * twin.units(), 1);
    assert_eq!(retired(&twin.drive), 0);
    assert!((twin.drive.service().spare_percent() - 100.0).abs() < 1e-9);
}
