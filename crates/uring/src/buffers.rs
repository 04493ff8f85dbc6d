//! Buffers: aligned memory for each slot and direction, the free slots, the written content.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::slice;

use ssdlab_time::Random;

use crate::{OpenError, OpenOptions};

/// What every buffer is aligned to, at least: a page.
const ALIGN_MIN: usize = 4096;

/// The memory that requests read into and write from.
///
/// Reads and writes have buffers of their own: a read would replace the random content that the
/// slot's next write needs.
#[derive(Debug)]
pub struct Buffers {
    memory: Memory,
    /// From one buffer to the next, in bytes.
    stride: usize,
    slots: usize,
    /// Slots without a request; the last one freed is used first, it is still in the CPU's cache.
    free: Vec<usize>,
    random: Random,
}

impl Buffers {
    /// Buffers for `queue_depth` requests of up to `request_bytes_max` bytes, all in memory.
    pub fn new(options: &OpenOptions, memory_align: usize) -> Result<Self, OpenError> {
        let align = memory_align.next_power_of_two().max(ALIGN_MIN);
        let stride = options.request_bytes_max.next_multiple_of(align);
        let slots = options.queue_depth;
        let count = if options.writable { 2 * slots } else { slots };
        let memory = Memory::new(stride * count, align)?;
        let free = (0..slots).rev().collect();
        let random = Random::new(options.seed, "content");
        let mut buffers = Self { memory, stride, slots, free, random };
        for buffer in slots..count {
            // SAFETY: nothing is in flight yet.
            let bytes = unsafe { buffers.memory.bytes(buffer * stride, stride) };
            buffers.random.fill(bytes);
        }
        Ok(buffers)
    }

    /// A free slot, or `None` when all have a request.
    pub fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// The slot's request is done.
    pub fn give_back(&mut self, slot: usize) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} was given back twice");
        self.free.push(slot);
    }

    /// Which of the registered buffers a slot reads into.
    pub fn read_index(slot: usize) -> usize {
        slot
    }

    /// Which of the registered buffers a slot writes from.
    pub fn write_index(&self, slot: usize) -> usize {
        self.slots + slot
    }

    /// The start of a buffer.
    pub fn start(&self, index: usize) -> *mut u8 {
        assert!((index + 1) * self.stride <= self.memory.layout.size(), "no buffer {index}");
        // SAFETY: inside the allocation, as just asserted.
        unsafe { self.memory.start.as_ptr().add(index * self.stride) }
    }

    /// Every buffer, as `io_uring_register` wants them.
    pub fn iovecs(&self) -> Vec<libc::iovec> {
        let count = self.memory.layout.size() / self.stride;
        let iovec = |i| libc::iovec { iov_base: self.start(i).cast(), iov_len: self.stride };
        (0..count).map(iovec).collect()
    }

    /// Makes the first `length` bytes of a taken slot's write buffer unlike all that was written.
    ///
    /// Each buffer holds random bytes from its start. A write flips them by 32 fresh random bytes
    /// (XOR), repeated: no byte run of the old content stays, so that neither compression nor
    /// deduplication of any block size finds one. Measured: 76 us a MiB with the buffer out of the
    /// cache, 13 GB/s; to draw each byte anew takes 200 us at best. That time lies before
    /// `submitted`, in no latency, but in the rate of a closed loop at queue depth 1. The content
    /// depends on the seed and on the order in which slots came free.
    pub fn renew(&mut self, slot: usize, length: usize) {
        let key: [u64; 4] = std::array::from_fn(|_| self.random.next_u64());
        assert!(length <= self.stride, "a request larger than its buffer");
        let offset = self.write_index(slot) * self.stride;
        // SAFETY: the caller holds the slot and has not handed its request to the kernel yet.
        let bytes = unsafe { self.memory.bytes(offset, length) };
        xor(bytes, key);
    }

    /// Never frees the memory: for a drive that may still write into it.
    pub fn leak(&mut self) {
        self.memory.leaked = true;
    }
}

/// XORs whole words with a key of four, from the start; a rest of less than 32 bytes stays.
fn xor(bytes: &mut [u8], key: [u64; 4]) {
    // Fixed-size pieces: the compiler turns this into vector instructions.
    let (pieces, _) = bytes.as_chunks_mut::<32>();
    for piece in pieces {
        let (words, _) = piece.as_chunks_mut::<8>();
        for (word, key) in words.iter_mut().zip(key) {
            *word = (u64::from_ne_bytes(*word) ^ key).to_ne_bytes();
        }
    }
}

/// Aligned memory that the kernel writes into behind the compiler's back.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    leaked: bool,
}

// SAFETY: it owns its allocation alone, like a Box; nothing in it is tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Zeroed, and so in memory from the start: no request is charged for page faults.
    fn new(bytes: usize, align: usize) -> Result<Self, OpenError> {
        let no_memory = || OpenError::Memory { bytes, source: io::ErrorKind::OutOfMemory.into() };
        let layout = Layout::from_size_align(bytes, align).map_err(|_| no_memory())?;
        assert!(bytes > 0, "options were checked");
        // SAFETY: the layout's size is not zero, as just asserted.
        let start = NonNull::new(unsafe { alloc::alloc(layout) }).ok_or_else(no_memory)?;
        // SAFETY: the allocation has this many bytes. Not alloc_zeroed, which may leave the pages
        // unmapped until they are touched.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self { start, layout, leaked: false })
    }

    /// A part of the memory.
    ///
    /// # Safety
    /// No request in flight may use that part while the slice lives.
    unsafe fn bytes(&mut self, offset: usize, length: usize) -> &mut [u8] {
        let end = offset.checked_add(length).expect("a buffer ends in memory");
        assert!(end <= self.layout.size(), "a buffer beyond the memory");
        // SAFETY: inside the allocation, initialised, borrowed as long as self; the caller vouches
        // for the kernel.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(offset), length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: allocated with this layout in new, and not freed before.
            unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}
