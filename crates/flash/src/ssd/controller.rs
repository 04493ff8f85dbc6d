//! `Controller`: executes commands with the translation layer, the flash and the link.

use std::ops::Range;

use ssdlab_device::{Op, Request};
use ssdlab_time::Nanos;

use super::host_link::HostLink;
use super::write_merging::WriteMerging;
use crate::config::{Buffer, Portions, Profile, Trim};
use crate::ftl::{Ftl, Hint, Location, LostUnit, Lpn};
use crate::nand::Array;
use crate::read_ahead::ReadAhead;
use crate::read_plan::ReadPlan;

/// The controller of a drive. Commands are executed as soon as they are submitted, ahead of the
/// clock.
#[derive(Clone, Debug)]
pub struct Controller {
    pub logical_units: u64,
    pub unit_bytes: u64,
    pub unit_shift: u32,
    pub superblock_units: u32,
    pub pages_per_block: u32,
    pub host: HostLink,
    pub buffer: Buffer,
    pub trim: Trim,
    /// When the controller has finished all trims.
    trims_end: Nanos,
    pub array: Array,
    pub ftl: Ftl,
    /// Whether all data that the host writes is zeros.
    pub writes_zeros: bool,
    pub plan: ReadPlan,
    pub read_ahead: ReadAhead,
    pub portions: Portions,
    /// `None` if it does not merge writes.
    merging: Option<WriteMerging>,
}

/// Bytes of the host's address space.
#[derive(Clone, Copy, Debug)]
pub struct ByteRange {
    pub start: u64,
    /// Exclusive.
    pub end: u64,
}

/// The part of one mapping unit that a command covers.
pub struct Part {
    pub lpn: Lpn,
    pub bytes: u64,
    pub begins_unit: bool,
}

impl ByteRange {
    pub fn length(self) -> u64 {
        self.end - self.start
    }

    /// The mapping units that a range which is not empty covers, in whole or in part.
    #[inline]
    pub fn units(self, unit_shift: u32) -> Range<u64> {
        self.start >> unit_shift..((self.end - 1) >> unit_shift) + 1
    }

    /// The mapping units with the number of bytes covered of each.
    pub fn parts(self, unit_shift: u32) -> impl Iterator<Item = Part> {
        let unit = 1 << unit_shift;
        (self.start >> unit_shift..=(self.end - 1) >> unit_shift).map(move |lpn| {
            let first = lpn << unit_shift;
            let covered = self.end.min(first + unit) - self.start.max(first);
            Part { lpn: Lpn(lpn as u32), bytes: covered, begins_unit: self.start <= first }
        })
    }

    /// Whether it is not empty and inside one mapping unit.
    #[inline]
    fn is_in_one_unit(self, unit_shift: u32) -> bool {
        self.start < self.end && self.start >> unit_shift == (self.end - 1) >> unit_shift
    }
}

