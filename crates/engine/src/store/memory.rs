//! Bytes in memory: slabs that are there once something was written to them, each a stretch of the
//! drive, so that a long request finds its bytes in a row in whatever order they were written.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use ssdlab_time::Nanos;

use super::extent::{Stretch, UNITS_MAX};
use super::undo::Undo;
use crate::buffer_pool::{BufferPart, BufferPool, PooledBuffer};
use crate::failpoints::{self, Point};
use crate::send_buffer::SendBuffer;

/// A slab of more is hardly faster.
const SLAB_BYTES: u64 = 64 << 10;
/// Stretches under one lock.
const GROUP: u64 = 16;

/// The bytes of a drive, zeros where nothing was written.
pub struct Memory {
    groups: Vec<RwLock<Group>>,
    unit_bytes: usize,
    slab_bytes: u64,
    pool: Arc<BufferPool>,
    zeros: Arc<PooledBuffer>,
}

/// Its stretches; none where nothing was written.
type Group = Option<Box<[Stretch]>>;

/// Where what stood in a unit goes, before anybody reads what stands there now.
#[derive(Clone, Copy)]
pub struct Keep<'a> {
    pub undo: &'a Mutex<Undo>,
    /// Slabs of a unit each.
    pub units: &'a Arc<BufferPool>,
    /// When the drive answers what comes now.
    pub done: Nanos,
}

/// Slabs to receive a write's bytes in, which then become the drive's; taken as bytes come.
#[derive(Debug)]
pub struct ReceiveMemory {
    offset: u64,
    length: u64,
    pool: Arc<BufferPool>,
    /// With what of each is written.
    slabs: Vec<(PooledBuffer, Range<usize>)>,
    allocated: u64,
}

impl Memory {
    /// All zeros; units are powers of two.
    pub fn new(capacity: u64, unit_bytes: u64) -> Self {
        let slab_bytes = SLAB_BYTES.min(unit_bytes * UNITS_MAX).max(unit_bytes);
        let groups = capacity.div_ceil(GROUP * slab_bytes);
        let groups = (0..groups).map(|_| RwLock::new(None)).collect();
        let pool = BufferPool::new(slab_bytes as usize);
        // The system has cleared it.
        let zeros = pool.take().into();
        Self { groups, unit_bytes: unit_bytes as usize, slab_bytes, pool, zeros }
    }

    /// The same bytes; their slabs are shared until they are written.
    pub fn cow_clone(&self) -> Self {
        let copy = |group: &RwLock<Group>| {
            RwLock::new(group.read().expect("no panic while locked").clone())
        };
        let groups = self.groups.iter().map(copy).collect();
        let (pool, zeros) = (Arc::clone(&self.pool), Arc::clone(&self.zeros));
        Self { groups, pool, zeros, ..*self }
    }

    /// Adds what stands at `offset` to `out`.
    pub fn append(&self, offset: u64, length: u64, out: &mut SendBuffer) {
        for (number, range) in self.pieces(offset, length) {
            let group = self.groups[(number / GROUP) as usize].read();
            let group = group.expect("no panic while locked");
            let Some(stretches) = group.as_ref() else {
                out.add(&self.zeros, range, length as usize);
                continue;
            };
            let stretch = &stretches[(number % GROUP) as usize];
            for (slab, run) in stretch.runs(range, self.unit_bytes) {
                out.add(slab.unwrap_or(&self.zeros), run, length as usize);
            }
        }
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&self, offset: u64, bytes: &[u8], keep: Option<Keep<'_>>) {
        let mut left = bytes;
        for (number, range) in self.pieces(offset, left.len() as u64) {
            let (now, later) = left.split_at(range.len());
            self.change(number, |stretch| {
                self.keep(keep, number, stretch, &range);
                stretch.put(range, now, (&self.pool, self.unit_bytes));
            });
            left = later;
        }
    }

    /// Zeros; a stretch of zeros gives its memory back.
    pub fn zero(&self, offset: u64, length: u64, keep: Option<Keep<'_>>) {
        for (number, range) in self.pieces(offset, length) {
            self.change(number, |stretch| {
                self.keep(keep, number, stretch, &range);
                stretch.zero(range, &self.zeros, (&self.pool, self.unit_bytes));
            });
        }
    }

