//! `Memory`: content in memory, in buffers that are allocated when they are written. Each buffer is
//! an extent of the drive, so that the bytes of a long request are contiguous in whatever order
//! they were written.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use ssdlab_time::Nanos;

use super::extent::{Allocator, Extent, UNITS_MAX};
use super::undo::Undo;
use crate::buffer_pool::{BufferPart, BufferPool, PooledBuffer};
use crate::failpoints::{self, Point};
use crate::send_buffer::SendBuffer;
use crate::sync::lock;

/// Bytes of an extent; larger ones are hardly faster.
const EXTENT_BYTES: u64 = 64 << 10;
/// Number of extents under one lock.
const GROUP: u64 = 16;

/// The content of a drive; everything that was not written is zeros.
pub struct Memory {
    groups: Vec<RwLock<Group>>,
    unit_bytes: usize,
    extent_bytes: u64,
    pool: Arc<BufferPool>,
    zeros: Arc<PooledBuffer>,
}

/// The extents of a group; `None` if nothing was written there.
type Group = Option<Box<[Extent]>>;

/// Where a write saves the old content of its units.
#[derive(Clone, Copy)]
pub struct UndoWriter<'a> {
    pub undo: &'a Mutex<Undo>,
    /// When the write completes on the drive's clock.
    pub completed: Nanos,
}

/// Buffers in which to receive the data of a write, and which the store then adopts. They are
/// allocated as data arrives.
#[derive(Debug)]
pub struct ReceiveMemory {
    offset: u64,
    length: u64,
    pool: Arc<BufferPool>,
    /// Each with the range of it that is written.
    buffers: Vec<(PooledBuffer, Range<usize>)>,
    allocated: u64,
}

impl Memory {
    /// All zeros; `unit_bytes` is a power of two.
    pub fn new(capacity: u64, unit_bytes: u64) -> Self {
        let extent_bytes = EXTENT_BYTES.min(unit_bytes * UNITS_MAX).max(unit_bytes);
        let groups = capacity.div_ceil(GROUP * extent_bytes);
        let groups = (0..groups).map(|_| RwLock::new(None)).collect();
        let pool = BufferPool::new(extent_bytes as usize);
        // New memory is cleared by the system.
        let zeros = pool.take().into();
        Self { groups, unit_bytes: unit_bytes as usize, extent_bytes, pool, zeros }
    }

    pub fn cow_clone(&self) -> Self {
        let copy = |group: &RwLock<Group>| {
            RwLock::new(group.read().expect("no panic while locked").clone())
        };
        let groups = self.groups.iter().map(copy).collect();
        let (pool, zeros) = (Arc::clone(&self.pool), Arc::clone(&self.zeros));
        Self { groups, pool, zeros, ..*self }
    }

    pub fn append(&self, offset: u64, length: u64, out: &mut SendBuffer) {
        for (number, range) in self.pieces(offset, length) {
            let group = self.groups[(number / GROUP) as usize].read();
            let group = group.expect("no panic while locked");
            let Some(extents) = group.as_ref() else {
                out.add(&self.zeros, range, length as usize);
                continue;
            };
            let extent = &extents[(number % GROUP) as usize];
            for (buffer, piece) in extent.pieces(range, self.unit_bytes) {
                out.add(buffer.unwrap_or(&self.zeros), piece, length as usize);
            }
        }
    }

    pub fn write(&self, offset: u64, bytes: &[u8], undo: Option<UndoWriter<'_>>) {
        let mut left = bytes;
        for (number, range) in self.pieces(offset, left.len() as u64) {
            let (now, later) = left.split_at(range.len());
            self.change(number, |extent| {
                self.save_old(undo, number, extent, &range);
                extent.write(range, now, self.allocator());
            });
            left = later;
        }
    }

    /// Zeros a range; an extent that is all zeros frees its memory.
    pub fn zero(&self, offset: u64, length: u64, undo: Option<UndoWriter<'_>>) {
        for (number, range) in self.pieces(offset, length) {
            self.change(number, |extent| {
                self.save_old(undo, number, extent, &range);
                extent.zero(range, &self.zeros, self.allocator());
            });
        }
    }

