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

/// A command that the drive has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How it ends.
    pub ended: CommandResult,
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
        shape: &DriveParameters,
        clock: &Clock,
    ) -> Vec<Accepted> {
        self.advance(clock.drive_time(self.drive.now()));
        let mut taken = Vec::with_capacity(commands.len());
        for command in commands {
            let room = shape.queue_depth - self.in_flight;
            // One of more requests than the queue ever has room for takes all of it.
            let wanted = command.requests(shape).count().min(shape.queue_depth);
            if clock.is_paced() && wanted > room {
                break;
            }
            let done = self.do_or_fail(command, shape, clock);
            taken.push(done);
            if command.writes()
                && let Some(share) = self.power.meets_plan()
            {
                let left = done.completed.saturating_sub(self.drive.now()).get() as f64;
                self.advance(self.drive.now() + Nanos::new((left * share) as u64));
                return taken;
            }
        }
        if !clock.is_paced() {
            self.wait_for_all();
            clock.begin_idle();
        }
        taken
    }

    /// Trims all of the drive.
    pub fn trim_all(&mut self, shape: &DriveParameters, clock: &Clock) -> CommandResult {
        self.advance(clock.drive_time(self.drive.now()));
        let mut ended = Ok(());
        for from in (0..shape.capacity).step_by(1 << 30) {
            let length = (shape.capacity - from).min(1 << 30) as u32;
            let trim = Command::new(Operation::Trim, from, length);
            ended = ended.and(self.do_or_fail(&trim, shape, clock).ended);
        }
        if !clock.is_paced() {
            self.wait_for_all();
            clock.begin_idle();
        }
        ended
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
    pub fn fork(&self) -> Self {
        Self { in_flight: self.in_flight, ..Self::new(self.drive.fork()) }
    }

    /// Nothing is in flight: its power was cut.
    pub fn forget_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Gives a command to the drive, unless a fault or the drive's end is in the way.
    fn do_or_fail(
        &mut self,
        command: &Command,
        shape: &DriveParameters,
        clock: &Clock,
    ) -> Accepted {
        let verdict = if self.faults.are_none() {
            Verdict::default()
        } else {
            self.faults.judge(command, shape, &*self.drive)
        };
        let Verdict { mut refused, not_before, corruption } = verdict;
        if command.changes() && self.drive.is_read_only() {
            refused = Some(EPERM);
        }
        let mut taken = match refused {
            Some(errno) => {
                let completed = self.drive.now();
                let due = clock.due(completed, 0);
                Accepted { ended: Err(errno), completed, due, corruption: None }
            }
            None => {
                Accepted { corruption, ..self.submit(&placed(command, corruption), shape, clock) }
            }
        };
        self.meter.note(command, taken.ended, taken.completed - self.drive.now());
        taken.due = taken.due.max(not_before);
        taken
    }

    fn submit(&mut self, command: &Command, shape: &DriveParameters, clock: &Clock) -> Accepted {
        let (mut ended, mut completed) = (Ok(()), Nanos::ZERO);
        for request in command.requests(shape) {
            while self.in_flight == shape.queue_depth {
                self.wait();
            }
            let done = self.drive.submit_timed(request);
            self.in_flight += 1;
            completed = completed.max(done.completed);
            ended = ended.and(done.outcome.map_err(|error| error.errno));
        }
        let due = clock.due(completed, command.moved_bytes());
        Accepted { ended, completed, due, corruption: None }
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
