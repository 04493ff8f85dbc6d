//! The fuzz targets: functions that take any bytes and panic if the code under test is wrong.
//!
//! `fuzz/` hands these functions to libFuzzer; `tests/corpus.rs` runs them on the stored corpus
//! and on mutations of it, with a stable toolchain. The first byte of most inputs selects a
//! configuration (`harness::Setup`).

mod allocation;
mod control;
mod harness;
mod nbd;
mod nvme;
mod profile;
mod trace;

pub use allocation::{ALLOCATION_MAX, LimitedAllocator};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets in Rust.
pub const TARGETS: [Target; 7] = [
    ("nbd_negotiation", nbd::negotiation),
    ("nbd_session", nbd::session),
    ("nvme_pdu", nvme::pdu),
    ("nvme_command", nvme::command),
    ("control", control::control),
    ("profile", profile::profile),
    ("trace", trace::trace),
];

/// Runs a target on an input.
///
/// # Panics
/// The name is unknown, or the code under test is wrong.
pub fn run(target: &str, input: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target's name");
    run(input);
}