    /// Buffers in which to receive a write; `None` if it does not fill an extent.
    pub fn receive_memory(&self, offset: u64, length: u64) -> Option<ReceiveMemory> {
        let whole = offset.next_multiple_of(self.extent_bytes) + self.extent_bytes;
        (whole <= offset + length).then(|| ReceiveMemory {
            offset,
            length,
            pool: Arc::clone(&self.pool),
            buffers: Vec::new(),
            allocated: 0,
        })
    }

    /// Writes received data; buffers that fill an extent are not copied.
    pub fn adopt(&self, received: ReceiveMemory, undo: Option<UndoWriter<'_>>) {
        let mut at = received.offset;
        for (buffer, range) in received.buffers {
            let here = range.len() as u64;
            if here == self.extent_bytes {
                let number = at / self.extent_bytes;
                self.change(number, |extent| {
                    self.save_old(undo, number, extent, &range);
                    *extent = Extent::of(buffer, self.unit_bytes);
                });
            } else {
                self.write(at, &buffer[range], undo);
            }
            at += here;
        }
    }

    /// Changes an extent with its group locked.
    fn change(&self, number: u64, change: impl FnOnce(&mut Extent)) {
        let mut group: RwLockWriteGuard<'_, Group> =
            self.groups[(number / GROUP) as usize].write().expect("no panic while locked");
        let index = (number % GROUP) as usize;
        if let Some(extents) = group.as_mut() {
            return change(&mut extents[index]);
        }
        let mut extent = Extent::default();
        change(&mut extent);
        if !extent.is_zeros() {
            let mut extents = vec![Extent::default(); GROUP as usize];
            extents[index] = extent;
            *group = Some(extents.into());
        }
    }

    /// Saves the old content of the units of a range that is about to be written: a copy, or the
    /// buffer itself if all of it is replaced.
    fn save_old(
        &self,
        undo: Option<UndoWriter<'_>>,
        number: u64,
        extent: &Extent,
        range: &Range<usize>,
    ) {
        let Some(UndoWriter { undo, completed }) = undo else { return };
        let mut undo = lock(undo);
        let unit = self.unit_bytes;
        let first = number * self.extent_bytes / unit as u64;
        let is_replaced = range.len() as u64 == self.extent_bytes;
        for number in range.start / unit..range.end.div_ceil(unit) {
            let here = number * unit..(number + 1) * unit;
            let old = extent.buffer_of(number).map(|buffer| {
                if is_replaced {
                    BufferPart::of(buffer, here)
                } else {
                    BufferPart::copied(&buffer[here], &undo.pool)
                }
            });
            undo.record(first + number as u64, completed, old);
        }
    }

    fn allocator(&self) -> Allocator<'_> {
        Allocator { pool: &self.pool, unit_bytes: self.unit_bytes }
    }

    /// Splits a range by extent: the number of each extent, and the range within it.
    fn pieces(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let (extent, end) = (self.extent_bytes, offset + length);
        let mut at = offset;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (number, start) = (at / extent, at % extent);
                let stop = extent.min(start + end - at);
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

    /// Allocates memory for at least this number of further bytes, or for all that remain, and
    /// returns it in order.
    pub fn grow(&mut self, bytes: usize) -> io::Result<Vec<&mut [u8]>> {
        let (before, end) = (self.buffers.len(), self.allocated.saturating_add(bytes as u64));
        while self.allocated < end.min(self.length) {
            failpoints::check(Point::Memory)?;
            let buffer = self.pool.try_take()?;
            let start = ((self.offset + self.allocated) % buffer.len() as u64) as usize;
            let left = (self.length - self.allocated).min(buffer.len() as u64) as usize;
            let range = start..buffer.len().min(start + left);
            self.allocated += range.len() as u64;
            self.buffers.push((buffer, range));
        }
        let new = self.buffers[before..].iter_mut();
        Ok(new.map(|(buffer, range)| &mut buffer[range.clone()]).collect())
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let pieces: Vec<&[u8]> =
            self.buffers.iter().map(|(buffer, range)| &buffer[range.clone()]).collect();
        pieces.concat()
    }
}
