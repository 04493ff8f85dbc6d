//! `Faults`: what goes wrong with commands; the same for the same seed and the same commands.

mod dead;
mod spec;

use std::ops::Range;
use std::time::Instant;

use ssdlab_device::LBA_BYTES;
use ssdlab_time::Random;

use crate::command::{Command, DriveParameters};
use crate::drive::Drive;
use crate::errno::{EIO, EPERM};
use crate::pacing::wall_clock_now;
use dead::Dead;
pub use spec::{FaultSpec, Kind, OperationKind};

/// What a write does instead of what it says it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCorruption {
    /// Only so many of its first bytes are written.
    Torn(u64),
    /// It goes to this byte.
    Elsewhere(u64),
    /// Nothing is written.
    Lost,
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The errno that it fails with, unseen by the drive.
    pub refused: Option<i32>,
    /// Its answer does not leave before.
    pub not_before: Option<Instant>,
    pub corruption: Option<WriteCorruption>,
}

/// A fault with its state.
#[derive(Debug)]
struct Fault {
    number: u64,
    spec: FaultSpec,
    from: Option<Instant>,
    random: Random,
    /// Commands that were meant, and those that it hits.
    matched: u64,
    hits: u64,
    dead: Option<Dead>,
}

/// What is known of a fault.
#[derive(Debug)]
pub struct FaultStatus {
    /// By which it can be cleared.
    pub number: u64,
    /// The fault as it was requested.
    pub spec: FaultSpec,
    /// How many commands it hits.
    pub hits: u64,
    /// Units that cannot be read because of it.
    pub dead_units: Option<u64>,
}

/// All faults of a drive.
#[derive(Debug, Default)]
pub struct Faults {
    all: Vec<Fault>,
    added: u64,
    stalled_until: Option<Instant>,
}

impl Faults {
    /// Whether nothing can go wrong.
    pub fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds one; returns its number.
    pub fn add(&mut self, spec: FaultSpec) -> u64 {
        self.added += 1;
        let from = spec.start_after.map(|after| wall_clock_now() + after);
        let random = Random::new(spec.seed, "faults");
        let number = self.added;
        self.all.push(Fault { number, spec, from, random, matched: 0, hits: 0, dead: None });
        number
    }

    /// Clears one, or all of them; returns how many there were.
    pub fn clear(&mut self, number: Option<u64>) -> usize {
        let before = self.all.len();
        self.all.retain(|fault| number.is_some_and(|number| fault.number != number));
        if self.all.is_empty() {
            self.stalled_until = None;
        }
        before - self.all.len()
    }

    /// All of them, the oldest first.
    pub fn statuses(&self) -> Vec<FaultStatus> {
        let one = |fault: &Fault| FaultStatus {
            number: fault.number,
            spec: fault.spec.clone(),
            hits: fault.hits,
            dead_units: fault.dead.as_ref().map(Dead::count),
        };
        self.all.iter().map(one).collect()
    }

    /// Whether one of them lets reads of a unit fail; where `hit_only`, one that has befallen a command.
    pub fn fails_reads(&self, bytes: &Range<u64>, unit: u64, hit_only: bool) -> bool {
        self.all.iter().any(|fault| {
            let is_over = fault.spec.max_hits.is_some_and(|times| fault.hits >= times);
            let is_due = !is_over && (!hit_only || fault.hits > 0);
            let is_dead = fault.dead.as_ref().is_some_and(|dead| dead.has(unit));
            is_dead || is_due && fault.spec.fails_reads(bytes)
        })
    }

    /// What becomes of a command that the drive is about to get. Call it once per command.
    pub fn judge(
        &mut self,
        command: &Command,
        shape: &DriveParameters,
        drive: &dyn Drive,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        for fault in &mut self.all {
            if !fault.triggers(command) {
                continue;
            }
            match fault.spec.kind {
                Kind::Eio => verdict.refused = Some(EIO),
                Kind::ReadOnly => verdict.refused = Some(EPERM),
                Kind::Delay(delay) => verdict.wait(wall_clock_now() + delay),
                Kind::Stall(time) => self.stalled_until = Some(wall_clock_now() + time),
                Kind::Die(die) => fault.dead = Some(Dead::new(drive, die)),
                Kind::Torn => {
                    verdict.corruption = Some(WriteCorruption::Torn(fault.torn_after(command)));
                }
                Kind::Misdirected => {
                    verdict.corruption =
                        Some(WriteCorruption::Elsewhere(fault.elsewhere(command, shape)));
                }
                Kind::Lost => verdict.corruption = Some(WriteCorruption::Lost),
            }
        }
        if let Some(end) = self.stalled_until {
            verdict.wait(end);
        }
        let placed = placed(command, verdict.corruption);
        for dead in self.all.iter_mut().filter_map(|fault| fault.dead.as_mut()) {
            if verdict.refused.is_none() {
                verdict.refused = dead.meet(&placed, shape).err();
            }
        }
        verdict
    }
}

impl Verdict {
    fn wait(&mut self, until: Instant) {
        self.not_before = self.not_before.max(Some(until));
    }
}

impl Fault {
    /// Whether it triggers a command.
    fn triggers(&mut self, command: &Command) -> bool {
        if !self.spec.matches(command)
            || self.spec.max_hits.is_some_and(|times| self.hits >= times)
            || self.from.is_some_and(|from| wall_clock_now() < from)
        {
            return false;
        }
        self.matched += 1;
        let in_turn = self.spec.nth.is_none_or(|at| self.matched >= at);
        // Draw for every matching command: the sequence must not depend on `nth`.
        let by_chance = self.spec.probability.is_none_or(|share| self.random.unit() < share);
        self.hits += u64::from(in_turn && by_chance);
        in_turn && by_chance
    }

    /// How much of a write is there: at least a sector less than all of it.
    fn torn_after(&mut self, command: &Command) -> u64 {
        let sectors = u64::from(command.length) / LBA_BYTES;
        let kept = if sectors > 1 { 1 + self.random.below(sectors - 1) } else { 0 };
        kept * LBA_BYTES
    }

    /// Where a write goes that goes wrong: the same place of another unit.
    fn elsewhere(&mut self, command: &Command, shape: &DriveParameters) -> u64 {
        let in_unit = command.offset % shape.unit_bytes;
        let room = shape.capacity - in_unit - u64::from(command.length);
        let places = room / shape.unit_bytes + 1;
        let own = command.offset / shape.unit_bytes;
        let unit = self.random.below(places);
        let unit = if unit == own { (unit + 1) % places } else { unit };
        unit * shape.unit_bytes + in_unit
    }
}

/// A command where it really goes.
pub fn placed(command: &Command, corruption: Option<WriteCorruption>) -> Command {
    match corruption {
        Some(WriteCorruption::Elsewhere(offset)) => Command { offset, ..*command },
        _ => *command,
    }
}
