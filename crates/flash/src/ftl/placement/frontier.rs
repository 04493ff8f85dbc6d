//! `Frontier`: the open superblock, or one die's part of it, that writes fill run by run.

use ssdlab_time::Nanos;

use crate::cause::Cause;
use crate::nand::{Geometry, Place, Ppn, Splitter};

/// The number of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(pub u32);

impl Lane {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The dies that a frontier fills, of each of its superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// All of them, along the stripe.
    AllDies,
    /// One: others fill the rest.
    OneDie(u32),
}

/// The next place to write, and the pages begun but not full.
///
/// A *run* is what follows each other on one page: a chunk, or a page where a chunk is longer. A
/// *row* is what is filled together: a page, or one on each die where a chunk is shorter.
#[derive(Clone, Debug)]
pub struct Frontier {
    superblock: u32,
    span: Span,
    first_die: u32,
    /// Units that it fills of each superblock.
    superblock_units: u32,
    /// Whether it fills them at one bit a cell.
    slc: bool,
    run_units: u32,
    row_units: u32,
    /// How many of these it has taken, and how far behind that position the current run lies: what
    /// other dies have of the superblock before it.
    next: u32,
    skipped: u32,
    /// Units taken since the drive was new.
    taken: u64,
    /// Where what its units replace is noted.
    log: usize,
    /// Units that the current run still takes, and where its last unit lies.
    run_left: u32,
    place: Place,
    units_open: u32,
    /// For each die of the span: the page that is being filled.
    filling: Vec<Filling>,
}

/// A page being filled: when its data is there, and why its units are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filling {
    /// When all of its data is with the controller.
    pub ready: Nanos,
    /// Units by cause.
    units: [u32; Cause::COUNT],
}

impl Filling {
    /// Units written for a cause.
    pub fn of(&self, cause: Cause) -> u32 {
        self.units[cause as usize]
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
    /// The lane that took them.
    pub lane: Lane,
    /// The first address.
    pub ppn: Ppn,
    /// The superblock that they lie in.
    pub superblock: u32,
    /// The first address's position in its superblock.
    pub offset: u32,
    /// Where what these units replace is noted.
    pub log: usize,
    /// How many.
    pub units: u32,
    /// The page they lie on.
    pub place: Place,
    /// Whether they are the last of their run, and whether they fill that page.
    pub ends_run: bool,
    pub fills_page: bool,
}

/// No superblock has this number.
const NONE: u32 = u32::MAX;

impl Frontier {
    /// A frontier that has no superblock yet; of each it will fill so many units.
    pub fn new(geometry: &Geometry, span: Span, superblock_units: u32, slc: bool) -> Self {
        let (first_die, dies, row_units) = match span {
            Span::AllDies => (0, geometry.dies(), geometry.open_units() as u32),
            Span::OneDie(die) => (die, 1, geometry.multi_page_units()),
        };
        Self {
            superblock: NONE,
            span,
            first_die,
            superblock_units,
            slc,
            run_units: geometry.multi_page_units().min(geometry.chunk_units),
            row_units,
            next: superblock_units,
            skipped: 0,
            taken: 0,
            log: 0,
            run_left: 0,
            place: Place { die: 0, page: 0, page_in_block: 0, last_of_page: false, slc },
            units_open: 0,
            filling: vec![Filling::default(); dies as usize],
        }
    }

    /// Goes on in an erased superblock after the old one was filled.
    pub fn open(&mut self, superblock: u32, log: usize) {
        assert!(self.is_full() && self.units_open == 0, "the old superblock is filled");
        self.superblock = superblock;
        self.log = log;
        self.next = 0;
    }

    /// Goes on in the superblock of another, no page of which is half full; that has none then.
    pub fn take_over(&mut self, other: &mut Self) {
        assert!(self.is_full() && self.units_open == 0, "the old superblock is filled");
        assert!(other.units_open == 0 && other.run_left == 0, "no page is half full");
        (self.superblock, self.log, self.next) = (other.superblock, other.log, other.next);
        other.superblock = NONE;
        other.next = other.superblock_units;
    }

    /// The superblock being filled.
    pub fn superblock(&self) -> u32 {
        self.superblock
    }

    /// Where what its units replace is noted.
    pub fn log(&self) -> usize {
        self.log
    }

    /// Whether its superblock has no room left.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.next == self.superblock_units
    }

    /// Units that its superblock still takes.
    pub fn room(&self) -> u32 {
        self.superblock_units - self.next
    }

    /// Units written to pages that are not full yet.
    pub fn units_open(&self) -> u32 {
        self.units_open
    }

    /// Units taken since the drive was new.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Units taken up to the last page that is full, and so being programmed or in flash.
    pub fn programmed(&self) -> u64 {
        if self.units_open == 0 {
            return self.taken;
        }
        self.taken - u64::from(self.next % self.row_units)
    }

    /// Takes up to `most` consecutive addresses of the current run.
    #[inline]
    pub fn take(&mut self, lane: Lane, most: u32, splitter: &Splitter) -> Slot {
        if self.run_left == 0 {
            self.begin_run(splitter);
        }
        let units = most.min(self.run_left);
        let offset = self.next + self.skipped;
        self.next += units;
        self.taken += u64::from(units);
        self.run_left -= units;
        self.units_open += units;
        Slot {
            lane,
            ppn: splitter.ppn(self.superblock, offset),
            superblock: self.superblock,
            offset,
            log: self.log,
            units,
            place: self.place,
            ends_run: self.run_left == 0,
            fills_page: self.run_left == 0 && self.place.last_of_page,
        }
    }

    fn begin_run(&mut self, splitter: &Splitter) {
        if let Span::OneDie(die) = self.span {
            self.skipped = splitter.offset_on(die, self.next) - self.next;
        }
        let last = self.next + self.skipped + self.run_units - 1;
        self.place = Place { slc: self.slc, ..splitter.place(self.superblock, last) };
        self.run_left = self.run_units;
    }

    /// The page that a die of the span fills.
    #[inline]
    fn filling(&mut self, die: u32) -> &mut Filling {
        &mut self.filling[(die - self.first_die) as usize]
    }

    /// Adds a slot's units to the page that its die fills.
    #[inline]
    pub fn fill(&mut self, slot: &Slot, cause: Cause, ready: Nanos) {
        self.filling(slot.place.die).add(cause, slot.units, ready);
    }

    /// Takes a die's full page away: it is being programmed.
    pub fn take_page(&mut self, die: u32) -> Filling {
        let page = std::mem::take(self.filling(die));
        self.units_open -= page.units.iter().sum::<u32>();
        page
    }

    /// Gives the rest of its superblock up, no page of which is half full; returns how many units.
    /// Nothing where all of it is left.
    pub fn give_up(&mut self) -> u32 {
        assert!(self.units_open == 0 && self.run_left == 0, "no page is half full");
        if self.next == 0 {
            return 0;
        }
        let rest = self.room();
        self.taken += u64::from(rest);
        self.next = self.superblock_units;
        rest
    }

    /// Gives the pages that are not full up, after a power cut: goes on behind them.
    pub fn skip_open_pages(&mut self) {
        if self.units_open == 0 {
            return;
        }
        let end = self.next.next_multiple_of(self.row_units);
        self.taken += u64::from(end - self.next);
        self.next = end;
        self.run_left = 0;
        self.units_open = 0;
        self.filling.fill(Filling::default());
    }

    /// Units written for a cause that wait in pages that are not full.
    pub fn waiting(&self, cause: Cause) -> u32 {
        self.filling.iter().map(|page| page.of(cause)).sum()
    }
}
