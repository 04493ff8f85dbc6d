//! `Store`: the content of a served drive, in memory or in a file, and the old content that a power
//! cut restores.

mod extent;
mod file;
mod memory;
#[cfg(test)]
mod tests;
mod undo;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use file::FileStore;
pub use memory::ReceiveMemory;
use memory::{Memory, UndoWriter};
use ssdlab_time::Nanos;
use undo::Undo;

use crate::buffer_pool::BufferPart;
use crate::drive::{DriveParameters, LostWrites};
use crate::send_buffer::SendBuffer;
use crate::sync::lock;

/// Where the content is. Concurrent requests for the same bytes are executed in any order.
enum Backend {
    Memory(Memory),
    File(FileStore),
}

/// The content of a drive. For writes that the drive may still lose, it keeps the old content of
/// each unit.
pub struct Store {
    backend: Backend,
    undo: Option<Mutex<Undo>>,
    unit_bytes: u64,
    pub(crate) has_complete_map: bool,
}

impl Store {
    /// The content of a drive in memory, which is allocated when it is written.
    pub fn in_memory(drive: &DriveParameters) -> Self {
        Self::new(Backend::Memory(Memory::new(drive.capacity, drive.unit_bytes)), drive)
    }

    /// The content of a drive in a sparse file, which is created if it does not exist and outlives
    /// the server. An error if the file has another size, or if another server has it open.
    pub fn in_file(path: &Path, drive: &DriveParameters) -> io::Result<Self> {
        Ok(Self::new(Backend::File(FileStore::open(path, drive.capacity)?), drive))
    }

    fn new(backend: Backend, drive: &DriveParameters) -> Self {
        let DriveParameters { unit_bytes, volatile_units, .. } = *drive;
        let undo = (volatile_units > 0).then(|| Mutex::new(Undo::new(volatile_units, unit_bytes)));
        Self { backend, undo, unit_bytes, has_complete_map: true }
    }

    /// The ranges of whole units that the file has allocated, in bytes and in order; everything
    /// else is zeros. None in memory.
    pub fn allocated(&self) -> impl Iterator<Item = io::Result<Range<u64>>> {
        let file = match &self.backend {
            Backend::Memory(_) => None,
            Backend::File(file) => Some(file.allocated(self.unit_bytes)),
        };
        file.into_iter().flatten()
    }

    /// Sets whether the drive has mapped all content.
    #[must_use]
    pub fn with_complete_map(self, is_complete: bool) -> Self {
        Self { has_complete_map: is_complete, ..self }
    }

