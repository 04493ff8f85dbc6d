//! The fuzz targets: functions that take any bytes and panic if the code under test is wrong.
//!
//! `fuzz/` hands these functions to libFuzzer; `tests/corpus.rs` runs them on the stored corpus
//! and on mutations of it, with a stable toolchain. The first byte of most inputs selects a
//! configuration (`harness::Setup`).

mod control;
mod files;
mod harness;
mod nbd;
mod nvme;

use std::alloc::{GlobalAlloc, Layout, System};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets in Rust.
pub const TARGETS: [Target; 7] = [
    ("nbd_negotiation", nbd::negotiation),
    ("nbd_session", nbd::session),
    ("nvme_pdu", nvme::pdu),
    ("nvme_command", nvme::command),
    ("control", control::control),
    ("profile", files::profile),
    ("trace", files::trace),
];

/// Runs a target on an input.
pub fn run(target: &str, input: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target's name");
    run(input);
}

/// Largest allocation that an input may cause: the longest NBD request, and some room.
pub const ALLOCATION_MAX: usize = 33 << 20;

/// The system's allocator with a limit on the size of an allocation. An allocation that it refuses
/// ends the process.
pub struct LimitedAllocator;

/// Calls `allocate`, or returns null if the allocation is too large.
fn limited(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    if bytes > ALLOCATION_MAX { std::ptr::null_mut() } else { allocate() }
}

// SAFETY: each call is forwarded unchanged, or refused with a null pointer, as the trait allows.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of the same method.
        limited(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of the same method.
        limited(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of the same method.
        limited(bytes, || unsafe { System.realloc(pointer, layout, bytes) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.dealloc(pointer, layout) }
    }
}
