//! `Frontier`: the open superblock, or one die's part of it, which writes fill run by run.

use ssdlab_time::Nanos;

use crate::counters::Cause;
use crate::nand::{Geometry, Place, Ppn, Splitter};

/// The number of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(pub u32);

impl Lane {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The next place to write, and the partly filled pages.
///
/// A *run* is consecutive units on one page: a chunk, or a page if that is shorter. A *row* is the
/// pages that are filled together: one page, or one on each die if a chunk is shorter than a page.
#[derive(Clone, Debug)]
pub struct Frontier {
    /// The one being filled.
    pub superblock: u32,
    /// The die that it fills in each superblock, the rest of which others fill; `None`: all dies,
    /// along the stripe.
    die: Option<u32>,
    first_die: u32,
    /// Units of each superblock that it fills.
    superblock_units: u32,
    /// Whether it fills them at one bit per cell.
    slc: bool,
    run_units: u32,
    row_units: u32,
    /// The number of units taken in the current superblock.
    next: u32,
    /// Add this to `next` for the offset in the superblock: units of other dies before the run.
    skipped: u32,
    /// Units taken since the drive was new.
    pub taken: u64,
    /// The undo log of the superblock.
    pub undo_log: usize,
    /// Free units of the current run, and the place of its last unit.
    run_left: u32,
    place: Place,
    /// Units in partly filled pages.
    pub open_units: u32,
    /// The page being filled on each of its dies.
    open_pages: Vec<OpenPage>,
}

/// A page being filled: when its data is complete, and why its units are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenPage {
    /// When all of its data is in the controller.
    pub ready: Nanos,
    units: [u32; Cause::COUNT],
}

impl OpenPage {
    pub fn of(&self, cause: Cause) -> u32 {
        self.units[cause as usize]
    }

    /// The cause of most of its units; the first of equals.
    pub fn main_cause(&self) -> Cause {
        let units = |cause: Cause| self.units[cause as usize];
        let more = |most, other| if units(other) > units(most) { other } else { most };
        Cause::ALL.into_iter().fold(Cause::Host, more)
    }

    #[inline]
    fn add(&mut self, cause: Cause, units: u32, ready: Nanos) {
        self.units[cause as usize] += units;
        self.ready = self.ready.max(ready);
    }
}

/// Consecutive addresses on one page.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub lane: Lane,
    pub ppn: Ppn,
    pub superblock: u32,
    /// The offset of the first address in the superblock.
    pub offset: u32,
    /// The undo log of the superblock.
    pub undo_log: usize,
    pub units: u32,
    pub place: Place,
    /// Whether they are the last of their run.
    pub ends_run: bool,
    /// Whether the page is full with them.
    pub fills_page: bool,
}

/// The number of no superblock.
const NONE: u32 = u32::MAX;

impl Frontier {
    /// A frontier without a superblock. It fills `superblock_units` units of each.
    pub fn new(geometry: &Geometry, die: Option<u32>, superblock_units: u32, slc: bool) -> Self {
        let (dies, row_units) = match die {
            None => (geometry.dies(), geometry.open_units() as u32),
            Some(_) => (1, geometry.multi_page_units()),
        };
        Self {
            superblock: NONE,
            die,
            first_die: die.unwrap_or(0),
            superblock_units,
            slc,
            run_units: geometry.multi_page_units().min(geometry.chunk_units),
            row_units,
            next: superblock_units,
            skipped: 0,
            taken: 0,
            undo_log: 0,
            run_left: 0,
            place: Place { slc, ..Place::default() },
            open_units: 0,
            open_pages: vec![OpenPage::default(); dies as usize],
        }
    }

    /// Continues in an erased superblock after the old one was filled.
    pub fn open(&mut self, superblock: u32, undo_log: usize) {
        assert!(self.is_full() && self.open_units == 0, "the old superblock is filled");
        self.superblock = superblock;
        self.undo_log = undo_log;
        self.next = 0;
    }

    /// Takes over the superblock of another frontier, which has no partly filled page.
    pub fn take_over(&mut self, other: &mut Self) {
        assert!(self.is_full() && self.open_units == 0, "the old superblock is filled");
        assert!(other.open_units == 0 && other.run_left == 0, "no page is partly filled");
        (self.superblock, self.undo_log, self.next) =
            (other.superblock, other.undo_log, other.next);
        other.superblock = NONE;
        other.next = other.superblock_units;
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.next == self.superblock_units
    }

    /// Free units in its superblock.
    pub fn room(&self) -> u32 {
        self.superblock_units - self.next
    }

    /// Units taken up to the last full page: they are being programmed or in flash.
    pub fn programmed(&self) -> u64 {
        if self.open_units == 0 {
            return self.taken;
        }
        self.taken - u64::from(self.next % self.row_units)
    }

    /// Takes up to `count` consecutive addresses of the current run.
    #[inline]
    pub fn take(&mut self, lane: Lane, count: u32, splitter: &Splitter) -> Slot {
        if self.run_left == 0 {
            self.begin_run(splitter);
        }
        let units = count.min(self.run_left);
        let offset = self.next + self.skipped;
        self.next += units;
        self.taken += u64::from(units);
        self.run_left -= units;
        self.open_units += units;
        Slot {
            lane,
            ppn: splitter.ppn(self.superblock, offset),
            superblock: self.superblock,
            offset,
            undo_log: self.undo_log,
            units,
            place: self.place,
            ends_run: self.run_left == 0,
            fills_page: self.run_left == 0 && self.place.last_of_page,
        }
    }

    fn begin_run(&mut self, splitter: &Splitter) {
        if let Some(die) = self.die {
            self.skipped = splitter.offset_on(die, self.next) - self.next;
        }
        let last = self.next + self.skipped + self.run_units - 1;
        self.place = Place { slc: self.slc, ..splitter.place(self.superblock, last) };
        self.run_left = self.run_units;
    }

    /// The page being filled on one of its dies.
    #[inline]
    fn open_page(&mut self, die: u32) -> &mut OpenPage {
        &mut self.open_pages[(die - self.first_die) as usize]
    }

    /// Adds a slot's units to the page being filled on its die.
    #[inline]
    pub fn fill(&mut self, slot: &Slot, cause: Cause, ready: Nanos) {
        self.open_page(slot.place.die).add(cause, slot.units, ready);
    }

    /// Takes a die's full page, to be programmed.
    pub fn take_page(&mut self, die: u32) -> OpenPage {
        let page = std::mem::take(self.open_page(die));
        self.open_units -= page.units.iter().sum::<u32>();
        page
    }

    /// Leaves the rest of its superblock empty, unless the superblock is unused; returns the number
    /// of units left empty. No page may be partly filled.
    pub fn give_up(&mut self) -> u32 {
        assert!(self.open_units == 0 && self.run_left == 0, "no page is partly filled");
        if self.next == 0 {
            return 0;
        }
        let rest = self.room();
        self.taken += u64::from(rest);
        self.next = self.superblock_units;
        rest
    }

    /// Skips the partly filled pages after a power cut.
    pub fn skip_open_pages(&mut self) {
        if self.open_units == 0 {
            return;
        }
        let end = self.next.next_multiple_of(self.row_units);
        self.taken += u64::from(end - self.next);
        self.next = end;
        self.run_left = 0;
        self.open_units = 0;
        self.open_pages.fill(OpenPage::default());
    }

    /// Units written for a cause that are in partly filled pages.
    pub fn waiting(&self, cause: Cause) -> u32 {
        self.open_pages.iter().map(|page| page.of(cause)).sum()
    }
}
