//! `DriveState`: the drive with what it has in flight, and its power; what one lock guards.

use std::time::Instant;

use ssdlab_device::Wait;
use ssdlab_time::Nanos;

use crate::command::{Command, CommandResult, DriveParameters, Operation};
use crate::drive::Drive;
use crate::errno::EPERM;
use crate::fault::{Faults, Verdict, WriteCorruption, placed};
use crate::meter::Meter;
use crate::pacing::Clock;
use crate::power::Power;

/// A command that the drive has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How it ends.
    pub result: CommandResult,
    /// When, on the drive's clock.
    pub completed: Nanos,
    /// When it may be answered; `None` for at once.
    pub due: Option<Instant>,
    /// What a write did instead of what it says.
    pub corruption: Option<WriteCorruption>,
}

/// The drive, what it has in flight and whether it has power.
pub struct DriveState {
    pub drive: Box<dyn Drive>,
    pub power: Power,
    pub faults: Faults,
    pub meter: Meter,
    in_flight: usize,
}

impl DriveState {
    /// A drive with nothing in flight.
    pub fn new(drive: Box<dyn Drive>) -> Self {
        Self {
            drive,
            power: Power::default(),
            faults: Faults::default(),
            meter: Meter::default(),
            in_flight: 0,
        }
    }

    /// Takes commands that were put together, from the first on: paced, as far as the queue has
    /// room; and none after the write that a cut was planned for.
    pub fn take(
        &mut self,
        commands: &[Command],
        parameters: &DriveParameters,
        clock: &Clock,
    ) -> Vec<Accepted> {
        self.advance(clock.drive_time(self.drive.now()));
        let mut accepted = Vec::with_capacity(commands.len());
        for command in commands {
            let room = parameters.queue_depth - self.in_flight;
            // One of more requests than the queue ever has room for takes all of it.
            let wanted = command.requests(parameters).count().min(parameters.queue_depth);
            if clock.is_paced() && wanted > room {
                break;
            }
            let done = self.do_or_fail(command, parameters, clock);
            accepted.push(done);
            if command.writes()
                && let Some(share) = self.power.meets_plan()
            {
                let left = done.completed.saturating_sub(self.drive.now()).get() as f64;
                self.advance(self.drive.now() + Nanos::new((left * share) as u64));
                return accepted;
            }
        }
        if !clock.is_paced() {
            self.wait_for_all();
            clock.begin_idle();
        }
        accepted
    }

    /// Trims all of the drive.
    pub fn trim_all(&mut self, parameters: &DriveParameters, clock: &Clock) -> CommandResult {
        self.advance(clock.drive_time(self.drive.now()));
        let mut result = Ok(());
        for from in (0..parameters.capacity).step_by(1 << 30) {
            let length = (parameters.capacity - from).min(1 << 30) as u32;
            let trim = Command::new(Operation::Trim, from, length);
            result = result.and(self.do_or_fail(&trim, parameters, clock).result);
        }
        if !clock.is_paced() {
            self.wait_for_all();
            clock.begin_idle();
        }
        result
    }

    /// Brings the drive's clock to a time.
    pub fn advance(&mut self, time: Nanos) {
        let mut done = Vec::new();
        while self.drive.now() < time {
            self.drive.reap(Wait::Until(time), &mut done).expect("a twin never goes away");
        }
        self.drive.reap(Wait::Poll, &mut done).expect("a twin never goes away");
        self.in_flight -= done.len();
    }

    /// How many requests it has in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The same state, to go its own way; nothing is to go wrong there.
    pub fn clone_without_faults(&self) -> Self {
        Self { in_flight: self.in_flight, ..Self::new(self.drive.boxed_clone()) }
    }

    /// Nothing is in flight: its power was cut.
    pub fn clear_in_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Gives a command to the drive, unless a fault or the drive's end is in the way.
    fn do_or_fail(
        &mut self,
        command: &Command,
        parameters: &DriveParameters,
        clock: &Clock,
    ) -> Accepted {
        let verdict = if self.faults.are_none() {
            Verdict::default()
        } else {
            self.faults.judge(command, parameters, &*self.drive)
        };
        let Verdict { mut refused, not_before, corruption } = verdict;
        if command.changes() && self.drive.is_read_only() {
            refused = Some(EPERM);
        }
        let mut accepted = match refused {
            Some(errno) => {
                let completed = self.drive.now();
                let due = clock.due(completed, 0);
                Accepted { result: Err(errno), completed, due, corruption: None }
            }
            None => Accepted {
                corruption,
                ..self.submit(&placed(command, corruption), parameters, clock)
            },
        };
        self.meter.note(command, accepted.result, accepted.completed - self.drive.now());
        accepted.due = accepted.due.max(not_before);
        accepted
    }

    fn submit(
        &mut self,
        command: &Command,
        parameters: &DriveParameters,
        clock: &Clock,
    ) -> Accepted {
        let (mut result, mut completed) = (Ok(()), Nanos::ZERO);
        for request in command.requests(parameters) {
            while self.in_flight == parameters.queue_depth {
                self.wait();
            }
            let done = self.drive.submit_timed(request);
            self.in_flight += 1;
            completed = completed.max(done.completed);
            result = result.and(done.outcome.map_err(|error| error.errno));
        }
        let due = clock.due(completed, command.moved_bytes());
        Accepted { result, completed, due, corruption: None }
    }

    fn wait_for_all(&mut self) {
        while self.in_flight > 0 {
            self.wait();
        }
    }

    /// Waits on the drive's own clock for what is done next.
    fn wait(&mut self) {
        let mut done = Vec::new();
        self.drive.reap(Wait::One, &mut done).expect("a twin never goes away");
        self.in_flight -= done.len();
    }
}
