//! The bytes of a served drive: in memory or in a file, with what a power cut may bring back.

mod extent;
mod file;
mod memory;
#[cfg(test)]
mod tests;
mod undo;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use file::FileStore;
pub use memory::ReceiveMemory;
use memory::{Keep, Memory};
use ssdlab_time::Nanos;
use undo::Undo;

use crate::buffer_pool::{BufferPart, BufferPool};
use crate::drive::LostWrites;
use crate::send_buffer::SendBuffer;

/// Where bytes lie; concurrent requests for the same bytes come in any order.
enum Place {
    Memory(Memory),
    File(FileStore),
}

/// The content of a drive.
///
/// What a drive may still lose is kept as it was before, unit by unit: the newest writes to it.
pub struct Store {
    place: Place,
    undo: Option<Mutex<Undo>>,
    /// For what stood in a unit.
    units: Arc<BufferPool>,
    unit_bytes: u64,
    has_complete_map: bool,
}

impl Store {
    /// Content in memory: nothing is used where nothing was written. `volatile_units` as in
    /// `Drive`.
    pub fn in_memory(capacity: u64, unit_bytes: u64, volatile_units: u64) -> Self {
        Self::new(Place::Memory(Memory::new(capacity, unit_bytes)), unit_bytes, volatile_units)
    }

    /// Content in a sparse file, made where there is none; it survives the server.
    ///
    /// # Errors
    /// It cannot be made, read or written.
    pub fn in_file(
        path: &Path,
        capacity: u64,
        unit_bytes: u64,
        volatile_units: u64,
    ) -> io::Result<Self> {
        let file = FileStore::open(path, capacity)?;
        Ok(Self::new(Place::File(file), unit_bytes, volatile_units))
    }

    fn new(place: Place, unit_bytes: u64, volatile_units: u64) -> Self {
        let undo = (volatile_units > 0).then(|| Mutex::new(Undo::new(volatile_units)));
        let units = BufferPool::new(unit_bytes as usize);
        Self { place, undo, units, unit_bytes, has_complete_map: true }
    }

    /// Units that hold something already, in order, as ranges of bytes; what is between them is
    /// zeros. None in memory.
    pub fn allocated(&self) -> impl Iterator<Item = io::Result<Range<u64>>> {
        let file = match &self.place {
            Place::Memory(_) => None,
            Place::File(file) => Some(file.allocated(self.unit_bytes)),
        };
        file.into_iter().flatten()
    }

    /// Says whether the drive's map has all that the content has.
    #[must_use]
    pub fn with_complete_map(self, is_so: bool) -> Self {
        Self { has_complete_map: is_so, ..self }
    }

    /// Whether the drive's map has all that the content has.
    pub fn has_complete_map(&self) -> bool {
        self.has_complete_map
    }

    /// The same content, to go its own way; memory is shared until it is written.
    ///
    /// # Errors
    /// It lies in a file.
    pub fn try_clone(&self) -> io::Result<Self> {
        let Place::Memory(memory) = &self.place else {
            return Err(io::Error::other("only content in memory can be forked"));
        };
        let undo = self.undo.as_ref().map(|undo| Mutex::new(lock(undo).clone()));
        let (place, units) = (Place::Memory(memory.cow_clone()), Arc::clone(&self.units));
        Ok(Self { place, undo, units, unit_bytes: self.unit_bytes, has_complete_map: true })
    }

