//! Profiles: any text is refused with an error of one line, or describes a working twin.

use ssdlab_device::{Device, Hint, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};

/// Twins of larger profiles are not built: it takes too long.
const UNITS_MAX: u64 = 1 << 15;
const REQUESTS: u64 = 64;

/// The text of a profile.
pub fn profile(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let profile = match Profile::from_toml(text) {
        Ok(profile) => profile,
        Err(error) => return check_line(&error.to_string()),
    };
    check(&profile);
    match profile.scaled_to(profile.capacity / 3) {
        Ok(scaled) => check(&scaled),
        Err(error) => check_line(&error.to_string()),
    }
}

fn check_line(error: &str) {
    assert!(!error.is_empty() && !error.contains('\n'), "not one line: {error:?}");
}

fn check(profile: &Profile) {
    let geometry = &profile.geometry;
    assert!(profile.capacity > 0 && profile.capacity < geometry.bytes());
    assert_eq!(profile.logical_units() * geometry.unit_bytes(), profile.capacity);
    assert!(profile.spare().is_finite() && profile.spare() > 0.0);
    if geometry.units() <= UNITS_MAX {
        use_twin(profile);
    }
}

/// Writes, reads and trims a twin of the profile, then cuts its power.
fn use_twin(profile: &Profile) {
    let mut twin = Ssd::new(profile, 0);
    let unit_blocks = (twin.unit_bytes() / twin.sector_bytes()).max(1) as u32;
    let blocks = twin.capacity_bytes() / twin.sector_bytes();
    let mut done = Vec::new();
    for id in 0..REQUESTS {
        let op = [Op::Write, Op::Write, Op::Read, Op::Trim][id as usize % 4];
        let at = id * 7 * u64::from(unit_blocks) % (blocks - u64::from(unit_blocks) + 1);
        let lba = Lba::from_bytes(at * twin.sector_bytes());
        let request =
            Request { id, op, lba, blocks: unit_blocks, durable: false, hint: Hint::None };
        twin.submit(request).expect("a request within the drive");
        twin.reap(Wait::One, &mut done).expect("a twin completes");
    }
    twin.power_cut(twin.now());
    twin.assert_consistent();
}
