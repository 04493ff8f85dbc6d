//! `Engine`: a served drive, which executes the commands of all its clients.

mod extents;
mod power_control;

use std::io;
use std::time::Instant;

pub use extents::{BlockStatusFn, ExtentQuery};
pub use power_control::PowerControl;

use crate::command::{Accepted, Command, CommandResult, Operation};
use crate::content::{Content, Payload};
use crate::drive::{Counter, Drive, DriveParameters};
use crate::fault::Faults;
use crate::latency_compensation::LatencyCompensation;
use crate::pacing::{Clock, Pace};
use crate::power::{Epoch, State};
use crate::send_buffer::SendBuffer;
use crate::state::{DriveState, DriveStatus};
use crate::store::{ReceiveMemory, Store};
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
    content: Content,
    clock: Clock,
    parameters: DriveParameters,
}

impl Engine {
    /// A drive and its content.
    pub fn new(drive: Box<dyn Drive>, store: Store, clock: Clock) -> Self {
        let parameters = drive.parameters();
        let content = Content::new(store, parameters);
        Self::from_parts(DriveState::new(drive), content, clock, parameters)
    }

    fn from_parts(
        state: DriveState,
        content: Content,
        clock: Clock,
        parameters: DriveParameters,
    ) -> Self {
        Self { gate: RwLock::new(()), state: Mutex::new(state), content, clock, parameters }
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
        Ok(Self::from_parts(
            state.clone_with_power(),
            self.content.try_clone()?,
            self.clock.clone_resumed(off_since),
            self.parameters,
        ))
    }

    /// The drive's parameters.
    pub fn parameters(&self) -> DriveParameters {
        self.parameters
    }

    /// A drive whose data is kept in memory and whose replies are sent at once.
    pub fn in_memory(drive: impl Drive + 'static) -> Self {
        let store = Store::in_memory(&drive.parameters());
        Self::new(Box::new(drive), store, Clock::start(Pace::None, LatencyCompensation::default()))
    }

    /// The drive's clock and its relation to the wall clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The drive's content and its write log.
    pub fn content(&self) -> &Content {
        &self.content
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

    /// Checks whether a command can be executed at all.
    pub fn check(&self, command: &Command) -> CommandResult {
        command.check(self.parameters.capacity)
    }

    /// Executes commands that arrived together; the drive has them in flight at once. Each has
    /// passed `check`. `payload` returns the data of a write; `read_reply` gets a function that
    /// appends the data of a read to a reply.
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
                accepted[number].result = self.content.apply(command, payload, &accepted[number]);
            }
        }
        self.content.store.drop_durable(now);
        has_power.then_some(accepted)
    }

    /// When the drive's queue has room again; `None` if nothing is in flight, or without pacing.
    pub fn next_free(&self) -> Option<Instant> {
        self.lock().drive.next_completion().and_then(|time| self.clock.due(time, 0))
    }

    /// Memory in which to receive a write's payload, so that the store can adopt it without a copy.
    /// `None` if the payload must be contiguous.
    pub fn receive_memory(&self, command: &Command) -> Option<ReceiveMemory> {
        self.content.receive_memory(command)
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

    fn lock(&self) -> MutexGuard<'_, DriveState> {
        self.state.lock().expect("no panic while locked")
    }

    /// Locks the drive for a command of an epoch; `None` if the epoch is over.
    fn lock_in(&self, epoch: Epoch) -> Option<MutexGuard<'_, DriveState>> {
        Some(self.lock()).filter(|state| state.layers.power.epoch() == Some(epoch))
    }
}
