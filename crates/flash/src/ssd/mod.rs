//! `Ssd`: the twin behind the `Device` contract; where commands, policy and media meet.

mod cut;
mod queue;
mod read;
mod shown;

use ssdlab_device::{Op, Request};
use ssdlab_time::{Calendar, Nanos, Span};

pub use cut::PowerCut;

use crate::ahead::ReadAhead;
use crate::config::{Buffer, Interface, Link, Portions, Profile, Trim};
use crate::flight::Flight;
use crate::ftl::{Ftl, Hint, Location, Lpn};
use crate::nand::Array;
use crate::plan::ReadPlan;

/// A drive in virtual time.
///
/// Modelled: requests longer than the link's largest transfer are split; a command's overhead is
/// latency of which a part may occupy the controller's one processor; units of one command that
/// share a page cost one sense; dies work in parallel, channels and link move what is ready; a unit
/// of which a part is written is read first.
///
/// Not modelled: the host's own time between requests; content that compresses but is not zeros.
///
/// Differs from hardware: trims wait for each other and for nothing else; a durable write waits for
/// all that is buffered, as a flush does, and not for its own pages alone.
#[derive(Clone, Debug)]
pub struct Ssd {
    capacity: u64,
    unit_bytes: u64,
    unit_shift: u32,
    superblock_units: u32,
    pages_per_block: u32,
    link: Link,
    unit_link_time: Nanos,
    buffer: Buffer,
    trim: Trim,
    queue_depth: usize,
    now: Nanos,
    to_host: Calendar,
    from_host: Calendar,
    /// The controller's processor, where it bounds commands a second.
    processor: Calendar,
    /// Until when the controller is busy with trims.
    trimming: Nanos,
    array: Array,
    ftl: Ftl,
    endurance: Option<u32>,
    flight: Flight,
    /// When the last request in flight was done.
    idle_since: Nanos,
    /// Whether what the host writes is nothing but zeros.
    writes_zeros: bool,
    plan: ReadPlan,
    ahead: ReadAhead,
    portions: Portions,
}

/// The units of one mapping unit that a command covers.
struct Part {
    lpn: Lpn,
    bytes: u64,
}

