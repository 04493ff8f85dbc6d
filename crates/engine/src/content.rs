//! `Content`: the bytes of a drive, and the write log that records their changes.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use ssdlab_time::Nanos;

use crate::command::{Accepted, Command, CommandResult, Operation, WriteCorruption};
use crate::drive::{DriveParameters, PowerCutLoss};
use crate::errno::EIO;
use crate::send_buffer::SendBuffer;
use crate::store::{ReceiveMemory, Store};
use crate::sync::{Mutex, MutexGuard};
use crate::write_log::{Change, WriteLog};

/// The content of a drive.
pub struct Content {
    pub(crate) store: Store,
    parameters: DriveParameters,
    /// Locked while the store is changed, so that the log has all changes in order.
    log: Option<Mutex<WriteLog>>,
}

/// The data of a write.
pub enum Payload<'a> {
    /// Contiguous bytes, to be copied.
    Slice(&'a [u8]),
    /// In memory from `Content::receive_memory`, which the store adopts.
    Received(ReceiveMemory),
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Slice(bytes)
    }
}

impl Content {
    pub(crate) fn new(store: Store, parameters: DriveParameters) -> Self {
        Self { store, parameters, log: None }
    }

    pub(crate) fn with_log(self, log: WriteLog) -> Self {
        Self { log: Some(Mutex::new(log)), ..self }
    }

    /// The same content without a write log; an error if it is in a file.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(self.store.try_clone()?, self.parameters))
    }

    /// Memory in which to receive a write's payload, so that the store can adopt it without a copy.
    /// `None` if the payload must be contiguous.
    pub fn receive_memory(&self, command: &Command) -> Option<ReceiveMemory> {
        let DriveParameters { unit_bytes, max_transfer, .. } = self.parameters;
        let edges = [command.offset, command.end(), max_transfer];
        let covers_whole_units = edges.iter().all(|edge| edge.is_multiple_of(unit_bytes));
        if command.operation != Operation::Write || !covers_whole_units || self.log.is_some() {
            return None;
        }
        self.store.receive_memory(command.offset, command.length.into())
    }

    /// Appends the data of a read to a reply.
    pub(crate) fn read(&self, command: &Command, out: &mut SendBuffer) -> CommandResult {
        self.store.append(command.offset, command.length.into(), out).map_err(|_| EIO)
    }

    /// Makes the change of a command that the drive has executed without an error.
    pub(crate) fn apply<'a>(
        &self,
        command: &Command,
        payload: impl FnOnce() -> Payload<'a>,
        accepted: &Accepted,
    ) -> io::Result<()> {
        let command = &command.redirected(accepted.corruption);
        let (range, done) = (command.offset..command.end(), accepted.completed);
        let log = self.lock_log();
        let bytes;
        let change = match command.operation {
            Operation::Read | Operation::Cache => return Ok(()),
            Operation::Flush => {
                self.store.sync()?;
                Change::Flush
            }
            Operation::Write => match (payload(), accepted.corruption) {
                (Payload::Received(received), None) => {
                    self.store.adopt(received, done);
                    return Ok(());
                }
                (payload, corruption) => {
                    bytes = self.corrupted(range.start, payload, corruption)?;
                    self.write(range.start, &bytes, done)?;
                    Change::Write(range.start, &bytes)
                }
            },
            Operation::Trim if !self.parameters.trims_to_zeros => return Ok(()),
            Operation::Trim => {
                let units = self.parameters.whole_units(range);
                self.trim(&units)?;
                Change::Zero(units)
            }
            Operation::Zero { may_trim } => {
                let may_trim = may_trim && self.parameters.trims_to_zeros;
                let units = self.parameters.whole_units(range.clone());
                if may_trim && !units.is_empty() {
                    let head = self.zero(range.start..units.start, done);
                    let trimmed = self.trim(&units);
                    head.and(trimmed).and(self.zero(units.end..range.end, done))?;
                } else {
                    self.zero(range.clone(), done)?;
                }
                Change::Zero(range)
            }
        };
        log.map_or(Ok(()), |mut log| log.record(&change, command.durable))
    }

    /// Zeros everything, also if the drive's trims keep the old data.
    pub(crate) fn erase(&self) -> CommandResult {
        let (capacity, unit) = (self.parameters.capacity, self.parameters.unit_bytes);
        let log = self.lock_log();
        let trimmed = self.store.trim(0, capacity / unit);
        let change = Change::Zero(0..capacity);
        let logged =
            trimmed.and_then(|()| log.map_or(Ok(()), |mut log| log.record(&change, false)));
        logged.map_err(|_| EIO)
    }

    /// Restores the content before the writes that a power cut took, and logs it after a mark.
    pub(crate) fn roll_back(&self, cut: &PowerCutLoss) -> io::Result<()> {
        self.store.roll_back(&cut.lost)?;
        let Some(mut log) = self.lock_log() else { return Ok(()) };
        log.mark("power-cut")?;
        for lost in &cut.lost {
            let offset = lost.unit * self.parameters.unit_bytes;
            let bytes = self.store.read(offset, self.parameters.unit_bytes)?;
            log.record(&Change::Write(offset, &bytes), false)?;
        }
        log.finish()
    }

    /// Adds a named mark to the write log; false if there is no log.
    pub fn mark(&self, name: &str) -> io::Result<bool> {
        let Some(mut log) = self.lock_log() else { return Ok(false) };
        log.mark(name).map(|()| true)
    }

    pub(crate) fn finish_log(&self) -> io::Result<()> {
        self.lock_log().map_or(Ok(()), |mut log| log.finish())
    }

    fn lock_log(&self) -> Option<MutexGuard<'_, WriteLog>> {
        self.log.as_ref().map(|log| log.lock().expect("no panic while locked"))
    }

    /// The bytes that a write puts at its offset, which a corruption may change.
    fn corrupted<'a>(
        &self,
        offset: u64,
        payload: Payload<'a>,
        corruption: Option<WriteCorruption>,
    ) -> io::Result<Cow<'a, [u8]>> {
        let bytes: Cow<'a, [u8]> = match payload {
            Payload::Slice(bytes) => bytes.into(),
            Payload::Received(received) => received.to_vec().into(),
        };
        let kept = match corruption {
            None | Some(WriteCorruption::Misdirected(_)) => return Ok(bytes),
            Some(WriteCorruption::Torn(kept)) => kept as usize,
            Some(WriteCorruption::Lost) => 0,
        };
        let mut old = self.store.read(offset, bytes.len() as u64)?;
        old[..kept].copy_from_slice(&bytes[..kept]);
        Ok(old.into())
    }

    fn write(&self, offset: u64, bytes: &[u8], done: Nanos) -> io::Result<()> {
        self.parameters.pieces(offset, offset + bytes.len() as u64).try_for_each(|piece| {
            let here = (piece.start - offset) as usize..(piece.end - offset) as usize;
            self.store.write(piece.start, &bytes[here], done)
        })
    }

    fn zero(&self, range: Range<u64>, done: Nanos) -> io::Result<()> {
        let mut pieces = self.parameters.pieces(range.start, range.end);
        pieces.try_for_each(|piece| self.store.zero(piece, done))
    }

    /// Trims a range of whole units; nothing if it is empty.
    fn trim(&self, range: &Range<u64>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let unit = self.parameters.unit_bytes;
        self.store.trim(range.start / unit, (range.end - range.start) / unit)
    }
}
