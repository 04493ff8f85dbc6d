//! `Buffers`: aligned memory for each slot and direction, the free slots, and prepared content.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::slice;

use crate::content::ContentGenerator;
use crate::{OpenError, OpenOptions};

/// Minimum alignment of a buffer: a page.
const ALIGN_MIN: usize = 4096;

/// The buffers that requests read into and write from.
///
/// Reads and writes have separate buffers, because a read would replace the content for the slot's
/// next write. There is one more write buffer than slots: the spare buffer is filled while requests
/// are in flight, and the next write takes it.
#[derive(Debug)]
pub struct Buffers {
    memory: Memory,
    /// Distance between buffers in bytes.
    stride: usize,
    /// Free slots. The last one released is used first, as it is likely to be in the CPU's cache.
    free: Vec<usize>,
    generator: ContentGenerator,
    /// For each slot, the buffer of its last write. Empty if the device is read-only.
    writes: Vec<usize>,
    spare: Spare,
}

/// The write buffer that belongs to no slot.
#[derive(Debug)]
struct Spare {
    index: usize,
    /// Bytes whose content is ready.
    ready: usize,
    /// The number of the write that this content is for.
    count: u64,
}

impl Buffers {
    /// Buffers for `queue_depth` requests of up to `request_bytes_max` bytes, already faulted in.
    pub fn new(options: &OpenOptions, memory_align: usize) -> Result<Self, OpenError> {
        let align = memory_align.next_power_of_two().max(ALIGN_MIN);
        let stride = options.request_bytes_max.next_multiple_of(align);
        let slots = options.queue_depth;
        let count = if options.writable { 2 * slots + 1 } else { slots };
        let memory = Memory::new(stride * count, align)?;
        let free = (0..slots).rev().collect();
        let generator = ContentGenerator::new(options.content, options.seed);
        let writes = if options.writable { (slots..2 * slots).collect() } else { Vec::new() };
        let spare = Spare { index: 2 * slots, ready: 0, count: 0 };
        let mut buffers = Self { memory, stride, free, generator, writes, spare };
        for buffer in slots..count {
            // SAFETY: no request is in flight yet.
            let bytes = unsafe { buffers.memory.bytes(buffer * stride, stride) };
            buffers.generator.fill(bytes);
        }
        Ok(buffers)
    }

    /// Takes a free slot, or `None` if all are in use.
    pub fn acquire(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Frees a slot whose request has completed.
    pub fn release(&mut self, slot: usize) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} was released twice");
        self.free.push(slot);
    }

    /// The index of the buffer that a slot reads into.
    pub fn read_index(slot: usize) -> usize {
        slot
    }

    /// The index of the buffer that a slot writes from.
    pub fn write_index(&self, slot: usize) -> usize {
        self.writes[slot]
    }

    pub fn start(&self, index: usize) -> *mut u8 {
        assert!((index + 1) * self.stride <= self.memory.layout.size(), "no buffer {index}");
        // SAFETY: inside the allocation, as just asserted.
        unsafe { self.memory.start.as_ptr().add(index * self.stride) }
    }

    /// All buffers, as `io_uring_register` expects them.
    pub fn iovecs(&self) -> Vec<libc::iovec> {
        let count = self.memory.layout.size() / self.stride;
        let iovec = |i| libc::iovec { iov_base: self.start(i).cast(), iov_len: self.stride };
        (0..count).map(iovec).collect()
    }

    /// Generates content of this length ahead of the next write.
    pub fn prepare(&mut self, length: usize) {
        if self.spare.ready == 0 {
            // SAFETY: the spare buffer belongs to no slot, so no request in flight uses it.
            let bytes = unsafe { self.memory.bytes(self.spare.index * self.stride, length) };
            self.spare.count = self.generator.renew(bytes);
            self.spare.ready = length;
        }
    }

    /// Gives the slot's write at this offset content that was not written before.
    ///
    /// Uses the content of `prepare` if that is long enough, and generates it now otherwise. That
    /// happens before `submitted` is read: it does not count as latency, but lowers the rate of a
    /// closed loop.
    pub fn fill_for_write(&mut self, slot: usize, offset: u64, length: usize) {
        assert!(length <= self.stride, "a request larger than its buffer");
        if self.spare.ready < length {
            self.spare.ready = 0;
            self.prepare(length);
        }
        // SAFETY: as in `prepare`.
        let bytes = unsafe { self.memory.bytes(self.spare.index * self.stride, length) };
        self.generator.stamp(bytes, offset, self.spare.count);
        std::mem::swap(&mut self.writes[slot], &mut self.spare.index);
        self.spare.ready = 0;
    }

    /// The start of a buffer that no request in flight uses: for system calls that complete before
    /// they return.
    pub fn bytes(&mut self, index: usize, length: usize) -> &mut [u8] {
        assert!(length <= self.stride, "a request larger than its buffer");
        // SAFETY: the caller has no request in flight, as required above.
        unsafe { self.memory.bytes(index * self.stride, length) }
    }

    /// Leaks the memory, because the drive may still write to it.
    pub fn leak(&mut self) {
        self.memory.leaked = true;
    }
}

/// Aligned memory that the kernel writes to, unseen by the compiler.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    leaked: bool,
}

// SAFETY: it is the only owner of its allocation, like a Box, and not tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Allocates and zeroes memory, so that no request has page faults.
    fn new(bytes: usize, align: usize) -> Result<Self, OpenError> {
        let no_memory = || OpenError::Memory { bytes, source: io::ErrorKind::OutOfMemory.into() };
        let layout = Layout::from_size_align(bytes, align).map_err(|_| no_memory())?;
        assert!(bytes > 0, "the options were checked");
        // SAFETY: the layout's size is not zero, as just asserted.
        let start = NonNull::new(unsafe { alloc::alloc(layout) }).ok_or_else(no_memory)?;
        // SAFETY: the allocation has `bytes` bytes. Not alloc_zeroed, which may leave the pages
        // unmapped until the first access.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self { start, layout, leaked: false })
    }

    /// A slice of the memory.
    ///
    /// # Safety
    /// No request in flight may use that part during the slice's lifetime.
    unsafe fn bytes(&mut self, offset: usize, length: usize) -> &mut [u8] {
        let end = offset.checked_add(length).expect("the end of a buffer fits into usize");
        assert!(end <= self.layout.size(), "a buffer beyond the memory");
        // SAFETY: inside the allocation, initialised, and borrowed from self; the caller guarantees
        // that the kernel does not use it.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(offset), length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: allocated with this layout in `new`, and not freed before.
            unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}
