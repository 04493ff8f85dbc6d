//! Reading: a command's portions, the pages that it senses, and what is fetched ahead.

use ssdlab_time::Nanos;

use super::Ssd;
use crate::ahead::Course;
use crate::config::Portions;
use crate::ftl::{Location, Lpn};
use crate::nand::Place;
use crate::plan::Sense;

impl Ssd {
    /// Reads a command, by portions where it is longer than one.
    ///
    /// Modelled: the controller works on a long read by portions of its own. One whose units go on
    /// in flash, in order, from the portion before it is begun together with that; one that does
    /// not (a single stray unit will do) has to be put together unit by unit. There is room for so
    /// many of these (`ftl.read_portions`): with room for one it is begun when the portion before
    /// it is with the host, with room for two when the one before that is, and so on. Its senses
    /// are then no longer hidden by transfers: that is why few stray units cost so much.
    ///
    /// Not modelled: the processors that do it; a portion that is begun early in part.
    ///
    /// Differs from hardware: a portion that waits has its dies from now on, so that of several
    /// long commands in flight the later one waits for the earlier one's last portion.
    pub(super) fn read_command(&mut self, start: u64, end: u64) -> Nanos {
        let at = self.turn(self.link.read_command) + self.link.read_overhead;
        let Portions { bytes, room } = self.portions;
        if bytes == 0 || end - start <= bytes {
            return self.read(at, start, end);
        }
        self.read_portions(at, (start, end), (bytes, room as usize))
    }

    /// Reads by portions of so many bytes, with room for so many that do not lie in order.
    fn read_portions(
        &mut self,
        mut at: Nanos,
        (start, end): (u64, u64),
        (bytes, room): (u64, usize),
    ) -> Nanos {
        let mut course = Course::begin(self.superblock_units);
        // When each portion and all before it are with the host.
        let mut done: Vec<Nanos> = Vec::new();
        let (mut next, mut last) = (start, Nanos::ZERO);
        while next < end {
            let first = next;
            next = end.min(first + bytes);
            course = self.course_through(first, next, course.anew());
            if !course.is_in_order()
                && let Some(before) = done.len().checked_sub(room)
            {
                at = at.max(done[before]);
            }
            last = last.max(self.read(at, first, next));
            done.push(last);
        }
        last
    }

    /// How the units of a portion lie after those before it.
    fn course_through(&self, start: u64, end: u64, mut course: Course) -> Course {
        let at = self.now + self.link.read_overhead;
        for part in Self::parts(self.unit_shift, start, end) {
            course.add(self.ftl.locate(part.lpn, at).ppn());
        }
        course
    }

    fn read(&mut self, at: Nanos, start: u64, end: u64) -> Nanos {
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
            let Sense { place, units, bytes, ready, moved, .. } = self.plan[index];
            let moved = moved.unwrap_or_else(|| self.array.transfer_out(place.die, ready, units));
            done = done.max(self.stream(moved, units, bytes));
        }
        self.read_ahead(at, (start, end), course);
        done
    }

    /// Reads one unit or a part of it, where no page is shared and nothing has to be put in order.
    #[inline]
    pub(super) fn read_unit(&mut self, start: u64, end: u64) -> Nanos {
        let at = self.turn(self.link.read_command) + self.link.read_overhead;
        let lpn = Lpn((start >> self.unit_shift) as u32);
        let (mut ready, mut senses) = (at, 0);
        let mapped = self.ftl.look_up(lpn, false, at, &mut self.array);
        let location = self.ftl.locate(lpn, at);
        if let Location::Flash(_, place) = location {
            if let Some(fetched) = self.ahead.take(u64::from(lpn.0), place) {
                ready = ready.max(fetched);
            } else {
                senses = 1;
                let register = self.array.sense(place, mapped);
                ready = self.array.transfer_out(place.die, register, 1).end;
            }
        }
        self.ftl.count_read(1, senses);
        let done = mapped.max(self.send(ready, end - start));
        if self.ahead.is_on() {
            let mut course = Course::begin(self.superblock_units);
            course.add(location.ppn());
            self.read_ahead(at, (start, end), course);
        }
        done
    }

    /// Fetches what follows a command that was in order.
    fn read_ahead(&mut self, at: Nanos, (start, end): (u64, u64), course: Course) {
        let (first, last) = (start >> self.unit_shift, (end - 1) >> self.unit_shift);
        let (wanted, mut course) = self.ahead.plan(first, last + 1, course);
        if wanted.is_empty() {
            return;
        }
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
                    self.fetch_ahead(at, page.replace((lpn, 1, place)));
                }
            }
        }
        if page.is_some() {
            self.fetch_ahead(at, page);
            self.ahead.reached(course);
        }
    }

    fn fetch_ahead(&mut self, at: Nanos, page: Option<(u64, u64, Place)>) {
        let Some((first, units, place)) = page else { return };
        let sensed = self.array.sense(place, at);
        let ready = self.array.transfer_out(place.die, sensed, units as u32).end;
        self.ahead.note(first, units, place, ready);
        self.ftl.count_read(0, 1);
    }
}

/// Adds bytes that stand in memory at `ready` to a list of them by time.
fn gather(in_memory: &mut Vec<(Nanos, u64)>, ready: Nanos, bytes: u64) {
    match in_memory.last_mut() {
        Some((last, sum)) if *last == ready => *sum += bytes,
        _ => in_memory.push((ready, bytes)),
    }
}
