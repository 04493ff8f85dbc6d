//! `Limited`: the system's allocator, which refuses a single allocation above a bound.

use std::alloc::{GlobalAlloc, Layout, System};

/// The largest allocation that any input may cause: the longest NBD request, and a little.
pub const ALLOCATION_MAX: usize = 33 << 20;

/// To be installed as the global allocator. A refused allocation ends the process.
pub struct Limited;

/// The caller gets a null pointer if an allocation fails.
fn limited(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    if bytes > ALLOCATION_MAX { std::ptr::null_mut() } else { allocate() }
}

// SAFETY: each call is passed on unchanged or refused with a null pointer, as the trait allows.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        limited(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        limited(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        limited(bytes, || unsafe { System.realloc(pointer, layout, bytes) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
