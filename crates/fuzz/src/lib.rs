//! What the fuzz targets run: each takes any bytes, and panics where the code under test is wrong.
//!
//! `fuzz/` hands these functions to libFuzzer; `tests/corpus.rs` runs them on the stored corpus
//! with a stable toolchain. The first byte of most inputs chooses a configuration (`bed::Setup`).

mod allocation;
mod bed;
mod control;
mod nbd;
mod nvme;
mod profile;
mod toy;
mod trace;

pub use allocation::{ALLOCATION_MAX, Limited};

/// A fuzz target: its name, which is that of its corpus, and what it runs.
pub type Target = (&'static str, fn(&[u8]));

/// All targets in Rust.
pub const TARGETS: [Target; 7] = [
    ("nbd_negotiation", nbd::negotiation),
    ("nbd_session", nbd::session),
    ("nvme_pdu", nvme::pdu),
    ("nvme_command", nvme::command),
    ("control", control::control),
    ("profile", profile::profile),
    ("trace", trace::trace),
];

/// Runs the target of this name on an input.
///
/// # Panics
/// There is no such target, or the code under test is wrong.
pub fn run(target: &str, input: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target's name");
    run(input);
}
