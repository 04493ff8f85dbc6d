//! `Faults`: what refuses, delays and corrupts commands. The same seed and the same
//! commands give the same faults.

mod dead_die;
mod spec;

use std::ops::Range;
use std::time::Instant;

use ssdlab_device::LBA_BYTES;
use ssdlab_time::Random;

use crate::command::{Command, WriteCorruption};
use crate::drive::{Drive, DriveParameters};
use crate::errno::{EIO, EPERM};
use crate::layer::{Decision, Layer};
use crate::pacing::wall_clock_now;
use dead_die::DeadDie;
pub use spec::{FaultSpec, Kind};

#[derive(Debug)]
struct Fault {
    number: u64,
    spec: FaultSpec,
    not_before: Option<Instant>,
    random: Random,
    /// Commands that matched the spec, and those of them that the fault hit.
    matched: u64,
    hits: u64,
    dead_die: Option<DeadDie>,
}

/// A fault and what it has done so far.
#[derive(Debug)]
pub struct FaultStatus {
    /// Its number, for `Faults::clear`.
    pub number: u64,
    /// Its specification.
    pub spec: FaultSpec,
    /// Commands that it hit.
    pub hits: u64,
    /// Units that cannot be read because of it, if it is a failed die.
    pub dead_units: Option<u64>,
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
    pub fn statuses(&self) -> Vec<FaultStatus> {
        let status = |fault: &Fault| FaultStatus {
            number: fault.number,
            spec: fault.spec.clone(),
            hits: fault.hits,
            dead_units: fault.dead_die.as_ref().map(DeadDie::count),
        };
        self.all.iter().map(status).collect()
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
