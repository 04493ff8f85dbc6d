//! `PooledBuffer`: a stretch of memory out of a pool; it goes back there when nobody holds it.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// So much is asked of the system at once; it gives memory where something is written, by small
/// pages: huge ones would make a drive that is written here and there many times as large.
const MAPPED: usize = 4 << 20;
/// So much that went back is kept to be filled again: that costs less than to give it back to the
/// system and get other memory, which it clears first.
const KEPT: usize = 16 << 20;

/// Memory in slabs of one size, for whoever asks.
#[derive(Debug)]
pub struct BufferPool {
    slab_bytes: usize,
    slabs: Mutex<Slabs>,
}

#[derive(Debug, Default)]
struct Slabs {
    mapped: Vec<Start>,
    /// Nobody's, with memory behind them.
    kept: Vec<Start>,
    /// Nobody's, without.
    bare: Vec<Start>,
}

/// Where a mapping or a slab in it begins.
#[derive(Clone, Copy, Debug)]
struct Start(NonNull<u8>);

// SAFETY: a start is an address of plain memory, which no thread owns; only the holder of the one
// `PooledBuffer` that was made of it accesses that memory.
unsafe impl Send for Start {}
// SAFETY: as above; a shared `PooledBuffer` is only read.
unsafe impl Sync for Start {}

/// Memory that its holder alone writes; what it holds at first means nothing.
#[derive(Debug)]
pub struct PooledBuffer {
    start: Start,
    pool: Arc<BufferPool>,
}

impl BufferPool {
    /// Nothing is asked of the system yet.
    pub fn new(slab_bytes: usize) -> Arc<Self> {
        Self { slab_bytes, slabs: Mutex::default() }.into()
    }

    /// How long its slabs are.
    pub fn slab_bytes(&self) -> usize {
        self.slab_bytes
    }

    /// Memory that nobody else holds.
    ///
    /// # Panics
    /// Where the system has no addresses left.
    pub fn take(self: &Arc<Self>) -> PooledBuffer {
        self.try_take().expect("there are addresses left")
    }

    /// Memory that nobody else holds.
    ///
    /// # Errors
    /// The system has no addresses left.
    pub fn try_take(self: &Arc<Self>) -> io::Result<PooledBuffer> {
        let mut slabs = self.lock();
        let start = match slabs.kept.pop().or_else(|| slabs.bare.pop()) {
            Some(start) => start,
            None => slabs.map(self.slab_bytes)?,
        };
        drop(slabs);
        Ok(PooledBuffer { start, pool: Arc::clone(self) })
    }

    fn take_back(&self, start: Start) {
        let mut slabs = self.lock();
        if slabs.kept.len() < KEPT / self.slab_bytes {
            slabs.kept.push(start);
            return;
        }
        drop(slabs);
        if self.slab_bytes.is_multiple_of(rustix::param::page_size()) {
            // SAFETY: whole pages of a mapping of this pool, which nobody holds any more. Where it
            // is refused the memory stays, to be filled again.
            let _ =
                unsafe { madvise(start.0.as_ptr().cast(), self.slab_bytes, Advice::LinuxDontNeed) };
        }
        self.lock().bare.push(start);
    }

    fn lock(&self) -> MutexGuard<'_, Slabs> {
        self.slabs.lock().expect("no panic while locked")
    }
}

impl Slabs {
    /// Maps memory, and returns the first slab of it; the rest is nobody's.
    fn map(&mut self, slab_bytes: usize) -> io::Result<Start> {
        let length = mapped_bytes(slab_bytes);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a mapping of its own, at an address that the system chooses.
        let mapped = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)
        };
        let mapped = mapped?.cast::<u8>();
        // SAFETY: the range is the mapping; the advice changes no content. A system without huge
        // pages refuses it: there each is small as it is.
        let _ = unsafe { madvise(mapped.cast(), length, Advice::LinuxNoHugepage) };
        let mapped = NonNull::new(mapped).expect("no mapping begins at null");
        self.mapped.push(Start(mapped));
        // SAFETY: all of these lie in the mapping.
        let at = |slab: usize| Start(unsafe { mapped.add(slab * slab_bytes) });
        self.bare.extend((1..length / slab_bytes).rev().map(at));
        Ok(at(0))
    }
}

/// How long the mappings for slabs of a size are.
fn mapped_bytes(slab_bytes: usize) -> usize {
    MAPPED.max(slab_bytes) / slab_bytes * slab_bytes
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        for start in self.lock().mapped.drain(..) {
            // SAFETY: each slab holds its pool, so that none is left of this mapping.
            let unmapped =
                unsafe { munmap(start.0.as_ptr().cast(), mapped_bytes(self.slab_bytes)) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes from there on are mapped while the pool lives, which this slab
        // holds; they were cleared by the system or written since; only `&mut self` writes them.
        unsafe { std::slice::from_raw_parts(self.start.0.as_ptr(), self.pool.slab_bytes) }
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; there is one `PooledBuffer` of each start.
        unsafe { std::slice::from_raw_parts_mut(self.start.0.as_ptr(), self.pool.slab_bytes) }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.take_back(self.start);
    }
}

/// A part of a slab that does not change any more.
#[derive(Clone, Debug)]
pub struct BufferPart {
    slab: Arc<PooledBuffer>,
    range: Range<usize>,
}

impl BufferPart {
    /// It stays as it is: who writes there makes a new one.
    pub fn of(slab: &Arc<PooledBuffer>, range: Range<usize>) -> Self {
        assert!(range.end <= slab.len(), "{range:?} of {} bytes", slab.len());
        Self { slab: Arc::clone(slab), range }
    }

    /// A copy; the pool's slabs have to be as long as that.
    pub fn copied(bytes: &[u8], pool: &Arc<BufferPool>) -> Self {
        let mut slab = pool.take();
        slab.copy_from_slice(bytes);
        Self { slab: slab.into(), range: 0..bytes.len() }
    }
}

impl Deref for BufferPart {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.slab[self.range.clone()]
    }
}
