//! What is asked of an engine beside its clients' commands: faults, forks, marks, its insides.

use std::io;
use std::ops::Range;

use ssdlab_time::Nanos;

use super::Engine;
use crate::command::{CommandResult, DriveParameters, Operation};
use crate::drive::{Geometry, Health};
use crate::errno::EIO;
use crate::fault::{FaultSpec, FaultStatus};
use crate::meter::OperationStats;
use crate::power::{Epoch, State};
use crate::store::WriteLog;
use crate::sync::{Mutex, RwLock};

/// A drive's life and its time, of one moment.
#[derive(Clone, Debug)]
pub struct DriveStatus {
    /// What the drive has counted.
    pub health: Health,
    /// What clients did, by kind.
    pub by_kind: Vec<OperationStats>,
    /// How long it has been running, on its own clock.
    pub uptime: Nanos,
    /// Whether it takes no more writes.
    pub is_read_only: bool,
    /// How often its power was cut.
    pub power_cuts: u64,
}

impl Engine {
    /// What the drive's life is like now.
    pub fn status(&self) -> DriveStatus {
        let busy = self.lock();
        DriveStatus {
            health: busy.drive.health(),
            by_kind: busy.meter.by_kind().to_vec(),
            uptime: busy.drive.now(),
            is_read_only: busy.drive.is_read_only(),
            power_cuts: busy.power.status().cuts,
        }
    }

    /// What the drive is made of.
    pub fn geometry(&self) -> Geometry {
        self.lock().drive.geometry()
    }

    /// Bytes that each stream's open superblock still takes.
    pub fn stream_rooms(&self) -> Vec<u64> {
        let busy = self.lock();
        (0..busy.drive.geometry().streams).map(|stream| busy.drive.stream_room(stream)).collect()
    }

    /// Lets a stream go on in another superblock; whether the old one was left before it was full.
    /// `None` if the epoch is over.
    pub fn renew_stream(&self, epoch: Epoch, stream: u32) -> Option<bool> {
        let _running = self.gate.read().expect("no panic while locked");
        let mut busy = self.lock_in(epoch)?;
        let now = self.clock.drive_time(busy.drive.now());
        busy.advance(now);
        Some(busy.drive.renew_stream(stream))
    }

    /// Whether the drive's map has all units of a range of bytes.
    pub fn is_mapped(&self, offset: u64, length: u64) -> bool {
        let unit = self.parameters.unit_bytes;
        let busy = self.lock();
        (offset / unit..(offset + length).div_ceil(unit)).all(|unit| busy.drive.is_mapped(unit))
    }

    /// What the drive is, as far as commands depend on it.
    pub fn parameters(&self) -> DriveParameters {
        self.parameters
    }

    /// Whether a power cut may take writes that were answered.
    pub fn has_volatile_cache(&self) -> bool {
        self.lock().drive.volatile_units() > 0
    }

    /// Trims the whole drive, and leaves zeros whatever its trims leave. `None` if the epoch is
    /// over.
    pub fn erase(&self, epoch: Epoch) -> Option<CommandResult> {
        let _alone = self.gate.write().expect("no panic while locked");
        let ended = self.lock_in(epoch)?.trim_all(&self.parameters, &self.clock);
        Some(ended.and_then(|()| self.forget_content().map_err(|_| EIO)))
    }

    fn forget_content(&self) -> io::Result<()> {
        let log = self.lock_log();
        self.store.trim(0, self.parameters.capacity / self.parameters.unit_bytes)?;
        log.map_or(Ok(()), |mut log| log.zero(0..self.parameters.capacity, false))
    }

    /// Logs every change of the content from now on.
    #[must_use]
    pub fn with_log(self, log: WriteLog) -> Self {
        Self { log: Some(Mutex::new(log)), ..self }
    }

    /// Lets something go wrong; returns its number.
    pub fn add_fault(&self, spec: FaultSpec) -> u64 {
        self.lock().faults.add(spec)
    }

    /// Clears a fault, or all of them; returns how many there were.
    pub fn clear_faults(&self, number: Option<u64>) -> usize {
        self.lock().faults.clear(number)
    }