    /// Slabs to receive a write in; `None` where it is too short for that to gain anything.
    pub fn receive_memory(&self, offset: u64, length: u64) -> Option<ReceiveMemory> {
        let whole = offset.next_multiple_of(self.slab_bytes) + self.slab_bytes;
        (whole <= offset + length).then(|| ReceiveMemory {
            offset,
            length,
            pool: Arc::clone(&self.pool),
            slabs: Vec::new(),
            allocated: 0,
        })
    }

    /// Writes what has landed; what fills a slab is not copied.
    pub fn adopt(&self, received: ReceiveMemory, keep: Option<Keep<'_>>) {
        let mut at = received.offset;
        for (slab, range) in received.slabs {
            let here = range.len() as u64;
            if here == self.slab_bytes {
                let number = at / self.slab_bytes;
                self.change(number, |stretch| {
                    self.keep(keep, number, stretch, &range);
                    *stretch = Stretch::of(slab, self.unit_bytes);
                });
            } else {
                self.write(at, &slab[range], keep);
            }
            at += here;
        }
    }

    /// Changes a stretch while nobody looks there.
    fn change(&self, number: u64, change: impl FnOnce(&mut Stretch)) {
        let mut group: RwLockWriteGuard<'_, Group> =
            self.groups[(number / GROUP) as usize].write().expect("no panic while locked");
        let place = (number % GROUP) as usize;
        if let Some(stretches) = group.as_mut() {
            return change(&mut stretches[place]);
        }
        let mut stretch = Stretch::default();
        change(&mut stretch);
        if !stretch.is_zeros() {
            let mut stretches = vec![Stretch::default(); GROUP as usize];
            stretches[place] = stretch;
            *group = Some(stretches.into());
        }
    }

    /// Keeps what stands in the units of a range, which are about to be written: as it is where
    /// all of the slab will be replaced, else as copies.
    fn keep(&self, keep: Option<Keep<'_>>, number: u64, stretch: &Stretch, range: &Range<usize>) {
        let Some(Keep { undo, units, done }) = keep else { return };
        let mut undo = undo.lock().expect("no panic while locked");
        let unit = self.unit_bytes;
        let first = number * self.slab_bytes / unit as u64;
        let is_replaced = range.len() as u64 == self.slab_bytes;
        for number in range.start / unit..range.end.div_ceil(unit) {
            let here = number * unit..(number + 1) * unit;
            let old = stretch.slab_of(number).map(|slab| {
                if is_replaced {
                    BufferPart::of(slab, here)
                } else {
                    BufferPart::copied(&slab[here], units)
                }
            });
            undo.note(first + number as u64, done, old);
        }
    }

    /// The parts of a range by slab: the slab's number, and which bytes of it.
    fn pieces(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let (slab, end) = (self.slab_bytes, offset + length);
        let mut at = offset;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (number, start) = (at / slab, at % slab);
                let stop = slab.min(start + end - at);
                at += stop - start;
                (number, start as usize..stop as usize)
            })
        })
    }
}

impl ReceiveMemory {
    /// Bytes of the payload for which memory is allocated.
    pub fn allocated(&self) -> usize {
        self.allocated as usize
    }

    /// Bytes of the payload for which `grow` must still allocate memory.
    pub fn remaining(&self) -> usize {
        (self.length - self.allocated) as usize
    }

    /// Where to put the next bytes, so many or somewhat more, one piece after the other.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn grow(&mut self, bytes: usize) -> io::Result<Vec<&mut [u8]>> {
        let (before, most) = (self.slabs.len(), self.allocated.saturating_add(bytes as u64));
        while self.allocated < most.min(self.length) {
            failpoints::check(Point::Memory)?;
            let slab = self.pool.try_take()?;
            let start = ((self.offset + self.allocated) % slab.len() as u64) as usize;
            let left = (self.length - self.allocated).min(slab.len() as u64) as usize;
            let range = start..slab.len().min(start + left);
            self.allocated += range.len() as u64;
            self.slabs.push((slab, range));
        }
        let new = self.slabs[before..].iter_mut();
        Ok(new.map(|(slab, range)| &mut slab[range.clone()]).collect())
    }

    /// The bytes, one after the other.
    pub fn to_vec(&self) -> Vec<u8> {
        let pieces: Vec<&[u8]> =
            self.slabs.iter().map(|(slab, range)| &slab[range.clone()]).collect();
        pieces.concat()
    }
}
