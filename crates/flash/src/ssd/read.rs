//! Reading: a command's portions, the pages that it senses, and the read-ahead.

use ssdlab_time::Nanos;

use super::controller::{ByteRange, Controller};
use crate::config::Portions;
use crate::ftl::{Location, Lpn};
use crate::read_ahead::{AddressOrder, Fetched};
use crate::read_plan::Sense;

impl Controller {
    /// Executes a read command, in portions if it is longer than one.
    ///
    /// Modelled: the controller works on a long read in portions. A portion whose units continue
    /// the previous portion in flash, in order, begins together with that; any other (a single
    /// scattered unit is enough) must be assembled unit by unit. At most `ftl.read_portions` of
    /// these are worked on at once: with 1, such a portion begins when the previous portion has
    /// reached the host, with 2, when the one before that has, and so on. Its senses are then no
    /// longer hidden by transfers: that is why a few scattered units cost so much time.
    ///
    /// Not modelled: the processors that do it; a portion of which a part begins early.
    ///
    /// Differs from hardware: a waiting portion occupies its dies from now on, so that among
    /// several long commands in flight, the later one waits for the earlier one's last portion.
    pub(super) fn read(&mut self, now: Nanos, range: ByteRange) -> Nanos {
        let at = self.begin_read(now);
        if self.portions.bytes == 0 || range.length() <= self.portions.bytes {
            return self.read_portion(at, range);
        }
        self.read_portions(now, at, range)
    }

    /// Begins a read command; returns when its units are looked up.
    #[inline]
    fn begin_read(&mut self, now: Nanos) -> Nanos {
        let begin = self.host.begin_command(now, self.host.link.read_command);
        begin + self.host.link.read_overhead
    }

    fn read_portions(&mut self, now: Nanos, mut at: Nanos, range: ByteRange) -> Nanos {
        let Portions { bytes, limit } = self.portions;
        let mut order = AddressOrder::new(self.superblock_units);
        // When each portion and all before it have reached the host.
        let mut done: Vec<Nanos> = Vec::new();
        let (mut next, mut last) = (range.start, Nanos::ZERO);
        while next < range.end {
            let portion = ByteRange { start: next, end: range.end.min(next + bytes) };
            next = portion.end;
            order = self.portion_order(now, portion, order.restart());
            if !order.in_order
                && let Some(before) = done.len().checked_sub(limit as usize)
            {
                at = at.max(done[before]);
            }
            last = last.max(self.read_portion(at, portion));
            done.push(last);
        }
        last
    }

    /// The order of a portion's units after those before it.
    fn portion_order(&self, now: Nanos, range: ByteRange, mut order: AddressOrder) -> AddressOrder {
        let at = now + self.host.link.read_overhead;
        for part in range.parts(self.unit_shift) {
            order.add(self.ftl.store.locate(part.lpn, at).ppn());
        }
        order
    }

    fn read_portion(&mut self, at: Nanos, range: ByteRange) -> Nanos {
        let mut order = AddressOrder::new(self.superblock_units);
        let mut in_memory = Vec::new();
        let (mut units, mut mapped) = (0, at);
        self.plan.clear();
        for part in range.parts(self.unit_shift) {
            units += 1;
            mapped = mapped.max(self.ftl.lookup(part.lpn, false, at, &mut self.array));
            let location = self.ftl.store.locate(part.lpn, at);
            let Location::Flash(ppn, place) = location else {
                order.add(None);
                add_in_memory(&mut in_memory, at, part.bytes);
                continue;
            };
            order.add(Some(ppn));
            match self.read_ahead.take(u64::from(part.lpn.0), place) {
                Some(ready) => add_in_memory(&mut in_memory, ready.max(at), part.bytes),
                None => self.plan.add(place, part.bytes),
            }
        }
        self.ftl.count_read(units, self.plan.senses.len() as u64);
        self.plan.sense_all(&mut self.array, mapped);
        let mut done = mapped;
        for (ready, bytes) in in_memory {
            done = done.max(self.host.send(ready, bytes));
        }
        for index in 0..self.plan.senses.len() {
            let Sense { place, units, bytes, ready, moved, .. } = self.plan.senses[index];
            let moved = moved.unwrap_or_else(|| self.array.transfer_out(place.die, ready, units));
            done = done.max(self.host.stream(moved, units, bytes));
        }
        self.fetch_ahead(at, range, order);
        done
    }

    /// Reads one unit or a part of it: no pages are shared, and no transfers need to be sorted.
    #[inline]
    pub(super) fn read_unit(&mut self, now: Nanos, range: ByteRange) -> Nanos {
        let at = self.begin_read(now);
        let lpn = Lpn((range.start >> self.unit_shift) as u32);
        let (mut ready, mut senses) = (at, 0);
        let mapped = self.ftl.lookup(lpn, false, at, &mut self.array);
        let location = self.ftl.store.locate(lpn, at);
        if let Location::Flash(_, place) = location {
            if let Some(fetched) = self.read_ahead.take(u64::from(lpn.0), place) {
                ready = ready.max(fetched);
            } else {
                senses = 1;
                let register = self.array.sense(place, mapped);
                ready = self.array.transfer_out(place.die, register, 1).end;
            }
        }
        self.ftl.count_read(1, senses);
        let done = mapped.max(self.host.send(ready, range.length()));
        if self.read_ahead.is_on() {
            let mut order = AddressOrder::new(self.superblock_units);
            order.add(location.ppn());
            self.fetch_ahead(at, range, order);
        }
        done
    }

    /// Fetches the units that follow a sequential command whose units were in order.
    fn fetch_ahead(&mut self, at: Nanos, range: ByteRange, order: AddressOrder) {
        let (wanted, mut order) = self.read_ahead.plan(range.units(self.unit_shift), order);
        if wanted.is_empty() {
            return;
        }
        let mut page: Option<Fetched> = None;
        for lpn in wanted.start..wanted.end.min(self.logical_units) {
            let location = self.ftl.store.locate(Lpn(lpn as u32), at);
            let Location::Flash(ppn, place) = location else { break };
            if !order.continues_at(ppn) {
                break;
            }
            order.add(Some(ppn));
            match &mut page {
                Some(run) if run.place.same_page(place) => run.units += 1,
                _ => {
                    let next = Fetched { first: lpn, units: 1, place, ready: at };
                    if let Some(full) = page.replace(next) {
                        self.fetch_page(at, full);
                    }
                }
            }
        }
        if let Some(last) = page {
            self.fetch_page(at, last);
            self.read_ahead.order = Some(order);
        }
    }

    fn fetch_page(&mut self, at: Nanos, mut page: Fetched) {
        let sensed = self.array.sense(page.place, at);
        page.ready = self.array.transfer_out(page.place.die, sensed, page.units as u32).end;
        self.read_ahead.fetched.push_back(page);
        self.ftl.count_read(0, 1);
    }
}

/// Adds bytes that are in memory at `ready` to a list of them by time.
fn add_in_memory(in_memory: &mut Vec<(Nanos, u64)>, ready: Nanos, bytes: u64) {
    match in_memory.last_mut() {
        Some((last, sum)) if *last == ready => *sum += bytes,
        _ => in_memory.push((ready, bytes)),
    }
}
