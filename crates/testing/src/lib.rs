//! What tests of several crates share: a drive with simple behaviour, and clients of NBD, of
//! `NVMe`/TCP and of the control socket. Their wire formats are written down independently of the
//! crates under test.

mod control;
mod drive;
pub mod nbd;
pub mod nvme;

use std::time::Duration;

use ssdlab_engine::pacing::wall_clock_now;

pub use control::Control;
pub use drive::{CAPACITY, DriveOptions, FakeDrive, MAX_TRANSFER, UNIT, counter, engine};

/// A server that does not reply for this long fails the test.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A number of random cases, times `SSDLAB_TEST_SCALE`, which `make test-long` sets.
pub fn scaled(cases: u32) -> u32 {
    cases * u32::try_from(variable("SSDLAB_TEST_SCALE", 1)).expect("a small number")
}

/// `SSDLAB_TEST_SEED`, from which random cases are drawn; 0 by default.
pub fn seed() -> u64 {
    variable("SSDLAB_TEST_SEED", 0)
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} is {value}; give a whole number"))
    })
}

/// Waits until a condition holds.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let end = wall_clock_now() + TIMEOUT;
    while !holds() {
        assert!(wall_clock_now() < end, "waited too long");
        std::thread::yield_now();
    }
}
