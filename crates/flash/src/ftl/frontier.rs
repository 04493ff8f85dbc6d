//! `Frontier`: the open superblock that a stream of writes fills, run by run along the stripe.

use ssdlab_time::Nanos;

use crate::config::{Profile, Relocation};
use crate::nand::{Place, Ppn, Splitter};

/// Why a unit is written, and so into which frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Collection moved it.
    Collection,
    /// Wear levelling moved it.
    Wear,
    /// A flush filled up the host's page.
    Padding,
}

/// The frontiers of a drive: the host's, and one for what collection moves where they are apart.
#[derive(Debug)]
pub struct Frontiers {
    host: Frontier,
    collection: Option<Frontier>,
}

impl Frontiers {
    /// Frontiers at the start of erased superblocks.
    pub fn new(profile: &Profile, mut take_free: impl FnMut() -> u32) -> Self {
        let geometry = &profile.geometry;
        let run_units = geometry.multi_page_units().min(geometry.chunk_units);
        let mut frontier =
            || Frontier::new(take_free(), geometry.dies(), geometry.superblock_units(), run_units);
        let host = frontier();
        let separate = profile.collection.relocation == Relocation::Separate;
        Self { host, collection: separate.then(frontier) }
    }

    /// The one that is filled for a cause.
    #[inline]
    pub fn of(&mut self, cause: Cause) -> &mut Frontier {
        match (cause, &mut self.collection) {
            (Cause::Collection | Cause::Wear, Some(collection)) => collection,
            _ => &mut self.host,
        }
    }

    /// Whether a page, given by where its last unit lies, is still being filled.
    pub fn fills(&self, superblock: u32, last_offset: u32) -> bool {
        let fills = |each: &Frontier| each.superblock == superblock && last_offset >= each.next;
        fills(&self.host) || self.collection.as_ref().is_some_and(fills)
    }

    /// Units written for a cause that wait in pages that are not full.
    pub fn waiting(&self, cause: Cause) -> u64 {
        let all = self.collection.iter().chain([&self.host]);
        all.map(|frontier| u64::from(frontier.waiting(cause))).sum()
    }
}

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
    /// For each die: the page that is being filled.
    filling: Vec<Filling>,
}

/// A page being filled: when its data is there, and why its units are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filling {
    /// When all of its data is with the controller.
    pub ready: Nanos,
    /// Units by cause.
    units: [u32; 4],
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
        let filling = vec![Filling::default(); dies as usize];
        Self {
            superblock,
            superblock_units,
            run_units,
            next: 0,
            run_left: 0,
            place,
            units_open: 0,
            filling,
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

    /// Adds a slot's units to the page that its die fills.
    #[inline]
    pub fn fill(&mut self, slot: &Slot, cause: Cause, ready: Nanos) {
        self.filling[slot.place.die as usize].add(cause, slot.units, ready);
    }

    /// Takes a die's full page away: it is being programmed.
    pub fn take_page(&mut self, die: u32) -> Filling {
        let page = std::mem::take(&mut self.filling[die as usize]);
        self.units_open -= page.units.iter().sum::<u32>();
        page
    }

    /// Units written for a cause that wait in pages that are not full.
    pub fn waiting(&self, cause: Cause) -> u32 {
        self.filling.iter().map(|page| page.of(cause)).sum()
    }
}
