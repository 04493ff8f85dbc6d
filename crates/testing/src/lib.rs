//! What tests of several crates share: a drive with simple behaviour, and the wire formats of NBD
//! and `NVMe` as a client sends them, written down independently of the crates under test.

mod drive;
pub mod nbd;
pub mod nvme;

pub use drive::{CAPACITY, DriveOptions, FakeDrive, MAX_TRANSFER, UNIT, counter, engine};
