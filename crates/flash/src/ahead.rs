//! `ReadAhead`: pages that the controller fetched before the host asked, because it read in order.

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_time::Nanos;

use crate::nand::{Place, Ppn};

/// The controller's read-ahead: one stream.
///
/// Modelled: after a command that goes on where the last one ended, and whose units follow each
/// other in flash as they do in address, the controller fetches what follows, up to a window. One
/// unit that lies elsewhere ends that: it is not fetched, nor what comes after it, until a whole
/// command lies in order again.
///
/// Not modelled: several streams at once; strides; keeping what was read for a second reader.
///
/// Differs from hardware: makers do not publish their rules; this is the simplest that makes a
/// few scattered units cost as much as was measured (`toshiba-xg5`: 1.2 % of them).
#[derive(Clone, Debug, Default)]
pub struct ReadAhead {
    window_units: u64,
    /// Where the next command must start to go on with the stream.
    next: Option<u64>,
    fetched: VecDeque<Fetched>,
    /// How the fetched units lie, up to the last.
    course: Option<Course>,
}

/// Consecutive units of one page that stand in the controller's memory.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    first: u64,
    units: u64,
    place: Place,
    ready: Nanos,
}

/// What a read command found out about how its units lie.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    last: Option<Ppn>,
    in_order: bool,
    superblock_units: u32,
}

impl Course {
    /// Before the first unit, on a drive with superblocks of so many units.
    pub fn begin(superblock_units: u32) -> Self {
        Self { last: None, in_order: true, superblock_units }
    }

    /// Begins anew after the last unit that was added.
    pub fn anew(&self) -> Self {
        Self { in_order: true, ..*self }
    }

    /// Whether all units that were added follow each other.
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Whether one address comes after another in order of writing: the next one, or the start of
    /// any superblock after the end of one.
    fn follows(&self, last: Ppn, next: Ppn) -> bool {
        let after = last.0 + 1;
        after == next.0
            || (after.is_multiple_of(self.superblock_units)
                && next.0.is_multiple_of(self.superblock_units))
    }

    /// Adds the next unit's address; `None` where it is not in flash.
    pub fn add(&mut self, ppn: Option<Ppn>) {
        let follows = match (self.last, ppn) {
            (None, Some(_)) => true,
            (Some(last), Some(ppn)) => self.follows(last, ppn),
            (_, None) => false,
        };
        self.in_order &= follows;
        self.last = ppn;
    }

    /// Whether this unit would go on in order.
    pub fn goes_on_at(&self, ppn: Ppn) -> bool {
        self.in_order && self.last.is_some_and(|last| self.follows(last, ppn))
    }
}

impl ReadAhead {
    /// A read-ahead of up to `window_units`; none of zero.
    pub fn new(window_units: u64) -> Self {
        Self { window_units, ..Self::default() }
    }

    /// Whether the controller does this at all.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.window_units > 0
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.window_units);
    }

    /// When a unit that was fetched ahead is in the controller's memory.
    #[inline]
    pub fn take(&mut self, lpn: u64, place: Place) -> Option<Nanos> {
        while self.fetched.front().is_some_and(|page| page.first + page.units <= lpn) {
            self.fetched.pop_front();
        }
        let page = self.fetched.front()?;
        (page.first <= lpn && page.place.same_page(place)).then_some(page.ready)
    }

    /// Ends a command over these units; returns the units to fetch ahead, if any, and how those
    /// before them lie.
    #[inline]
    pub fn plan(&mut self, start: u64, end: u64, course: Course) -> (Range<u64>, Course) {
        if !self.is_on() {
            return (end..end, course);
        }
        let goes_on = self.next == Some(start) && course.in_order;
        self.next = Some(end);
        let fetched_until = self.fetched.back().map_or(0, |page| page.first + page.units);
        if !goes_on || fetched_until <= end {
            self.fetched.clear();
            self.course = None;
        }
        if !goes_on {
            return (end..end, course);
        }
        (fetched_until.max(end)..end + self.window_units, self.course.unwrap_or(course))
    }

    /// Notes consecutive units of one page that will be in memory at `ready`.
    pub fn note(&mut self, first: u64, units: u64, place: Place, ready: Nanos) {
        self.fetched.push_back(Fetched { first, units, place, ready });
    }

    /// Notes how the last unit that was fetched lies.
    pub fn reached(&mut self, course: Course) {
        self.course = Some(course);
    }
}
