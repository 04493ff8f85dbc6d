//! `Engine`: a served drive, which executes the commands of all its clients.

use std::io;
use std::ops::Range;
use std::time::Instant;

use crate::command::{Accepted, Command, CommandResult, Operation};
use crate::content::{Content, Payload};
use crate::drive::{Counter, Drive, DriveParameters, PowerCutLoss};
use crate::errno::EIO;
use crate::fault::Faults;
use crate::pacing::{Clock, LatencyCompensation, Pace, wall_clock_now};
use crate::power::{Epoch, PowerCutPlan, PowerStatus, State};
use crate::send_buffer::SendBuffer;
use crate::state::{DriveState, DriveStatus};
use crate::store::Store;
use crate::sync::{Mutex, MutexGuard, RwLock};
use crate::write_log::WriteLog;

/// A served drive, shared by all connections.
///
/// Its locks are taken in this order: `gate`, `state`, the write log. A command holds `state` while
/// the drive gets it, but not while the content is read or changed.
pub struct Engine {
    /// Read-locked by commands, and write-locked by what must run between two commands.
    gate: RwLock<()>,
    state: Mutex<DriveState>,
    /// The drive's content and its write log.
    pub content: Content,
    /// The drive's clock and its relation to the wall clock.
    pub clock: Clock,
    /// The drive's parameters.
    pub parameters: DriveParameters,
}

/// The property of the ranges that `Engine::extents` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentQuery {
    /// The drive has mapped them.
    Mapped,
    /// A fault makes reads of them fail.
    Unreadable {
        /// Only the faults that have already hit a command.
        hit_only: bool,
    },
}

/// The block status of a unit of a drive.
pub type BlockStatusFn = fn(&dyn Drive, u64) -> u32;

impl Engine {
    /// A drive and its content.
    pub fn new(drive: Box<dyn Drive>, store: Store, clock: Clock) -> Self {
        let parameters = drive.parameters();
        let content = Content::new(store, parameters);
        let state = Mutex::new(DriveState::new(drive));
        Self { gate: RwLock::new(()), state, content, clock, parameters }
    }

    /// Records every change of the content in a write log from now on.
    #[must_use]
    pub fn with_log(self, log: WriteLog) -> Self {
        Self { content: self.content.with_log(log), ..self }
    }

    /// A clone of the drive and its content, taken between two commands. It has power, no faults
    /// and no write log. An error if the content is in a file.
    pub fn try_clone(&self) -> io::Result<Self> {
        let _exclusive = self.gate.write().expect("no panic while locked");
        let state = self.lock();
        let off_since = match state.layers.power.state {
            State::Off(since) => Some(since),
            State::On | State::Failing { .. } => None,
        };
        Ok(Self {
            gate: RwLock::new(()),
            state: Mutex::new(state.clone_with_power()),
            content: self.content.try_clone()?,
            clock: self.clock.clone_resumed(off_since),
            parameters: self.parameters,
        })
    }

    /// A drive whose data is kept in memory and whose replies are sent at once.
    pub fn in_memory(drive: impl Drive + 'static) -> Self {
        let store = Store::in_memory(&drive.parameters());
        Self::new(Box::new(drive), store, Clock::start(Pace::None, LatencyCompensation::default()))
    }

