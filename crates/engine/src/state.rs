//! `DriveState`: the drive with its requests in flight, and the layers around it: all that the
//! drive's lock guards.

use ssdlab_device::{Completion, Wait};
use ssdlab_time::Nanos;

use crate::command::{Command, CommandResult, DriveParameters, Operation};
use crate::drive::{Counter, Drive, Health};
use crate::errno::EPERM;
use crate::fault::Faults;
use crate::layer::{Accepted, Layer, Verdict, redirected};
use crate::meter::{Meter, OperationStats};
use crate::pacing::Clock;
use crate::power::Power;

/// The layers that see every command, outermost first.
#[derive(Default)]
pub struct Layers {
    pub faults: Faults,
    pub meter: Meter,
    pub power: Power,
}

impl Layer for Layers {
    fn before(
        &mut self,
        command: &Command,
        drive: &dyn Drive,
        parameters: &DriveParameters,
        verdict: &mut Verdict,
    ) {
        self.faults.before(command, drive, parameters, verdict);
        self.meter.before(command, drive, parameters, verdict);
        self.power.before(command, drive, parameters, verdict);
    }

    fn after(&mut self, command: &Command, accepted: &Accepted, now: Nanos) -> Option<Nanos> {
        let failures = [
            self.faults.after(command, accepted, now),
            self.meter.after(command, accepted, now),
            self.power.after(command, accepted, now),
        ];
        failures.into_iter().flatten().min()
    }
}

/// The drive, its requests in flight, and the layers around it.
pub struct DriveState {
    pub(crate) drive: Box<dyn Drive>,
    pub(crate) layers: Layers,
    parameters: DriveParameters,
    in_flight: usize,
    /// Reused by every reap.
    completions: Vec<Completion>,
}

/// Health and statistics of a drive at one moment.
#[derive(Clone, Debug)]
pub struct DriveStatus {
    /// The drive's own counters.
    pub health: Health,
    /// Statistics by kind of operation.
    pub by_kind: Vec<OperationStats>,
    /// Time since the drive was new, on its own clock.
    pub uptime: Nanos,
    /// Whether it refuses writes and trims.
    pub is_read_only: bool,
    /// How often its power was cut.
    pub power_cuts: u64,
}

impl DriveState {
    /// A drive with nothing in flight.
    pub(crate) fn new(drive: Box<dyn Drive>) -> Self {
        let parameters = DriveParameters::of(&*drive);
        let (layers, completions) = (Layers::default(), Vec::new());
        Self { drive, layers, parameters, in_flight: 0, completions }
    }

    /// The same drive with the same requests in flight; it has power, and no faults.
    pub(crate) fn clone_without_layers(&self) -> Self {
        Self { in_flight: self.in_flight, ..Self::new(self.drive.boxed_clone()) }
    }

    /// The drive.
    pub fn drive(&self) -> &dyn Drive {
        &*self.drive
    }

