//! `Faults`: what refuses, delays and corrupts commands. The same seed and the same
//! commands give the same faults.

use std::ops::Range;
use std::time::{Duration, Instant};

use ssdlab_device::LBA_BYTES;
use ssdlab_time::Random;

use crate::command::{Command, Operation, OperationKind, WriteCorruption};
use crate::drive::{Drive, DriveParameters};
use crate::errno::{EIO, EPERM};
use crate::layer::{Decision, Layer};
use crate::pacing::wall_clock_now;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command fails with a medium error.
    Eio,
    /// The command fails as on a read-only drive.
    ReadOnly,
    /// The reply is delayed by this wall clock time.
    Delay(Duration),
    /// No reply is sent for this wall clock time.
    Stall(Duration),
    /// A die fails: its content cannot be read; later writes go to other dies.
    Die(u32),
    /// Only the first sectors of a write are written.
    Torn,
    /// A write goes to another place.
    Misdirected,
    /// A write is not executed.
    Lost,
}

/// Which commands a fault hits: those that meet all conditions.
#[derive(Clone, Debug)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: Kind,
    /// Only commands that touch these bytes.
    pub range: Option<Range<u64>>,
    /// Only this kind of operation.
    pub operation_kind: Option<OperationKind>,
    /// Only from the nth matching command on; 1 is the next.
    pub nth: Option<u64>,
    /// Only after this wall clock time.
    pub start_after: Option<Duration>,
    /// The probability with which it hits each matching command.
    pub probability: Option<f64>,
    /// Seed of the random draws.
    pub seed: u64,
    /// Maximum number of commands that it hits.
    pub max_hits: Option<u64>,
}

impl Kind {
    /// The name on the control socket.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eio => "eio",
            Self::ReadOnly => "read-only",
            Self::Delay(_) => "delay",
            Self::Stall(_) => "stall",
            Self::Die(_) => "die",
            Self::Torn => "torn",
            Self::Misdirected => "misdirected",
            Self::Lost => "lost",
        }
    }

    /// Whether it can hit an operation.
    fn applies_to(self, operation: Operation) -> bool {
        match self {
            Self::Torn | Self::Misdirected | Self::Lost => operation == Operation::Write,
            Self::ReadOnly => {
                matches!(operation, Operation::Write | Operation::Zero { .. } | Operation::Trim)
            }
            _ => true,
        }
    }
}

impl FaultSpec {
    /// Whether it makes reads of these bytes fail, always or sometimes.
    pub fn fails_reads(&self, bytes: &Range<u64>) -> bool {
        let touched = |range: &Range<u64>| bytes.start < range.end && bytes.end > range.start;
        self.kind == Kind::Eio
            && self.operation_kind.is_none_or(|kind| kind == OperationKind::Read)
            && self.range.as_ref().is_none_or(touched)
    }

    /// Whether a command meets the range and the operation; a flush touches no bytes.
    pub fn matches(&self, command: &Command) -> bool {
        let touched = self.range.as_ref().is_none_or(|range| {
            command.operation != Operation::Flush
                && command.offset < range.end
                && command.end() > range.start
        });
        touched
            && self.kind.applies_to(command.operation)
            && self.operation_kind.is_none_or(|kind| kind == OperationKind::of(command.operation))
    }
}

/// A fault and what it has done so far.
#[derive(Debug)]
pub struct Fault {
    /// Its number, for `Faults::clear`.
    pub number: u64,
    /// Its specification.
    pub spec: FaultSpec,
    not_before: Option<Instant>,
    random: Random,
    /// Commands that matched the spec.
    matched: u64,
    /// Commands that it hit.
    pub hits: u64,
    dead_die: Option<DeadDie>,
}

/// All faults of a drive.
#[derive(Debug, Default)]
pub struct Faults {
    all: Vec<Fault>,
    /// Faults added so far, including cleared ones.
    added: u64,
    stalled_until: Option<Instant>,
}

impl Layer for Faults {
    fn before(
        &mut self,
        command: &Command,
        drive: &dyn Drive,
        parameters: &DriveParameters,
        decision: &mut Decision,
    ) {
        if self.all.is_empty() {
            return;
        }
        for fault in &mut self.all {
            if !fault.triggers(command) {
                continue;
            }
            match fault.spec.kind {
                Kind::Eio => decision.refused = Some(EIO),
                Kind::ReadOnly => decision.refused = Some(EPERM),
                Kind::Delay(delay) => {
                    decision.not_before = decision.not_before.max(Some(wall_clock_now() + delay));
                }
                Kind::Stall(time) => self.stalled_until = Some(wall_clock_now() + time),
                Kind::Die(die) => fault.dead_die = Some(DeadDie::new(drive, parameters, die)),
                Kind::Torn => {
                    decision.corruption = Some(WriteCorruption::Torn(fault.torn_bytes(command)));
                }
                Kind::Misdirected => {
                    let offset = fault.misdirected_offset(command, parameters);
                    decision.corruption = Some(WriteCorruption::Misdirected(offset));
                }
                Kind::Lost => decision.corruption = Some(WriteCorruption::Lost),
            }
        }
        decision.not_before = decision.not_before.max(self.stalled_until);
        let redirected = command.redirected(decision.corruption);
        for dead_die in self.all.iter_mut().filter_map(|fault| fault.dead_die.as_mut()) {
            if decision.refused.is_none() {
                decision.refused = dead_die.check(&redirected, parameters).err();
            }
        }
    }
}

