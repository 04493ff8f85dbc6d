//! `ReadAhead`: pages that the controller fetches for a sequential reader ahead of its requests.

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_time::Nanos;

use crate::nand::{Place, Ppn};

/// The controller's read-ahead: one stream.
///
/// Modelled: after a command that continues where the last one ended, and whose units are in order
/// in flash, the controller fetches the units that follow, up to a window. A single scattered unit
/// ends that: neither it nor the units after it are fetched, until a whole command is in order
/// again.
///
/// Not modelled: several streams at once; strides; keeping data for a second reader.
///
/// Differs from hardware: vendors do not publish their rules; this is the simplest rule with which
/// a few scattered units cost as much as measured (`toshiba-xg5`: 1.2 % of them).
#[derive(Clone, Debug, Default)]
pub struct ReadAhead {
    window_units: u64,
    /// The unit with which the next command must start to continue the stream.
    next: Option<u64>,
    pub fetched: VecDeque<Fetched>,
    /// The order of the fetched units, up to the last.
    pub order: Option<AddressOrder>,
}

/// Consecutive units of one page that are in the controller's memory at `ready`.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    pub first: u64,
    pub units: u64,
    pub place: Place,
    pub ready: Nanos,
}

/// Whether the units of a read command are in order in flash.
#[derive(Clone, Copy, Debug)]
pub struct AddressOrder {
    last: Option<Ppn>,
    /// Whether all added units are in order.
    pub in_order: bool,
    superblock_units: u32,
}

impl AddressOrder {
    /// Before the first unit, on a drive with superblocks of `superblock_units`.
    pub fn new(superblock_units: u32) -> Self {
        Self { last: None, in_order: true, superblock_units }
    }

    /// Starts again after the last unit that was added.
    pub fn restart(&self) -> Self {
        Self { in_order: true, ..*self }
    }

    /// Whether `next` follows `last` in order of writing: it is the next address, or the start of
    /// any superblock after the end of one.
    fn follows(&self, last: Ppn, next: Ppn) -> bool {
        let after = last.0 + 1;
        after == next.0
            || (after.is_multiple_of(self.superblock_units)
                && next.0.is_multiple_of(self.superblock_units))
    }

    /// Adds the next unit's address; `None` if it is not in flash.
    pub fn add(&mut self, ppn: Option<Ppn>) {
        let follows = match (self.last, ppn) {
            (None, Some(_)) => true,
            (Some(last), Some(ppn)) => self.follows(last, ppn),
            (_, None) => false,
        };
        self.in_order &= follows;
        self.last = ppn;
    }

    /// Whether the unit at this address would continue in order.
    pub fn continues_at(&self, ppn: Ppn) -> bool {
        self.in_order && self.last.is_some_and(|last| self.follows(last, ppn))
    }
}

impl ReadAhead {
    /// A read-ahead of up to `window_units`; 0 turns it off.
    pub fn new(window_units: u64) -> Self {
        Self { window_units, ..Self::default() }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.window_units > 0
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.window_units);
    }

    /// When a unit is in the controller's memory; `None` if it was not fetched ahead.
    #[inline]
    pub fn take(&mut self, lpn: u64, place: Place) -> Option<Nanos> {
        while self.fetched.front().is_some_and(|page| page.first + page.units <= lpn) {
            self.fetched.pop_front();
        }
        let page = self.fetched.front()?;
        (page.first <= lpn && page.place.same_page(place)).then_some(page.ready)
    }

    /// Ends a command over these units; returns the units to fetch ahead, and the order of those
    /// before them.
    #[inline]
    pub fn plan(&mut self, units: Range<u64>, order: AddressOrder) -> (Range<u64>, AddressOrder) {
        let Range { start, end } = units;
        if !self.is_on() {
            return (end..end, order);
        }
        let is_sequential = self.next == Some(start) && order.in_order;
        self.next = Some(end);
        let fetched_until = self.fetched.back().map_or(0, |page| page.first + page.units);
        if !is_sequential || fetched_until <= end {
            self.fetched.clear();
            self.order = None;
        }
        if !is_sequential {
            return (end..end, order);
        }
        (fetched_until.max(end)..end + self.window_units, self.order.unwrap_or(order))
    }
}
