//! Large arrays of zeros that use memory only where they are written, in huge pages.

use rustix::mm::{Advice, madvise};

/// The size of a huge page, below which they gain nothing.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// An array of zeros.
///
/// Maps are read at random, a different 4 KiB page of the host's memory each time. Without huge
/// pages, TLB misses take up most of the time of a simulated write.
pub fn zeros<T: Copy + Default>(length: usize) -> Vec<T> {
    let mut table = vec![T::default(); length];
    let bytes = std::mem::size_of_val(table.as_slice());
    let page = rustix::param::page_size();
    let start = table.as_mut_ptr().cast::<u8>();
    let skip = start.align_offset(page);
    if bytes >= HUGE_PAGE_BYTES {
        let whole = (bytes - skip) / page * page;
        // SAFETY: the range is whole pages inside the vector; the advice changes no content.
        // A system without huge pages refuses it, which costs speed and nothing else.
        let _ = unsafe { madvise(start.add(skip).cast(), whole, Advice::LinuxHugepage) };
    }
    table
}

/// Prefetches an element into the processor's cache, without waiting for it.
#[inline]
pub fn prefetch<T>(table: &[T], index: usize) {
    if let Some(element) = table.get(index) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch of a valid reference's address reads and writes nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = element;
    }
}
