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
pub const TIMEOUT: Duration = Duration::from_secs(600);

/// Waits until a condition holds.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let end = wall_clock_now() + TIMEOUT;
    while !holds() {
        assert!(wall_clock_now() < end, "waited too long");
        std::thread::yield_now();
    }
}