    /// An independent clone; memory is shared until it is written.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let Backend::Memory(memory) = &self.backend else {
            return Err(io::Error::other("only content in memory can be forked"));
        };
        let undo = self.undo.as_ref().map(|undo| Mutex::new(lock(undo).clone()));
        Ok(Self {
            backend: Backend::Memory(memory.cow_clone()),
            undo,
            unit_bytes: self.unit_bytes,
            has_complete_map: true,
        })
    }

    pub(crate) fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let (mut buffer, mut bytes) = (SendBuffer::default(), Vec::with_capacity(length as usize));
        self.append(offset, length, &mut buffer)?;
        buffer.send(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn append(&self, offset: u64, length: u64, out: &mut SendBuffer) -> io::Result<()> {
        match &self.backend {
            Backend::Memory(memory) => {
                memory.append(offset, length, out);
                Ok(())
            }
            Backend::File(file) => {
                let bytes = out.bytes();
                let start = bytes.len();
                bytes.resize(start + length as usize, 0);
                file.read(offset, &mut bytes[start..])
            }
        }
    }

    /// Writes, and saves the old content of the units. `completed` is the time at which the drive
    /// completes the write.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8], completed: Nanos) -> io::Result<()> {
        match &self.backend {
            Backend::Memory(memory) => {
                memory.write(offset, bytes, self.undo_writer(completed));
                Ok(())
            }
            Backend::File(file) => {
                let range = offset..offset + bytes.len() as u64;
                let _guard = self.save_old(file, range, completed)?;
                file.write(offset, bytes)
            }
        }
    }

    /// Memory in which to receive the data of a write; `None` if it would be copied anyway.
    pub(crate) fn receive_memory(&self, offset: u64, length: u64) -> Option<ReceiveMemory> {
        match &self.backend {
            Backend::Memory(memory) => memory.receive_memory(offset, length),
            Backend::File(_) => None,
        }
    }

    /// As `write`, with data in memory from `receive_memory`, which becomes part of the store; only
    /// for content in memory.
    pub(crate) fn adopt(&self, received: ReceiveMemory, completed: Nanos) {
        let Backend::Memory(memory) = &self.backend else { panic!("a file has no receive memory") };
        memory.adopt(received, self.undo_writer(completed));
    }

    /// As `write`, with zeros.
    pub(crate) fn zero(&self, range: Range<u64>, completed: Nanos) -> io::Result<()> {
        let (start, length) = (range.start, range.end - range.start);
        match &self.backend {
            Backend::Memory(memory) => {
                memory.zero(start, length, self.undo_writer(completed));
                Ok(())
            }
            Backend::File(file) => {
                let _guard = self.save_old(file, range, completed)?;
                file.zero(start, length)
            }
        }
    }

    /// Drops the old content of writes that the drive cannot lose any more at time `now`.
    pub(crate) fn drop_durable(&self, now: Nanos) {
        if let Some(undo) = &self.undo {
            let durable = lock(undo).take_durable(now);
            // The memory is freed after the lock.
            drop(durable);
        }
    }

    /// Zeros whole units that were trimmed, and drops their old content.
    pub(crate) fn trim(&self, first_unit: u64, units: u64) -> io::Result<()> {
        if let Some(undo) = &self.undo {
            lock(undo).drop_units(first_unit..first_unit + units);
        }
        let (start, length) = (first_unit * self.unit_bytes, units * self.unit_bytes);
        match &self.backend {
            Backend::Memory(memory) => {
                memory.zero(start, length, None);
                Ok(())
            }
            Backend::File(file) => file.zero(start, length),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        match &self.backend {
            Backend::Memory(_) => Ok(()),
            Backend::File(file) => file.sync(),
        }
    }

    /// Restores the content of units before the writes that a power cut took; panics if these are
    /// more than `volatile_units` allows.
    pub(crate) fn roll_back(&self, lost: &[LostWrites]) -> io::Result<()> {
        let Some(undo) = &self.undo else {
            assert!(lost.is_empty(), "a drive without volatile units has lost {lost:?}");
            return Ok(());
        };
        let before = lock(undo).take_old(lost);
        for (unit, old) in before {
            let at = unit * self.unit_bytes;
            match (&self.backend, old) {
                (Backend::Memory(memory), Some(old)) => memory.write(at, &old, None),
                (Backend::Memory(memory), None) => memory.zero(at, self.unit_bytes, None),
                (Backend::File(file), Some(old)) => file.write(at, &old)?,
                (Backend::File(file), None) => file.zero(at, self.unit_bytes)?,
            }
        }
        Ok(())
    }

    /// Where to save the old content of units; `None` if it is never restored.
    fn undo_writer(&self, completed: Nanos) -> Option<UndoWriter<'_>> {
        self.undo.as_ref().map(|undo| UndoWriter { undo, completed })
    }

    /// Saves the old content of the units of a range of the file. The caller holds the guard until
    /// it has written the new content: the next write to a part of a unit must see that.
    fn save_old(
        &self,
        file: &FileStore,
        range: Range<u64>,
        completed: Nanos,
    ) -> io::Result<Option<MutexGuard<'_, Undo>>> {
        let Some(undo) = &self.undo else { return Ok(None) };
        let mut undo = lock(undo);
        for unit in range.start / self.unit_bytes..range.end.div_ceil(self.unit_bytes) {
            let mut old = vec![0; self.unit_bytes as usize];
            file.read(unit * self.unit_bytes, &mut old)?;
            let old = BufferPart::copied(&old, &undo.pool);
            undo.record(unit, completed, Some(old));
        }
        Ok(Some(undo))
    }
}