impl Ssd {
    /// A new drive of this profile: nothing written, nothing worn. The seed decides what chance
    /// does.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let dies = profile.geometry.dies() as usize;
        Self {
            capacity: profile.capacity,
            unit_bytes: profile.geometry.unit_bytes(),
            unit_shift: profile.geometry.unit_bytes().trailing_zeros(),
            superblock_units: profile.geometry.superblock_units(),
            pages_per_block: profile.geometry.pages_per_block,
            link: profile.link.clone(),
            unit_link_time: Nanos::transfer(profile.geometry.unit_bytes(), profile.link.bandwidth),
            buffer: profile.buffer.clone(),
            trim: profile.trim,
            // NCQ has 32 tags; an NVMe queue takes what any job here asks for.
            queue_depth: if profile.link.interface == Interface::Sata { 32 } else { 1024 },
            now: Nanos::ZERO,
            to_host: Calendar::default(),
            from_host: Calendar::default(),
            processor: Calendar::default(),
            trimming: Nanos::ZERO,
            array: Array::new(&profile.geometry, &profile.timing),
            ftl: Ftl::new(profile, seed),
            endurance: profile.endurance,
            flight: Flight::default(),
            idle_since: Nanos::ZERO,
            writes_zeros: false,
            plan: ReadPlan::new(dies),
            ahead: ReadAhead::new(profile.read_ahead / profile.geometry.unit_bytes()),
            portions: profile.portions,
        }
    }

    /// Splits a request into commands of at most the link's largest transfer; returns when the
    /// last of them is done.
    #[inline]
    fn commands(
        &mut self,
        (start, end): (u64, u64),
        mut one: impl FnMut(&mut Self, u64, u64) -> Nanos,
    ) -> Nanos {
        let (mut next, mut done) = (start, Nanos::ZERO);
        while next < end {
            let first = next;
            next = end.min(first + self.link.max_transfer);
            done = done.max(one(self, first, next));
        }
        done
    }

    /// Splits a byte range into mapping units, the first and last perhaps covered in part.
    fn parts(unit_shift: u32, start: u64, end: u64) -> impl Iterator<Item = Part> {
        let unit = 1 << unit_shift;
        (start >> unit_shift..=(end - 1) >> unit_shift).map(move |lpn| {
            let first = lpn << unit_shift;
            let covered = end.min(first + unit) - start.max(first);
            Part { lpn: Lpn(lpn as u32), bytes: covered }
        })
    }

    /// Does one command; the hint is that of its first unit.
    fn write(&mut self, start: u64, end: u64, mut hint: Hint) -> Nanos {
        let at = self.turn(self.link.write_command) + self.link.write_overhead;
        let received = self.receive(at, end - start);
        self.ftl.count_written(end - start);
        let units = ((end - 1) >> self.unit_shift) - (start >> self.unit_shift) + 1;
        self.ftl.begin_command(units as u32);
        let mut done = received;
        for part in Self::parts(self.unit_shift, start, end) {
            if part.bytes == self.unit_bytes && self.writes_zeros && self.buffer.elides_zeros {
                done = done.max(self.ftl.elide(part.lpn, received, &mut self.array));
                continue;
            }
            let mut ready = received;
            if part.bytes < self.unit_bytes
                && let Location::Flash(_, place) = self.ftl.locate(part.lpn, at)
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

    fn trim(&mut self, start: u64, end: u64) -> Nanos {
        let whole = start.div_ceil(self.unit_bytes)..end / self.unit_bytes;
        for lpn in whole {
            self.ftl.trim(Lpn(lpn as u32), self.now, &mut self.array);
        }
        let begin = self.trimming.max(self.now + self.link.write_overhead);
        self.trimming = begin + self.trim.time_of(end - start);
        self.trimming
    }

    fn flush(&mut self) -> Nanos {
        self.settle(self.now + self.link.write_overhead)
    }

    /// When what the buffer has at `at` is durable, and the map that leads to it.
    fn settle(&mut self, at: Nanos) -> Nanos {
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

    /// When the controller's processor begins with a command that takes it so long.
    #[inline]
    fn turn(&mut self, busy: Nanos) -> Nanos {
        if busy == Nanos::ZERO {
            return self.now;
        }
        self.processor.book(self.now, busy).start
    }

    /// How long the link takes for so many bytes.
    fn link_time(&self, bytes: u64) -> Nanos {
        // Divisions are slow, and most of what small commands move is one unit.
        if bytes == self.unit_bytes {
            return self.unit_link_time;
        }
        Nanos::transfer(bytes, self.link.bandwidth)
    }

    #[inline]
    fn send(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        let duration = self.link_time(bytes);
        self.to_host.book(ready, duration).end
    }

    /// Sends units to the host while the channel still brings them: from the first unit on, but
    /// not so early that the link would run dry before the last.
    fn stream(&mut self, moved: Span, units: u32, bytes: u64) -> Nanos {
        let units = u64::from(units);
        let first = moved.start + Nanos::new((moved.end - moved.start).get() / units);
        let whole = self.link_time(bytes);
        let last = self.link_time(bytes.div_ceil(units));
        let no_gap = (moved.end + last).saturating_sub(whole);
        self.send(first.max(no_gap), bytes)
    }

    fn receive(&mut self, ready: Nanos, bytes: u64) -> Nanos {
        let duration = self.link_time(bytes);
        match self.link.interface {
            Interface::Nvme => self.from_host.book(ready, duration).end,
            Interface::Sata => self.to_host.book(ready, duration).end,
        }
    }

    #[inline]
    fn start(&mut self, request: &Request) -> Nanos {
        // In parts: a request that is passed on whole has to be put together in memory first.
        let (start, end) = (request.lba.bytes(), request.lba.bytes() + request.bytes());
        match request.op {
            Op::Read if self.is_in_one_unit(start, end) => self.read_unit(start, end),
            Op::Read => self.commands((start, end), Self::read_command),
            Op::Write => {
                let units = self.capacity >> self.unit_shift;
                let hint = Hint::of_request(request.hint, self.unit_shift, units);
                let received =
                    self.commands((start, end), |ssd, start, end| ssd.write(start, end, hint));
                if request.durable { self.settle(received) } else { received }
            }
            Op::Trim => self.trim(start, end),
            Op::Flush => self.flush(),
        }
    }

    /// Whether all of these bytes, and there are some, are of one mapping unit.
    #[inline]
    fn is_in_one_unit(&self, start: u64, end: u64) -> bool {
        start < end && start >> self.unit_shift == (end - 1) >> self.unit_shift
    }
}