    /// What is to go wrong, or did.
    pub fn faults(&self) -> Vec<FaultStatus> {
        self.lock().faults.statuses()
    }

    /// What was done by kind of command, and what the drive has in flight.
    pub fn operation_stats(&self) -> (Vec<OperationStats>, usize) {
        let busy = self.lock();
        (busy.meter.by_kind().to_vec(), busy.in_flight())
    }

    /// What was done of one kind of command.
    pub fn stats_of(&self, operation: Operation) -> OperationStats {
        self.lock().meter.of(operation).clone()
    }

    /// A drive in this state with this content, between two commands. It goes its own way, has
    /// power, and nothing is to go wrong there.
    ///
    /// # Errors
    /// The content lies in a file.
    pub fn try_clone(&self) -> io::Result<Self> {
        let _alone = self.gate.write().expect("no panic while locked");
        let busy = self.lock();
        Ok(Self {
            store: self.store.try_clone()?,
            clock: self.clock.clone_resumed(match busy.power.state {
                State::Off(since) => Some(since),
                State::On | State::Failing { .. } => None,
            }),
            busy: Mutex::new(busy.clone_without_faults()),
            parameters: self.parameters,
            gate: RwLock::new(()),
            log: None,
        })
    }

    /// Names this moment in the log; false where there is none.
    ///
    /// # Errors
    /// The log's.
    pub fn mark(&self, name: &str) -> io::Result<bool> {
        let Some(mut log) = self.lock_log() else { return Ok(false) };
        log.mark(name).map(|()| true)
    }

    /// Completes the log.
    ///
    /// # Errors
    /// The log's.
    pub fn finish_log(&self) -> io::Result<()> {
        // What runs is done first.
        let _alone = self.gate.write().expect("no panic while locked");
        self.lock_log().map_or(Ok(()), |mut log| log.finish())
    }

    /// The parts of a range of bytes that match a query, rounded to units within the range: the
    /// first `limit` of them, and whether the list is complete.
    pub fn extents(
        &self,
        bytes: Range<u64>,
        limit: usize,
        query: ExtentQuery,
    ) -> (Vec<Range<u64>>, bool) {
        let unit_bytes = self.parameters.unit_bytes;
        let busy = self.lock();
        let mut found: Vec<Range<u64>> = Vec::new();
        for unit in bytes.start / unit_bytes..bytes.end.div_ceil(unit_bytes) {
            let here = unit * unit_bytes..(unit + 1) * unit_bytes;
            let matches = match query {
                ExtentQuery::Mapped => busy.drive.is_mapped(unit),
                ExtentQuery::Unreadable { hit_only } => {
                    busy.faults.fails_reads(&here, unit, hit_only)
                }
            };
            if !matches {
                continue;
            }
            let (start, end) = (here.start.max(bytes.start), here.end.min(bytes.end));
            let is_full = found.len() == limit;
            match found.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ if is_full => return (found, false),
                _ => found.push(start..end),
            }
        }
        (found, true)
    }

    /// The status of a range of units, as runs of units with the same status; at most `limit` runs.
    pub fn block_status(
        &self,
        units: Range<u64>,
        limit: usize,
        status: BlockStatusFn,
    ) -> Vec<(u64, u32)> {
        let busy = self.lock();
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for unit in units {
            let here = status(&*busy.drive, unit);
            let is_full = runs.len() == limit;
            match runs.last_mut() {
                Some((units, same)) if *same == here => *units += 1,
                _ if is_full => break,
                _ => runs.push((1, here)),
            }
        }
        runs
    }
}

/// What stretches of a drive are sought for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentQuery {
    /// The drive's map has them.
    Mapped,
    /// A fault lets reads of them fail; where `hit_only`, only one that has done so to some command.
    Unreadable {
        /// Only the faults that have already hit a command.
        hit_only: bool,
    },
}

/// What block status tells of a unit.
pub type BlockStatusFn = fn(&dyn crate::drive::Drive, u64) -> u32;
