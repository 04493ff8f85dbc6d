//! `PooledBuffer`: a buffer of memory that returns to its pool when it is dropped.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::sync::lock;

/// Bytes that are mapped at once. The system allocates memory when a page is written, in small
/// pages: with huge pages a drive with scattered writes would need many times as much.
const MAPPED: usize = 4 << 20;
/// Bytes of free buffers that keep their memory. To reuse it is faster than to return it to the
/// system and to get other memory, which the system clears first.
const KEPT: usize = 16 << 20;

/// A pool of buffers of one size.
#[derive(Debug)]
pub struct BufferPool {
    /// Bytes of each buffer.
    pub(crate) buffer_bytes: usize,
    free: Mutex<FreeBuffers>,
}

#[derive(Debug, Default)]
struct FreeBuffers {
    mappings: Vec<Start>,
    /// Free buffers that have memory.
    kept: Vec<Start>,
    /// Free buffers without memory.
    bare: Vec<Start>,
}

/// The address of a mapping or of a buffer in it.
#[derive(Clone, Copy, Debug)]
struct Start(NonNull<u8>);

// SAFETY: a start is an address of plain memory, which belongs to no thread; only the owner of the
// one `PooledBuffer` that was made from it accesses that memory.
unsafe impl Send for Start {}
// SAFETY: as above; a shared `PooledBuffer` is only read.
unsafe impl Sync for Start {}

/// A buffer from a pool. Its initial content is unspecified.
#[derive(Debug)]
pub struct PooledBuffer {
    start: Start,
    pool: Arc<BufferPool>,
}

impl BufferPool {
    /// An empty pool, which has mapped nothing yet.
    pub fn new(buffer_bytes: usize) -> Arc<Self> {
        Self { buffer_bytes, free: Mutex::default() }.into()
    }

    /// Takes a buffer; panics if the system has no address space left.
    pub fn take(self: &Arc<Self>) -> PooledBuffer {
        self.try_take().expect("there is address space left")
    }

    /// Takes a buffer; an error if the system has no address space left.
    pub fn try_take(self: &Arc<Self>) -> io::Result<PooledBuffer> {
        let mut free = lock(&self.free);
        let start = match free.kept.pop().or_else(|| free.bare.pop()) {
            Some(start) => start,
            None => free.map(self.buffer_bytes)?,
        };
        drop(free);
        Ok(PooledBuffer { start, pool: Arc::clone(self) })
    }

    fn give_back(&self, start: Start) {
        let mut free = lock(&self.free);
        if free.kept.len() < KEPT / self.buffer_bytes {
            free.kept.push(start);
            return;
        }
        drop(free);
        if self.buffer_bytes.is_multiple_of(rustix::param::page_size()) {
            // SAFETY: whole pages of a mapping of this pool, in a buffer that is free. If the
            // system refuses, the buffer keeps its memory until it is used again.
            let _ = unsafe {
                madvise(start.0.as_ptr().cast(), self.buffer_bytes, Advice::LinuxDontNeed)
            };
        }
        lock(&self.free).bare.push(start);
    }
}

impl FreeBuffers {
    /// Maps memory, and returns the first buffer in it; the others are free.
    fn map(&mut self, buffer_bytes: usize) -> io::Result<Start> {
        let length = mapped_bytes(buffer_bytes);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a mapping of its own, at an address that the system chooses.
        let mapped = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)
        };
        let mapped = mapped?.cast::<u8>();
        // SAFETY: the range is the mapping; the advice changes no content. A system without huge
        // pages refuses it and needs none.
        let _ = unsafe { madvise(mapped.cast(), length, Advice::LinuxNoHugepage) };
        let mapped = NonNull::new(mapped).expect("no mapping begins at null");
        self.mappings.push(Start(mapped));
        // SAFETY: all of these are in the mapping.
        let at = |number: usize| Start(unsafe { mapped.add(number * buffer_bytes) });
        self.bare.extend((1..length / buffer_bytes).rev().map(at));
        Ok(at(0))
    }
}

/// Bytes of each mapping for buffers of a size.
fn mapped_bytes(buffer_bytes: usize) -> usize {
    MAPPED.max(buffer_bytes) / buffer_bytes * buffer_bytes
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        for start in lock(&self.free).mappings.drain(..) {
            // SAFETY: each buffer holds a reference to its pool, so that no buffer in this mapping
            // is left.
            let unmapped =
                unsafe { munmap(start.0.as_ptr().cast(), mapped_bytes(self.buffer_bytes)) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `buffer_bytes` from there on are mapped while the pool lives, to which this
        // buffer holds a reference; the system cleared them or they were written since; they are
        // written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.0.as_ptr(), self.pool.buffer_bytes) }
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; each start has only one `PooledBuffer`.
        unsafe { std::slice::from_raw_parts_mut(self.start.0.as_ptr(), self.pool.buffer_bytes) }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.give_back(self.start);
    }
}

/// A part of a shared buffer, which does not change while the part exists.
#[derive(Clone, Debug)]
pub struct BufferPart {
    buffer: Arc<PooledBuffer>,
    range: Range<usize>,
}

impl BufferPart {
    /// A range of a buffer. A later write to that range of the drive uses another buffer.
    pub fn of(buffer: &Arc<PooledBuffer>, range: Range<usize>) -> Self {
        assert!(range.end <= buffer.len(), "{range:?} of {} bytes", buffer.len());
        Self { buffer: Arc::clone(buffer), range }
    }

    /// A copy of as many bytes as a buffer of the pool has.
    pub fn copied(bytes: &[u8], pool: &Arc<BufferPool>) -> Self {
        let mut buffer = pool.take();
        buffer.copy_from_slice(bytes);
        Self { buffer: buffer.into(), range: 0..bytes.len() }
    }
}

impl Deref for BufferPart {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}