    /// What stands at a byte.
    ///
    /// # Errors
    /// The file's.
    pub fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let (mut message, mut bytes) = (SendBuffer::default(), Vec::with_capacity(length as usize));
        self.append(offset, length, &mut message)?;
        message.send(&mut bytes)?;
        Ok(bytes)
    }

    /// Adds what stands at a byte to `out`.
    ///
    /// # Errors
    /// The file's; `out` may have grown.
    pub fn append(&self, offset: u64, length: u64, out: &mut SendBuffer) -> io::Result<()> {
        match &self.place {
            Place::Memory(memory) => {
                memory.append(offset, length, out);
                Ok(())
            }
            Place::File(file) => {
                let bytes = out.bytes();
                let place = bytes.len();
                bytes.resize(place + length as usize, 0);
                file.read(offset, &mut bytes[place..])
            }
        }
    }

    /// Writes at a byte; what stood in the units that it touches can be brought back. The drive
    /// answers the write at `done`.
    ///
    /// # Errors
    /// The file's.
    pub fn write(&self, offset: u64, bytes: &[u8], done: Nanos) -> io::Result<()> {
        match &self.place {
            Place::Memory(memory) => {
                memory.write(offset, bytes, self.keep(done));
                Ok(())
            }
            Place::File(file) => {
                let _noted = self.note_file(file, offset..offset + bytes.len() as u64, done)?;
                file.write(offset, bytes)
            }
        }
    }

    /// Memory to receive a write's bytes in; none where they would be copied nevertheless.
    pub fn receive_memory(&self, offset: u64, length: u64) -> Option<ReceiveMemory> {
        match &self.place {
            Place::Memory(memory) => memory.receive_memory(offset, length),
            Place::File(_) => None,
        }
    }

    /// As `write`, of what was received in memory of `receive_memory`.
    ///
    /// # Panics
    /// Where content lies in a file.
    pub fn adopt(&self, received: ReceiveMemory, done: Nanos) {
        let Place::Memory(memory) = &self.place else { panic!("nothing lands in a file") };
        memory.adopt(received, self.keep(done));
    }

    /// Writes zeros, as `write`.
    ///
    /// # Errors
    /// The file's.
    pub fn zero(&self, range: Range<u64>, done: Nanos) -> io::Result<()> {
        let (start, length) = (range.start, range.end - range.start);
        match &self.place {
            Place::Memory(memory) => {
                memory.zero(start, length, self.keep(done));
                Ok(())
            }
            Place::File(file) => {
                let _noted = self.note_file(file, range, done)?;
                file.zero(start, length)
            }
        }
    }

    /// Gives up what can no longer be lost at a time of the drive.
    pub fn drop_durable(&self, now: Nanos) {
        if let Some(undo) = &self.undo {
            let settled = lock(undo).take_durable(now);
            // Memory is given back when others can go on.
            drop(settled);
        }
    }

    /// Zeros whole units that were trimmed: what they lost does not come back.
    ///
    /// # Errors
    /// The file's.
    pub fn trim(&self, first_unit: u64, units: u64) -> io::Result<()> {
        if let Some(undo) = &self.undo {
            lock(undo).forget(first_unit..first_unit + units);
        }
        let (start, length) = (first_unit * self.unit_bytes, units * self.unit_bytes);
        match &self.place {
            Place::Memory(memory) => {
                memory.zero(start, length, None);
                Ok(())
            }
            Place::File(file) => file.zero(start, length),
        }
    }

    /// Makes the file's bytes survive a crash of the machine.
    ///
    /// # Errors
    /// The file's.
    pub fn sync(&self) -> io::Result<()> {
        match &self.place {
            Place::Memory(_) => Ok(()),
            Place::File(file) => file.sync(),
        }
    }

    /// Brings back what units held before the writes that a power cut took.
    ///
    /// # Errors
    /// The file's.
    ///
    /// # Panics
    /// Where more was lost than the drive said it could lose.
    pub fn roll_back(&self, lost: &[LostWrites]) -> io::Result<()> {
        let Some(undo) = &self.undo else {
            assert!(lost.is_empty(), "a drive that loses nothing has lost {lost:?}");
            return Ok(());
        };
        let before = lock(undo).take_before(lost);
        for (unit, old) in before {
            let at = unit * self.unit_bytes;
            match (&self.place, old) {
                (Place::Memory(memory), Some(old)) => memory.write(at, &old, None),
                (Place::Memory(memory), None) => memory.zero(at, self.unit_bytes, None),
                (Place::File(file), Some(old)) => file.write(at, &old)?,
                (Place::File(file), None) => file.zero(at, self.unit_bytes)?,
            }
        }
        Ok(())
    }

    /// Where what stood in units goes, if any of it can come back.
    fn keep(&self, done: Nanos) -> Option<Keep<'_>> {
        self.undo.as_ref().map(|undo| Keep { undo, units: &self.units, done })
    }

    /// Notes what stands in the units of a range. What is returned is held until the new bytes are
    /// there: a second write to a part of a unit notes what the first has made of it.
    fn note_file(
        &self,
        file: &FileStore,
        range: Range<u64>,
        done: Nanos,
    ) -> io::Result<Option<MutexGuard<'_, Undo>>> {
        let Some(undo) = &self.undo else { return Ok(None) };
        let mut undo = lock(undo);
        for unit in range.start / self.unit_bytes..range.end.div_ceil(self.unit_bytes) {
            let mut old = vec![0; self.unit_bytes as usize];
            file.read(unit * self.unit_bytes, &mut old)?;
            undo.note(unit, done, Some(BufferPart::copied(&old, &self.units)));
        }
        Ok(Some(undo))
    }
}

fn lock(undo: &Mutex<Undo>) -> MutexGuard<'_, Undo> {
    undo.lock().expect("no panic while locked")
}
