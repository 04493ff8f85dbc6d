//! `Ssd`: the twin behind the `Device` contract; where commands, policy and media meet.

mod cut;
mod queue;

use ssdlab_device::{Op, Request};
use ssdlab_time::{Calendar, Nanos, Span};

pub use cut::PowerCut;

use crate::ahead::{Course, ReadAhead};
use crate::config::{Buffer, Interface, Link, Profile, ReadsBack, Trim};
use crate::counters::{Counters, Wear};
use crate::flight::Flight;
use crate::ftl::{Ftl, Location, Lpn, Service};
use crate::inside::{Superblock, Whereabouts};
use crate::nand::{Array, Place};
use crate::plan::{ReadPlan, Sense};

/// A drive in virtual time.
///
/// Modelled: requests longer than the link's largest transfer are split; a command's overhead is
/// latency that occupies nothing; units of one command that share a page cost one sense; dies work
/// in parallel, channels and link move what is ready; a unit of which a part is written is read
/// first.
///
/// Not modelled: the host's own time between requests; limits on commands a second.
///
/// Differs from hardware: trims wait for each other and for nothing else; a durable write waits for
/// all that is buffered, as a flush does, and not for its own pages alone.
#[derive(Debug)]
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
    /// Until when the controller is busy with trims.
    trimming: Nanos,
    array: Array,
    ftl: Ftl,
    endurance: Option<u32>,
    flight: Flight,
    /// When the last request in flight was done.
    idle_since: Nanos,
    plan: ReadPlan,
    ahead: ReadAhead,
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
            trimming: Nanos::ZERO,
            array: Array::new(&profile.geometry, &profile.timing),
            ftl: Ftl::new(profile, seed),
            endurance: profile.endurance,
            flight: Flight::default(),
            idle_since: Nanos::ZERO,
            plan: ReadPlan::new(dies),
            ahead: ReadAhead::new(profile.read_ahead / profile.geometry.unit_bytes()),
        }
    }

    /// What the drive has counted so far.
    pub fn counters(&self) -> &Counters {
        self.ftl.counters()
    }

    /// How worn it is.
    pub fn wear(&self) -> Wear {
        Wear::new(self.ftl.erases(), self.endurance)
    }

    /// What it has left to replace bad blocks, and whether it still takes writes.
    pub fn service(&self) -> Service {
        self.ftl.service()
    }

    /// What a host is to read where it trimmed.
    pub fn trim_reads_back(&self) -> ReadsBack {
        self.trim.reads_back
    }

    /// Where a mapping unit's current content is now.
    ///
    /// # Panics
    /// Beyond the last one.
    pub fn whereabouts(&self, unit: u64) -> Whereabouts {
        assert!(unit < self.capacity >> self.unit_shift, "the drive has no unit {unit}");
        match self.ftl.locate(Lpn(unit as u32), self.now) {
            Location::Unmapped => Whereabouts::Nowhere,
            Location::Buffered => Whereabouts::Buffer,
            Location::Flash(_, Place { die, page, page_in_block, .. }) => {
                let block = (page - page_in_block) / self.pages_per_block;
                Whereabouts::Flash { die, block, page: page_in_block }
            }
        }
    }

    /// All superblocks, by number.
    pub fn superblocks(&self) -> &[Superblock] {
        self.ftl.superblocks()
    }

    /// Checks the maps and counts against each other; panics where they disagree. For tests: it
    /// looks at every mapping unit.
    pub fn assert_consistent(&self) {
        self.ftl.assert_consistent();
    }

    /// Splits a request into commands of at most the link's largest transfer.
    fn commands(&self, request: &Request) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (mut start, end) = (request.lba.bytes(), request.lba.bytes() + request.bytes());
        let step = self.link.max_transfer;
        std::iter::from_fn(move || {
            let command = (start, end.min(start + step));
            start = command.1;
            (command.0 < end).then_some(command)
        })
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

    fn read(&mut self, start: u64, end: u64) -> Nanos {
        if start >> self.unit_shift == (end - 1) >> self.unit_shift {
            return self.read_unit(start, end);
        }
        let at = self.now + self.link.read_overhead;
        let mut course = Course::begin(self.superblock_units);
        let mut in_memory = Vec::new();
        let (mut units, mut mapped) = (0, at);
        self.plan.clear();
        for part in Self::parts(self.unit_shift, start, end) {
            units += 1;
            mapped = mapped.max(self.ftl.look_up(part.lpn, false, at, &mut self.array));
            let location = self.ftl.locate(part.lpn, at);
            let Location::Flash(ppn, place) = location else {
                course.add(None);
                gather(&mut in_memory, at, part.bytes);
                continue;
            };
            course.add(Some(ppn));
            match self.ahead.take(u64::from(part.lpn.0), place) {
                Some(ready) => gather(&mut in_memory, ready.max(at), part.bytes),
                None => self.plan.add(place, part.bytes),
            }
        }
        self.ftl.count_read(units, self.plan.len() as u64);
        self.plan.sense_all(&mut self.array, mapped);
        let mut done = mapped;
        for (ready, bytes) in in_memory {
            done = done.max(self.send(ready, bytes));
        }
        for index in 0..self.plan.len() {
            let Sense { place, units, bytes, ready, .. } = self.plan[index];
            let moved = self.array.transfer_out(place.die, ready, units);
            done = done.max(self.stream(moved, units, bytes));
        }
        self.read_ahead(start, end, course);
        done
    }

    /// Reads one unit or a part of it, where no page is shared and nothing has to be put in order.
    #[inline]
    fn read_unit(&mut self, start: u64, end: u64) -> Nanos {
        let at = self.now + self.link.read_overhead;
        let lpn = Lpn((start >> self.unit_shift) as u32);
        let mut course = Course::begin(self.superblock_units);
        let (mut ready, mut senses) = (at, 0);
        let mapped = self.ftl.look_up(lpn, false, at, &mut self.array);
        if let Location::Flash(ppn, place) = self.ftl.locate(lpn, at) {
            course.add(Some(ppn));
            if let Some(fetched) = self.ahead.take(u64::from(lpn.0), place) {
                ready = ready.max(fetched);
            } else {
                senses = 1;
                let register = self.array.sense(place, mapped);
                ready = self.array.transfer_out(place.die, register, 1).end;
            }
        } else {
            course.add(None);
        }
        self.ftl.count_read(1, senses);
        let done = mapped.max(self.send(ready, end - start));
        self.read_ahead(start, end, course);
        done
    }

    /// Fetches what follows a command that was in order.
    fn read_ahead(&mut self, start: u64, end: u64, course: Course) {
        let (first, last) = (start >> self.unit_shift, (end - 1) >> self.unit_shift);
        let (wanted, mut course) = self.ahead.plan(first, last + 1, course);
        if wanted.is_empty() {
            return;
        }
        let at = self.now + self.link.read_overhead;
        let mut page: Option<(u64, u64, Place)> = None;
        for lpn in wanted.start..wanted.end.min(self.capacity >> self.unit_shift) {
            let location = self.ftl.locate(Lpn(lpn as u32), at);
            let Location::Flash(ppn, place) = location else { break };
            if !course.goes_on_at(ppn) {
                break;
            }
            course.add(Some(ppn));
            match &mut page {
                Some((_, units, open)) if open.same_page(place) => *units += 1,
                _ => {
                    self.fetch_ahead(page.replace((lpn, 1, place)));
                }
            }
        }
        if page.is_some() {
            self.fetch_ahead(page);
            self.ahead.reached(course);
        }
    }

    fn fetch_ahead(&mut self, page: Option<(u64, u64, Place)>) {
        let Some((first, units, place)) = page else { return };
        let at = self.now + self.link.read_overhead;
        let sensed = self.array.sense(place, at);
        let ready = self.array.transfer_out(place.die, sensed, units as u32).end;
        self.ahead.note(first, units, place, ready);
        self.ftl.count_read(0, 1);
    }

    fn write(&mut self, start: u64, end: u64) -> Nanos {
        let at = self.now + self.link.write_overhead;
        let received = self.receive(at, end - start);
        self.ftl.count_written(end - start);
        let mut done = received;
        for part in Self::parts(self.unit_shift, start, end) {
            let mut ready = received;
            if part.bytes < self.unit_bytes
                && let Location::Flash(_, place) = self.ftl.locate(part.lpn, at)
            {
                let sensed = self.array.sense(place, at);
                ready = ready.max(self.array.transfer_out(place.die, sensed, 1).end);
                self.ftl.count_read(0, 1);
            }
            done = done.max(self.ftl.write(part.lpn, ready, &mut self.array));
        }
        done
    }

    fn trim(&mut self, request: &Request) -> Nanos {
        let (start, end) = (request.lba.bytes(), request.lba.bytes() + request.bytes());
        let whole = start.div_ceil(self.unit_bytes)..end / self.unit_bytes;
        for lpn in whole {
            self.ftl.trim(Lpn(lpn as u32), self.now, &mut self.array);
        }
        let begin = self.trimming.max(self.now + self.link.write_overhead);
        self.trimming = begin + self.trim.time_of(request.bytes());
        self.trimming
    }

    fn flush(&mut self) -> Nanos {
        self.settle(self.now + self.link.write_overhead)
    }

    /// When what the buffer has at `at` is durable.
    fn settle(&mut self, at: Nanos) -> Nanos {
        if self.buffer.power_loss_protection || !self.buffer.honours_flush {
            return at;
        }
        self.ftl.drain(at, &mut self.array)
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
        match request.op {
            Op::Read => {
                self.commands(request).map(|(start, end)| self.read(start, end)).max().unwrap()
            }
            Op::Write => {
                let received = self
                    .commands(request)
                    .map(|(start, end)| self.write(start, end))
                    .max()
                    .unwrap();
                if request.durable { self.settle(received) } else { received }
            }
            Op::Trim => self.trim(request),
            Op::Flush => self.flush(),
        }
    }
}

/// Adds bytes that stand in memory at `ready` to a list of them by time.
fn gather(in_memory: &mut Vec<(Nanos, u64)>, ready: Nanos, bytes: u64) {
    match in_memory.last_mut() {
        Some((last, sum)) if *last == ready => *sum += bytes,
        _ => in_memory.push((ready, bytes)),
    }
}
