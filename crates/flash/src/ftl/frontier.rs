//! `Frontier`: the open superblock that a stream of writes fills, run by run along the stripe.

use ssdlab_time::Nanos;

use crate::nand::{Place, Ppn, Splitter};

/// The next place to write, and the pages begun but not full.
///
/// A *run* is what follows each other on one page: a chunk, or a page where a chunk is longer.
#[derive(Debug)]
pub struct Frontier {
    superblock: u32,
    superblock_units: u32,
    run_units: u32,
    next: u32,
    /// Units that the current run still takes, and where its last unit lies.
    run_left: u32,
    place: Place,
    units_open: u32,
    /// For each die: when the data of its page being filled is there.
    ready: Vec<Nanos>,
}

/// Consecutive addresses on one page.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The first address.
    pub ppn: Ppn,
    /// How many.
    pub units: u32,
    /// The page they lie on.
    pub place: Place,
    /// Whether they fill that page.
    pub fills_page: bool,
}

impl Frontier {
    /// A frontier at the start of an erased superblock, for this many dies.
    pub fn new(superblock: u32, dies: u32, superblock_units: u32, run_units: u32) -> Self {
        let place = Place { die: 0, page: 0, page_in_block: 0, last_of_page: false };
        let ready = vec![Nanos::ZERO; dies as usize];
        Self {
            superblock,
            superblock_units,
            run_units,
            next: 0,
            run_left: 0,
            place,
            units_open: 0,
            ready,
        }
    }

    /// Goes on in an erased superblock after the old one was filled.
    pub fn open(&mut self, superblock: u32) {
        assert!(self.is_full() && self.units_open == 0, "the old superblock is filled");
        self.superblock = superblock;
        self.next = 0;
    }

    /// The superblock being filled.
    pub fn superblock(&self) -> u32 {
        self.superblock
    }

    /// The next position to be written.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Whether its superblock has no room left.
    pub fn is_full(&self) -> bool {
        self.next == self.superblock_units
    }

    /// Units written to pages that are not full yet.
    pub fn units_open(&self) -> u32 {
        self.units_open
    }

    /// Takes up to `most` consecutive addresses of the current run.
    #[inline]
    pub fn take(&mut self, most: u32, splitter: &Splitter) -> Slot {
        if self.run_left == 0 {
            self.place = splitter.place(self.superblock, self.next + self.run_units - 1);
            self.run_left = self.run_units;
        }
        let units = most.min(self.run_left);
        let ppn = splitter.ppn(self.superblock, self.next);
        self.next += units;
        self.run_left -= units;
        self.units_open += units;
        let fills_page = self.run_left == 0 && self.place.last_of_page;
        Slot { ppn, units, place: self.place, fills_page }
    }

    /// Notes when a unit's data is there; returns when all data of its die's open page is.
    #[inline]
    pub fn note_ready(&mut self, die: u32, ready: Nanos) -> Nanos {
        let page = &mut self.ready[die as usize];
        *page = ready.max(*page);
        *page
    }

    /// Notes that a die's page was full and is being programmed.
    pub fn page_done(&mut self, die: u32, units: u32) {
        self.units_open -= units;
        self.ready[die as usize] = Nanos::ZERO;
    }
}
