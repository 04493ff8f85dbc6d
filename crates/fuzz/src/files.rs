//! Profiles and traces: any file is refused with an error of one line, or describes a working twin,
//! or is read to its end.

use std::io::Write;
use std::os::fd::AsRawFd;

use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_workload::trace::{Format, Replay, Statistics};

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
    check_profile(&profile);
    match profile.scaled_to(profile.capacity / 3) {
        Ok(scaled) => check_profile(&scaled),
        Err(error) => check_line(&error.to_string()),
    }
}

fn check_line(error: &str) {
    assert!(!error.is_empty() && !error.contains('\n'), "not one line: {error:?}");
}

fn check_profile(profile: &Profile) {
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
        twin.submit(Request::new(id, op, lba, unit_blocks)).expect("a request within the drive");
        twin.reap(Wait::One, &mut done).expect("a twin completes");
    }
    twin.power_cut(twin.now());
    twin.assert_consistent();
}

/// The first byte selects the format, or its detection. The rest is the file.
pub fn trace(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let format = Format::ALL.get(usize::from(first >> 1)).map(|format| format.name().to_owned());
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = rustix::fs::memfd_create("trace", flags).expect("a file in memory");
    let mut file = std::fs::File::from(file);
    file.write_all(bytes).expect("memory is writable");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    let replay = Replay { path, format, any_order: first & 1 == 1, ..Replay::default() };
    match Statistics::collect(&replay) {
        Ok(found) => check_statistics(&found),
        Err(error) => {
            let line = error.to_string();
            check_line(&line);
            assert!(line.contains("/proc/self/fd/"), "{line:?}");
        }
    }
}

fn check_statistics(found: &Statistics) {
    assert!(found.requests.iter().sum::<u64>() > 0, "a trace without requests");
    assert!(found.written_footprint_bytes <= found.footprint_bytes);
    assert!((0.0..=1.0).contains(&found.hottest_fifth), "{}", found.hottest_fifth);
}
