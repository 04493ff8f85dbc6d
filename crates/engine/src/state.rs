//! `DriveState`: the drive with its requests in flight, and the layers around it: all that the
//! drive's lock guards.

use ssdlab_device::{Completion, Wait};
use ssdlab_time::Nanos;

use crate::command::{Accepted, Command, CommandResult, Operation};
use crate::drive::{Drive, DriveParameters, Health};
use crate::errno::EPERM;
use crate::fault::Faults;
use crate::layer::{Decision, Layer};
use crate::meter::{Meter, OperationStats};
use crate::pacing::Clock;
use crate::power::Power;

#[derive(Default)]
pub struct Layers {
    pub faults: Faults,
    pub meter: Meter,
    pub power: Power,
}

impl Layers {
    /// All layers, in the order in which they see a command.
    fn each(&mut self) -> [&mut dyn Layer; 3] {
        [&mut self.faults, &mut self.meter, &mut self.power]
    }
}

/// The drive, its requests in flight, and the layers around it.
pub struct DriveState {
    /// The drive.
    pub drive: Box<dyn Drive>,
    pub(crate) layers: Layers,
    parameters: DriveParameters,
    /// Requests in flight.
    pub in_flight: usize,
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
    pub(crate) fn new(drive: Box<dyn Drive>) -> Self {
        let (parameters, completions) = (drive.parameters(), Vec::new());
        Self { drive, layers: Layers::default(), parameters, in_flight: 0, completions }
    }

    /// The same drive with the same requests in flight; it has power, and no faults.
    pub(crate) fn clone_with_power(&self) -> Self {
        Self { in_flight: self.in_flight, ..Self::new(self.drive.boxed_clone()) }
    }

    /// Statistics of the commands.
    pub fn meter(&self) -> &Meter {
        &self.layers.meter
    }

    /// How often its power was cut.
    pub fn power_cuts(&self) -> u64 {
        self.layers.power.status().cuts
    }

    /// Bytes that each stream's open superblock still takes.
    pub fn stream_rooms(&self) -> Vec<u64> {
        let streams = 0..self.drive.geometry().streams;
        streams.map(|stream| self.drive.stream_room(stream)).collect()
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

    /// Whether the queue has room for all requests of a command. One with more requests than the
    /// queue holds needs the whole queue.
    fn has_room(&self, command: &Command) -> bool {
        let depth = self.parameters.queue_depth;
        command.requests(&self.parameters).count().min(depth) <= depth - self.in_flight
    }

    /// Passes a command through the layers to the drive. Also returns the time at which the power
    /// fails, if it fails during this command.
    fn submit(&mut self, command: &Command, clock: &Clock) -> (Accepted, Option<Nanos>) {
        let mut decision = Decision::default();
        for layer in self.layers.each() {
            layer.before(command, &*self.drive, &self.parameters, &mut decision);
        }
        let Decision { mut refused, not_before, corruption } = decision;
        if command.changes() && self.drive.is_read_only() {
            refused = Some(EPERM);
        }
        let mut accepted = if let Some(errno) = refused {
            let completed = self.drive.now();
            let due = clock.due(completed, 0);
            Accepted { result: Err(errno), completed, due, corruption: None }
        } else {
            let redirected = command.redirected(corruption);
            Accepted { corruption, ..self.submit_to_drive(&redirected, clock) }
        };
        accepted.due = accepted.due.max(not_before);
        let now = self.drive.now();
        let layers = self.layers.each().into_iter();
        let power_fails = layers.filter_map(|layer| layer.after(command, &accepted, now)).min();
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