impl Controller {
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let unit_bytes = profile.geometry.unit_bytes();
        Self {
            logical_units: profile.logical_units(),
            unit_bytes,
            unit_shift: unit_bytes.trailing_zeros(),
            superblock_units: profile.geometry.superblock_units(),
            pages_per_block: profile.geometry.pages_per_block,
            host: HostLink::new(profile),
            buffer: profile.buffer.clone(),
            trim: profile.trim,
            trims_end: Nanos::ZERO,
            array: Array::new(&profile.geometry, &profile.timing),
            ftl: Ftl::new(profile, seed),
            writes_zeros: false,
            plan: ReadPlan::new(profile.geometry.dies() as usize),
            read_ahead: ReadAhead::new(profile.read_ahead / unit_bytes),
            portions: profile.portions,
            merging: profile.buffer.merges_writes.then(WriteMerging::default),
        }
    }

    /// Executes a request; returns when it completes.
    #[inline]
    pub fn execute(&mut self, now: Nanos, request: &Request) -> Nanos {
        self.array.advance(now);
        self.host.advance(now);
        // Field by field: passing the whole request on would copy it through memory.
        let start = request.lba.bytes();
        let range = ByteRange { start, end: start + request.bytes() };
        match request.op {
            Op::Read if range.is_in_one_unit(self.unit_shift) => self.read_unit(now, range),
            Op::Read => self.commands(range, |controller, range| controller.read(now, range)),
            Op::Write => {
                let hint = Hint::of_request(request.hint, self.unit_shift, self.logical_units);
                let received =
                    self.commands(range, |controller, range| controller.write(now, range, hint));
                if request.durable { self.make_durable(received) } else { received }
            }
            Op::Trim => self.trim(now, range),
            Op::Flush => self.make_durable(now + self.host.link.write_overhead),
        }
    }

    /// Rejects a command; returns when it completes with an error.
    pub fn reject(&mut self, now: Nanos) -> Nanos {
        self.array.advance(now);
        now + self.host.link.write_overhead
    }

    /// Splits a request into commands of at most the link's largest transfer; returns when the
    /// last of them is done.
    #[inline]
    fn commands(
        &mut self,
        range: ByteRange,
        mut execute: impl FnMut(&mut Self, ByteRange) -> Nanos,
    ) -> Nanos {
        let (mut next, mut done) = (range.start, Nanos::ZERO);
        while next < range.end {
            let start = next;
            next = range.end.min(start + self.host.link.max_transfer);
            done = done.max(execute(self, ByteRange { start, end: next }));
        }
        done
    }

    /// Executes one write command. The hint is that of its first unit.
    fn write(&mut self, now: Nanos, range: ByteRange, mut hint: Hint) -> Nanos {
        let begin = self.host.begin_command(now, self.host.link.write_command);
        let at = begin + self.host.link.write_overhead;
        let received = self.host.receive(at, range.length());
        self.ftl.store.counters.host_write_bytes += range.length();
        let continues =
            self.merging.as_mut().is_some_and(|merging| merging.continues(range.start..range.end));
        let range = if continues {
            let rest = self.merge_first(range, received);
            if rest.length() == 0 {
                return received;
            }
            if rest.start > range.start {
                hint = hint.of_next();
            }
            rest
        } else {
            range
        };
        let units = range.units(self.unit_shift);
        self.ftl.begin_command((units.end - units.start) as u32);
        let mut done = received;
        for part in range.parts(self.unit_shift) {
            if part.bytes == self.unit_bytes && self.writes_zeros && self.buffer.elides_zeros {
                done = done.max(self.ftl.elide(part.lpn, received, &mut self.array));
                continue;
            }
            let mut ready = received;
            let others_follow = continues && part.begins_unit;
            if part.bytes < self.unit_bytes
                && !others_follow
                && let Location::Flash(_, place) = self.ftl.store.locate(part.lpn, at)
            {
                let sensed = self.array.sense(place, at);
                ready = ready.max(self.array.transfer_out(place.die, sensed, 1).end);
                self.ftl.count_read(0, 1);
            }
            done = done.max(self.ftl.write(part.lpn, hint, ready, &mut self.array));
            hint = hint.of_next();
        }
        done
    }

    /// Merges the first part of a command with its unit, if the part continues the unit and the
    /// unit is still in the buffer at `received`; returns the rest of the command.
    fn merge_first(&mut self, range: ByteRange, received: Nanos) -> ByteRange {
        let lpn = Lpn((range.start >> self.unit_shift) as u32);
        let continues_unit = !range.start.is_multiple_of(self.unit_bytes);
        if !continues_unit || self.ftl.store.locate(lpn, received) != Location::Buffered {
            return range;
        }
        self.ftl.merge(lpn);
        ByteRange { start: range.end.min(range.start.next_multiple_of(self.unit_bytes)), ..range }
    }

    fn trim(&mut self, now: Nanos, range: ByteRange) -> Nanos {
        let whole = range.start.div_ceil(self.unit_bytes)..range.end / self.unit_bytes;
        for lpn in whole {
            self.ftl.trim(Lpn(lpn as u32), now, &mut self.array);
        }
        let begin = self.trims_end.max(now + self.host.link.write_overhead);
        self.trims_end = begin + self.trim.time_of(range.length());
        self.trims_end
    }

    /// Returns when all data that the buffer holds at `at` is durable, and the map with it.
    fn make_durable(&mut self, at: Nanos) -> Nanos {
        if !self.buffer.honours_flush {
            return at;
        }
        let kept = if self.buffer.power_loss_protection {
            at
        } else {
            self.ftl.drain(at, &mut self.array)
        };
        kept + self.buffer.flush_overhead
    }

    /// Continues a stream in another superblock; see `Ssd::renew_stream`.
    pub fn renew_stream(&mut self, now: Nanos, stream: u32) -> bool {
        self.array.advance(now);
        self.ftl.renew_stream(stream, now, &mut self.array)
    }

    /// Cuts the power at `at` and restores it; returns the lost units.
    pub fn power_cut(&mut self, at: Nanos) -> Vec<LostUnit> {
        let protected = self.buffer.power_loss_protection;
        self.array.power_cut();
        let lost = self.ftl.power_cut(protected, at, &mut self.array);
        if protected {
            // What the capacitors wrote out was done long before the power came back.
            self.array.power_cut();
        }
        self.host.power_cut();
        self.read_ahead.clear();
        if let Some(merging) = &mut self.merging {
            merging.clear();
        }
        lost
    }
}
