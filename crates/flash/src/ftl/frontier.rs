//! `Frontier`: the open superblock that a stream of writes fills, unit by unit along the stripe.

use ssdlab_time::Nanos;

/// The next place to write, and the pages begun but not full.
#[derive(Debug)]
pub struct Frontier {
    superblock: u32,
    next: u32,
    units_open: u32,
    /// For each die: when the data of its page being filled is there.
    ready: Vec<Nanos>,
}

impl Frontier {
    /// A frontier at the start of an erased superblock.
    pub fn new(superblock: u32, dies: u32) -> Self {
        Self { superblock, next: 0, units_open: 0, ready: vec![Nanos::ZERO; dies as usize] }
    }

    /// Goes on in an erased superblock after the old one was filled.
    pub fn open(&mut self, superblock: u32) {
        assert_eq!(self.units_open, 0, "a full superblock has no page half full");
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
    pub fn is_full(&self, superblock_units: u32) -> bool {
        self.next == superblock_units
    }

    /// Units written to pages that are not full yet.
    pub fn units_open(&self) -> u32 {
        self.units_open
    }

    /// Takes the next position.
    pub fn advance(&mut self) -> u32 {
        self.units_open += 1;
        self.next += 1;
        self.next - 1
    }

    /// Notes when a unit's data is there; returns when all data of its die's open page is.
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
