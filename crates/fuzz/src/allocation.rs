//! `LimitedAllocator`: the system's allocator with a limit on the size of an allocation.

use std::alloc::{GlobalAlloc, Layout, System};

/// Largest allocation that an input may cause: the longest NBD request, and some room.
pub const ALLOCATION_MAX: usize = 33 << 20;

/// A global allocator. An allocation that it refuses ends the process.
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