    /// The drive's power.
    pub fn power(&self) -> PowerControl<'_> {
        PowerControl(self)
    }

    /// Reads the drive's state, with the drive locked.
    pub fn inspect<R>(&self, read: impl FnOnce(&DriveState) -> R) -> R {
        read(&self.lock())
    }

    /// Reads or changes the drive's faults, with the drive locked.
    pub fn faults<R>(&self, change: impl FnOnce(&mut Faults) -> R) -> R {
        change(&mut self.lock().layers.faults)
    }

    /// The drive's counters, and the number of writes by their hint.
    pub fn counters(&self) -> Vec<Counter> {
        let state = self.lock();
        let mut counters = state.drive.counters();
        counters.extend(state.layers.meter.hint_counters());
        counters
    }

    /// Health and statistics of the drive.
    pub fn status(&self) -> DriveStatus {
        let state = self.lock();
        DriveStatus {
            health: state.drive.health(),
            by_kind: state.layers.meter.by_kind().to_vec(),
            uptime: state.drive.now(),
            is_read_only: state.drive.is_read_only(),
            power_cuts: state.layers.power.status().cuts,
        }
    }

    /// Executes commands that arrived together; the drive has them in flight at once. Each has
    /// passed `Command::check`. `payload` returns the data of a write; `read_reply` gets a function
    /// that appends the data of a read to a reply.
    ///
    /// Returns the commands that were accepted, in order: with pacing, a full queue accepts no more
    /// until `next_free`. Returns `None` if the epoch is over or ends during one of them: then none
    /// of them may be answered.
    pub fn perform<'a, P: Into<Payload<'a>>>(
        &self,
        epoch: Epoch,
        commands: &[Command],
        payload: impl Fn(usize) -> P,
        mut read_reply: impl FnMut(usize, &Accepted, &dyn Fn(&mut SendBuffer) -> CommandResult),
    ) -> Option<Vec<Accepted>> {
        let _running = self.gate.read().expect("no panic while locked");
        let (mut accepted, now, has_power) = {
            let mut state = self.lock_in(epoch)?;
            let accepted = state.submit_all(commands, &self.clock);
            (accepted, state.drive.now(), state.layers.power.epoch().is_some())
        };
        for (number, command) in commands[..accepted.len()].iter().enumerate() {
            if accepted[number].result.is_err() {
                continue;
            }
            if command.operation == Operation::Read {
                let read = |out: &mut SendBuffer| self.content.read(command, out);
                read_reply(number, &accepted[number], &read);
            } else {
                let payload = || payload(number).into();
                let applied = self.content.apply(command, payload, &accepted[number]);
                accepted[number].result = applied.map_err(|_| EIO);
            }
        }
        self.content.store.drop_durable(now);
        has_power.then_some(accepted)
    }

    /// When the drive's queue has room again; `None` if nothing is in flight, or without pacing.
    pub fn next_free(&self) -> Option<Instant> {
        self.lock().drive.next_completion().and_then(|time| self.clock.due(time, 0))
    }

    /// Requests that the drive has not completed by now.
    pub fn in_flight(&self) -> usize {
        let mut state = self.lock();
        if self.clock.is_paced() && state.layers.power.epoch().is_some() {
            let now = self.clock.drive_time(state.drive.now());
            state.advance(now);
        }
        state.in_flight
    }

    /// Whether everything that the drive has not mapped reads as zeros. This is not the case if
    /// trimmed units keep their data, or if the content's file had data that the map lacks.
    pub fn unmapped_is_zero(&self) -> bool {
        self.parameters.trims_to_zeros && self.content.store.has_complete_map
    }

    /// Trims the whole drive; the content is zeros afterwards, also if the drive's trims keep the
    /// old data. `None` if the epoch is over.
    pub fn erase(&self, epoch: Epoch) -> Option<CommandResult> {
        let _exclusive = self.gate.write().expect("no panic while locked");
        let trimmed = self.lock_in(epoch)?.trim_all(&self.clock);
        Some(trimmed.and_then(|()| self.content.erase()))
    }

    /// Moves a stream to another superblock. Returns whether the old one was left before it was
    /// full, or `None` if the epoch is over.
    pub fn renew_stream(&self, epoch: Epoch, stream: u32) -> Option<bool> {
        let _running = self.gate.read().expect("no panic while locked");
        let mut state = self.lock_in(epoch)?;
        let now = self.clock.drive_time(state.drive.now());
        state.advance(now);
        Some(state.drive.renew_stream(stream))
    }

    /// Writes out the write log, after the commands that are running.
    pub fn finish_log(&self) -> io::Result<()> {
        let _exclusive = self.gate.write().expect("no panic while locked");
        self.content.finish_log()
    }

    /// Whether the drive has mapped all units of a range of bytes.
    pub fn is_mapped(&self, offset: u64, length: u64) -> bool {
        let unit_bytes = self.parameters.unit_bytes;
        let mut units = offset / unit_bytes..(offset + length).div_ceil(unit_bytes);
        self.inspect(|state| units.all(|unit| state.drive.is_mapped(unit)))
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
        let state = self.lock();
        let mut found: Vec<Range<u64>> = Vec::new();
        for unit in bytes.start / unit_bytes..bytes.end.div_ceil(unit_bytes) {
            let here = unit * unit_bytes..(unit + 1) * unit_bytes;
            let matches = match query {
                ExtentQuery::Mapped => state.drive.is_mapped(unit),
                ExtentQuery::Unreadable { hit_only } => {
                    state.layers.faults.fails_reads(&here, unit, hit_only)
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

    /// The block status of a range of units, as runs of units with the same status: the number of
    /// units and their status. At most `limit` runs.
    pub fn block_status(
        &self,
        units: Range<u64>,
        limit: usize,
        status: BlockStatusFn,
    ) -> Vec<(u64, u32)> {
        let state = self.lock();
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for unit in units {
            let here = status(&*state.drive, unit);
            let is_full = runs.len() == limit;
            match runs.last_mut() {
                Some((units, same)) if *same == here => *units += 1,
                _ if is_full => break,
                _ => runs.push((1, here)),
            }
        }
        runs
    }

    fn lock(&self) -> MutexGuard<'_, DriveState> {
        self.state.lock().expect("no panic while locked")
    }

    /// Locks the drive for a command of an epoch; `None` if the epoch is over.
    fn lock_in(&self, epoch: Epoch) -> Option<MutexGuard<'_, DriveState>> {
        Some(self.lock()).filter(|state| state.layers.power.epoch() == Some(epoch))
    }
}

/// The power of a served drive.
#[derive(Clone, Copy)]
pub struct PowerControl<'a>(&'a Engine);