    /// Statistics of the commands.
    pub fn meter(&self) -> &Meter {
        &self.layers.meter
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Bytes that each stream's open superblock still takes.
    pub fn stream_rooms(&self) -> Vec<u64> {
        let streams = 0..self.drive.geometry().streams;
        streams.map(|stream| self.drive.stream_room(stream)).collect()
    }

    /// The drive's counters, and the number of writes by their hint.
    pub fn counters(&self) -> Vec<Counter> {
        let mut counters = self.drive.counters();
        counters.extend(self.layers.meter.hint_counters());
        counters
    }

    /// Health and statistics.
    pub fn status(&self) -> DriveStatus {
        DriveStatus {
            health: self.drive.health(),
            by_kind: self.layers.meter.by_kind().to_vec(),
            uptime: self.drive.now(),
            is_read_only: self.drive.is_read_only(),
            power_cuts: self.layers.power.status().cuts,
        }
    }

    /// Submits commands that arrived together, in order. With pacing it stops at the first command
    /// for which the queue has no room. It also stops after a write during which the power fails.
    pub(crate) fn submit_all(&mut self, commands: &[Command], clock: &Clock) -> Vec<Accepted> {
        self.advance(clock.drive_time(self.drive.now()));
        let mut accepted = Vec::with_capacity(commands.len());
        for command in commands {
            if clock.is_paced() && !self.has_room(command) {
                break;
            }
            let (result, power_fails) = self.submit(command, clock);
            accepted.push(result);
            if let Some(time) = power_fails {
                self.advance(time);
                return accepted;
            }
        }
        self.finish_batch(clock);
        accepted
    }

    /// Trims the whole drive.
    pub(crate) fn trim_all(&mut self, clock: &Clock) -> CommandResult {
        self.advance(clock.drive_time(self.drive.now()));
        let mut result = Ok(());
        for from in (0..self.parameters.capacity).step_by(1 << 30) {
            let length = (self.parameters.capacity - from).min(1 << 30) as u32;
            let trim = Command::new(Operation::Trim, from, length);
            result = result.and(self.submit(&trim, clock).0.result);
        }
        self.finish_batch(clock);
        result
    }

    /// Advances the drive's clock to a time.
    pub(crate) fn advance(&mut self, time: Nanos) {
        while self.drive.now() < time {
            self.reap(Wait::Until(time));
        }
        self.reap(Wait::Poll);
    }

    /// Forgets the requests in flight, because the power was cut.
    pub(crate) fn clear_in_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Whether the queue has room for all requests of a command. One with more requests than the
    /// queue holds needs the whole queue.
    fn has_room(&self, command: &Command) -> bool {
        let depth = self.parameters.queue_depth;
        command.requests(&self.parameters).count().min(depth) <= depth - self.in_flight
    }

    /// Passes a command through the layers to the drive. Also returns the time at which the power
    /// fails, if it fails during this command.
    fn submit(&mut self, command: &Command, clock: &Clock) -> (Accepted, Option<Nanos>) {
        let mut verdict = Verdict::default();
        self.layers.before(command, &*self.drive, &self.parameters, &mut verdict);
        let Verdict { mut refused, not_before, corruption } = verdict;
        if command.changes() && self.drive.is_read_only() {
            refused = Some(EPERM);
        }
        let mut accepted = if let Some(errno) = refused {
            let completed = self.drive.now();
            let due = clock.due(completed, 0);
            Accepted { result: Err(errno), completed, due, corruption: None }
        } else {
            let command = redirected(command, corruption);
            Accepted { corruption, ..self.submit_to_drive(&command, clock) }
        };
        accepted.due = accepted.due.max(not_before);
        let power_fails = self.layers.after(command, &accepted, self.drive.now());
        (accepted, power_fails)
    }

    fn submit_to_drive(&mut self, command: &Command, clock: &Clock) -> Accepted {
        let (mut result, mut completed) = (Ok(()), Nanos::ZERO);
        for request in command.requests(&self.parameters) {
            while self.in_flight == self.parameters.queue_depth {
                self.reap(Wait::One);
            }
            let completion = self.drive.submit_timed(request);
            self.in_flight += 1;
            completed = completed.max(completion.completed);
            result = result.and(completion.outcome.map_err(|error| error.errno));
        }
        let due = clock.due(completed, command.moved_bytes());
        Accepted { result, completed, due, corruption: None }
    }

    /// Without pacing, completes all requests: the drive is then idle until the next batch.
    fn finish_batch(&mut self, clock: &Clock) {
        if !clock.is_paced() {
            while self.in_flight > 0 {
                self.reap(Wait::One);
            }
            clock.begin_idle();
        }
    }

    fn reap(&mut self, wait: Wait) {
        let reaped = self.drive.reap(wait, &mut self.completions);
        reaped.expect("a simulated drive has no I/O errors");
        self.in_flight -= self.completions.drain(..).count();
    }
}
