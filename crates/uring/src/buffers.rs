//! Buffers: aligned memory for each slot and direction, the free slots, the content made ahead.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::slice;

use crate::content::Maker;
use crate::{OpenError, OpenOptions};

/// What every buffer is aligned to, at least: a page.
const ALIGN_MIN: usize = 4096;

/// The memory that requests read into and write from.
///
/// Reads and writes have buffers of their own: a read would replace the content that the slot's
/// next write needs. There is one more write buffer than slots: the spare gets its content while
/// requests are in flight, and the next write takes it.
#[derive(Debug)]
pub struct Buffers {
    memory: Memory,
    /// From one buffer to the next, in bytes.
    stride: usize,
    /// Slots without a request; the last one freed is used first, it is still in the CPU's cache.
    free: Vec<usize>,
    maker: Maker,
    /// For each slot: the buffer that it wrote from last. Empty where nothing is written.
    writes: Vec<usize>,
    spare: Spare,
}

/// The write buffer that no slot has.
#[derive(Debug)]
struct Spare {
    index: usize,
    /// Bytes of it whose content is ready.
    ready: usize,
    /// The number of that content.
    count: u64,
}

impl Buffers {
    /// Buffers for `queue_depth` requests of up to `request_bytes_max` bytes, all in memory.
    pub fn new(options: &OpenOptions, memory_align: usize) -> Result<Self, OpenError> {
        let align = memory_align.next_power_of_two().max(ALIGN_MIN);
        let stride = options.request_bytes_max.next_multiple_of(align);
        let slots = options.queue_depth;
        let count = if options.writable { 2 * slots + 1 } else { slots };
        let memory = Memory::new(stride * count, align)?;
        let free = (0..slots).rev().collect();
        let maker = Maker::new(options.content, options.seed);
        let writes = if options.writable { (slots..2 * slots).collect() } else { Vec::new() };
        let spare = Spare { index: 2 * slots, ready: 0, count: 0 };
        let mut buffers = Self { memory, stride, free, maker, writes, spare };
        for buffer in slots..count {
            // SAFETY: nothing is in flight yet.
            let bytes = unsafe { buffers.memory.bytes(buffer * stride, stride) };
            buffers.maker.fill(bytes);
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
        self.writes[slot]
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

    /// Makes content of this length ready, so that a later write need not wait for it.
    pub fn prepare(&mut self, length: usize) {
        if self.spare.ready == 0 {
            // SAFETY: no slot has the spare buffer: the kernel does not know it.
            let bytes = unsafe { self.memory.bytes(self.spare.index * self.stride, length) };
            self.spare.count = self.maker.renew(bytes);
            self.spare.ready = length;
        }
    }

    /// Gives a taken slot's write at this offset content unlike all that was written.
    ///
    /// The content is that of `prepare` where that was long enough, and is made now otherwise: then
    /// its time lies before `submitted`, in no latency, but in the rate of a closed loop.
    pub fn load(&mut self, slot: usize, offset: u64, length: usize) {
        assert!(length <= self.stride, "a request larger than its buffer");
        if self.spare.ready < length {
            self.spare.ready = 0;
            self.prepare(length);
        }
        // SAFETY: as in `prepare`.
        let bytes = unsafe { self.memory.bytes(self.spare.index * self.stride, length) };
        self.maker.stamp(bytes, offset, self.spare.count);
        std::mem::swap(&mut self.writes[slot], &mut self.spare.index);
        self.spare.ready = 0;
    }

    /// The start of a buffer that no request in flight has: for calls that the kernel ends before
    /// it returns.
    pub fn bytes(&mut self, index: usize, length: usize) -> &mut [u8] {
        assert!(length <= self.stride, "a request larger than its buffer");
        // SAFETY: the caller's requests are over, as said above.
        unsafe { self.memory.bytes(index * self.stride, length) }
    }

    /// Never frees the memory: for a drive that may still write into it.
    pub fn leak(&mut self) {
        self.memory.leaked = true;
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