impl PowerControl<'_> {
    /// State and statistics.
    pub fn status(self) -> PowerStatus {
        self.0.inspect(|state| state.layers.power.status())
    }

    /// The epoch that commands must carry; `None` while the drive takes no commands.
    pub fn epoch(self) -> Option<Epoch> {
        self.0.inspect(|state| state.layers.power.epoch())
    }

    /// Plans a power cut and drops an earlier plan; panics if `after_writes` is 0.
    pub fn plan_cut(self, plan: Option<PowerCutPlan>) {
        assert!(plan.is_none_or(|plan| plan.after_writes > 0), "the next write is number 1");
        self.0.lock().layers.power.plan = plan;
    }

    /// Begins a cut: the drive takes no commands and no connections until `finish_cut`. A planned
    /// cut begins in the same way. Returns false, and does nothing, unless the power is on.
    pub fn begin_cut(self, then_on: bool) -> bool {
        self.0.lock().layers.power.begin_cut(then_on)
    }

    /// Whether a cut has begun and is not finished.
    pub fn is_failing(self) -> bool {
        self.0.inspect(|state| matches!(state.layers.power.state, State::Failing { .. }))
    }

    /// Finishes a cut that has begun: rolls back what was not in flash, and ends the epoch. `None`
    /// if no cut has begun. Panics if the content's file or the write log cannot be written: a cut
    /// must not end half way.
    pub fn finish_cut(self) -> Option<PowerCutLoss> {
        let engine = self.0;
        let _exclusive = engine.gate.write().expect("no panic while locked");
        let mut state = engine.lock();
        let State::Failing { then_on } = state.layers.power.state else { return None };
        // A reply may have left since the cut began: its command completed before the cut.
        let now = engine.clock.acknowledged_time(state.drive.now());
        state.advance(now);
        let loss = state.drive.power_cut();
        state.in_flight = 0;
        engine.content.roll_back(&loss).expect("the content and the log can be written");
        let next = if then_on { State::On } else { State::Off(wall_clock_now()) };
        state.layers.power.finish_cut(next, loss.clone());
        engine.clock.begin_idle();
        Some(loss)
    }

    /// Turns the power on; false if it was on. The drive's clock stood still while it was off.
    pub fn turn_on(self) -> bool {
        let mut state = self.0.lock();
        let Some(off_since) = state.layers.power.turn_on() else { return false };
        self.0.clock.resume_after(off_since);
        true
    }
}
