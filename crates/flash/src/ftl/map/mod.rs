//! The maps between units and flash addresses, and the part of them that is in memory.

mod cache;

pub use cache::MapCache;

use crate::nand::Ppn;

/// The number of a mapping unit, counted over the host's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lpn(pub u32);

/// The flash address of each mapping unit.
///
/// An entry is the address plus one, or 0 if the unit is unmapped: the table of an empty drive is
/// all zeros and uses memory only where something was written.
#[derive(Clone, Debug)]
pub struct L2p {
    entries: Vec<u32>,
}

impl L2p {
    pub fn new(logical_units: u64) -> Self {
        Self { entries: zeros(logical_units as usize) }
    }

    #[inline]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries[lpn.0 as usize].checked_sub(1).map(Ppn)
    }

    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.entries, lpn.0 as usize);
    }

    /// Maps a unit; returns its previous address.
    #[inline]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let entry = &mut self.entries[lpn.0 as usize];
        std::mem::replace(entry, ppn.0 + 1).checked_sub(1).map(Ppn)
    }

    /// Maps a unit without waiting for the old entry to be read.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) {
        self.entries[lpn.0 as usize] = ppn.0 + 1;
    }

    /// Unmaps a unit; returns its previous address.
    pub fn clear(&mut self, lpn: Lpn) -> Option<Ppn> {
        std::mem::take(&mut self.entries[lpn.0 as usize]).checked_sub(1).map(Ppn)
    }

    pub fn lpns(&self) -> impl Iterator<Item = Lpn> + use<> {
        (0..self.entries.len() as u32).map(Lpn)
    }
}

/// The unit that each address was written for, and whether it holds the unit's current content.
#[derive(Clone, Debug)]
pub struct P2l {
    lpns: Vec<u32>,
    valid: Vec<u64>,
}

impl P2l {
    /// All `units` addresses invalid.
    pub fn new(units: u64) -> Self {
        let units = units as usize;
        Self { lpns: zeros(units), valid: zeros(units.div_ceil(64)) }
    }

    /// The unit that was written to an address.
    #[inline]
    pub fn lpn(&self, ppn: Ppn) -> Lpn {
        Lpn(self.lpns[ppn.0 as usize])
    }

    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[ppn.0 as usize / 64] >> (ppn.0 % 64) & 1 == 1
    }

    /// The valid addresses among `units` (at most 64) from `first` on: bit 0 is the first.
    #[inline]
    pub fn valid_mask(&self, first: Ppn, units: u32) -> u64 {
        let (word, shift) = (first.0 as usize / 64, first.0 % 64);
        let mut bits = self.valid[word] >> shift;
        if shift + units > 64 {
            bits |= self.valid[word + 1] << (64 - shift);
        }
        bits & (u64::MAX >> (64 - units))
    }

    pub fn valid_count(&self) -> u64 {
        self.valid.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Prefetches an address's valid bit.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        prefetch(&self.valid, ppn.0 as usize / 64);
    }

    /// Records the unit that is written to an address, and makes the address valid.
    #[inline]
    pub fn set(&mut self, ppn: Ppn, lpn: Lpn) {
        self.lpns[ppn.0 as usize] = lpn.0;
        self.restore(ppn);
    }

    #[inline]
    pub fn restore(&mut self, ppn: Ppn) {
        self.valid[ppn.0 as usize / 64] |= 1 << (ppn.0 % 64);
    }

    #[inline]
    pub fn invalidate(&mut self, ppn: Ppn) {
        self.valid[ppn.0 as usize / 64] &= !(1 << (ppn.0 % 64));
    }

    /// Makes the addresses of `mask`, counted from `first`, invalid.
    #[inline]
    pub fn invalidate_mask(&mut self, first: Ppn, mask: u64) {
        let (word, shift) = (first.0 as usize / 64, first.0 % 64);
        self.valid[word] &= !(mask << shift);
        if shift > 0 && mask >> (64 - shift) > 0 {
            self.valid[word + 1] &= !(mask >> (64 - shift));
        }
    }
}

/// A large array of zeros that uses memory only where it is written, in huge pages.
///
/// Maps are read at random, a different 4 KiB page of the host's memory each time. Without huge
/// pages, TLB misses take up most of the time of a simulated write.
fn zeros<T: Copy + Default>(length: usize) -> Vec<T> {
    let mut table = vec![T::default(); length];
    advise_huge_pages(&mut table);
    table
}

#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(table: &mut [T]) {
    use rustix::mm::{Advice, madvise};

    /// The size of a huge page, below which they gain nothing.
    const HUGE_PAGE_BYTES: usize = 2 << 20;
    let bytes = std::mem::size_of_val(table);
    let page = rustix::param::page_size();
    let start = table.as_mut_ptr().cast::<u8>();
    let skip = start.align_offset(page);
    if bytes >= HUGE_PAGE_BYTES {
        let whole = (bytes - skip) / page * page;
        // SAFETY: the range is whole pages inside the vector; the advice changes no content.
        // A system without huge pages refuses it, which costs speed and nothing else.
        let _ = unsafe { madvise(start.add(skip).cast(), whole, Advice::LinuxHugepage) };
    }
}

/// WebAssembly has no pages to advise, and other systems choose by themselves.
#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<T>(_table: &mut [T]) {}

/// Prefetches an element into the processor's cache, without waiting for it.
#[inline]
fn prefetch<T>(table: &[T], index: usize) {
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