impl Faults {
    /// Adds a fault; returns its number.
    pub fn add(&mut self, spec: FaultSpec) -> u64 {
        self.added += 1;
        self.all.push(Fault {
            number: self.added,
            not_before: spec.start_after.map(|after| wall_clock_now() + after),
            random: Random::new(spec.seed, "faults"),
            spec,
            matched: 0,
            hits: 0,
            dead_die: None,
        });
        self.added
    }

    /// Clears the fault with a number, or all faults; returns how many were cleared.
    pub fn clear(&mut self, number: Option<u64>) -> usize {
        let before = self.all.len();
        self.all.retain(|fault| number.is_some_and(|number| fault.number != number));
        if self.all.is_empty() {
            self.stalled_until = None;
        }
        before - self.all.len()
    }

    /// All faults, the oldest first.
    pub fn all(&self) -> &[Fault] {
        &self.all
    }

    /// Whether a fault makes reads of a unit fail; with `hit_only`, a fault that has already hit a
    /// command.
    pub fn fails_reads(&self, bytes: &Range<u64>, unit: u64, hit_only: bool) -> bool {
        self.all.iter().any(|fault| {
            let is_active = !fault.is_over() && (!hit_only || fault.hits > 0);
            let is_dead = fault.dead_die.as_ref().is_some_and(|die| die.has(unit));
            is_dead || is_active && fault.spec.fails_reads(bytes)
        })
    }
}

impl Fault {
    /// Units that cannot be read because of it, if it is a failed die.
    pub fn dead_units(&self) -> Option<u64> {
        self.dead_die.as_ref().map(DeadDie::count)
    }

    fn is_over(&self) -> bool {
        self.spec.max_hits.is_some_and(|max| self.hits >= max)
    }

    /// Decides whether it hits a command, and counts the command if it matches.
    fn triggers(&mut self, command: &Command) -> bool {
        if !self.spec.matches(command)
            || self.is_over()
            || self.not_before.is_some_and(|time| wall_clock_now() < time)
        {
            return false;
        }
        self.matched += 1;
        let is_nth = self.spec.nth.is_none_or(|nth| self.matched >= nth);
        // Drawn for every matching command, so that the sequence does not depend on `nth`.
        let by_chance = self.spec.probability.is_none_or(|share| self.random.unit() < share);
        self.hits += u64::from(is_nth && by_chance);
        is_nth && by_chance
    }

    /// How many bytes of a torn write are written: at least one sector less than all of them.
    fn torn_bytes(&mut self, command: &Command) -> u64 {
        let sectors = u64::from(command.length) / LBA_BYTES;
        let kept = if sectors > 1 { 1 + self.random.below(sectors - 1) } else { 0 };
        kept * LBA_BYTES
    }

    /// Where a misdirected write goes: to the same offset within another unit.
    fn misdirected_offset(&mut self, command: &Command, parameters: &DriveParameters) -> u64 {
        let in_unit = command.offset % parameters.unit_bytes;
        let room = parameters.capacity - in_unit - u64::from(command.length);
        let places = room / parameters.unit_bytes + 1;
        let own = command.offset / parameters.unit_bytes;
        let unit = self.random.below(places);
        let unit = if unit == own { (unit + 1) % places } else { unit };
        unit * parameters.unit_bytes + in_unit
    }
}

/// The units whose content a failed die took with it: a bit for each unit that was on the die when
/// it failed and was not written or trimmed since.
///
/// Not modelled: the spare area that such a die costs, and a power cut that takes later writes: the
/// old content that it restores can be read.
#[derive(Debug)]
struct DeadDie(Vec<u64>);

impl DeadDie {
    /// All units on a die; units in the drive's buffer are on no die.
    fn new(drive: &dyn Drive, parameters: &DriveParameters, die: u32) -> Self {
        let units = parameters.capacity / parameters.unit_bytes;
        let mut bits = vec![0; units.div_ceil(64) as usize];
        for unit in (0..units).filter(|unit| drive.die_of(*unit) == Some(die)) {
            bits[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        Self(bits)
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Checks a command; it fails if it needs the content of a dead unit. Units that it writes or
    /// trims completely are no longer dead.
    fn check(&mut self, command: &Command, parameters: &DriveParameters) -> Result<(), i32> {
        if command.operation == Operation::Flush {
            return Ok(());
        }
        let (start, end, unit_bytes) = (command.offset, command.end(), parameters.unit_bytes);
        let (first, last) = (start / unit_bytes, end.div_ceil(unit_bytes));
        if matches!(command.operation, Operation::Read | Operation::Cache) {
            return if (first..last).any(|unit| self.has(unit)) { Err(EIO) } else { Ok(()) };
        }
        let is_partial = |unit: u64| start > unit * unit_bytes || end < (unit + 1) * unit_bytes;
        if command.operation != Operation::Trim
            && [first, last - 1].into_iter().any(|unit| is_partial(unit) && self.has(unit))
        {
            return Err(EIO);
        }
        for unit in (first..last).filter(|unit| !is_partial(*unit)) {
            self.0[(unit / 64) as usize] &= !(1 << (unit % 64));
        }
        Ok(())
    }

    fn has(&self, unit: u64) -> bool {
        self.0[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }
}
