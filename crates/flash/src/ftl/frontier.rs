//! `Frontier`: the open superblock that a stream of writes fills, run by run along the stripe.

use ssdlab_time::Nanos;

use crate::config::{Profile, Relocation};
use crate::nand::{Geometry, Place, Ppn, Splitter};

/// Why a unit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Collection moved it.
    Collection,
    /// Wear levelling moved it.
    Wear,
    /// It was moved out of the SLC cache.
    Folding,
    /// A page had to be programmed before it was full.
    Padding,
}

/// How many causes there are.
const CAUSES: usize = 5;

/// Units that follow each other to flash through one frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// What the host writes.
    Host,
    /// What collection and wear levelling move; shares the host's frontier where they are mixed.
    Moves,
    /// What the host writes while the SLC cache has room.
    Slc,
}

/// The frontiers of a drive, one for each stream that has its own.
#[derive(Debug)]
pub struct Frontiers {
    all: Vec<Frontier>,
    /// Which of them takes what is moved.
    moves: usize,
}

impl Frontiers {
    /// Frontiers without a superblock.
    pub fn new(profile: &Profile) -> Self {
        let moves = usize::from(profile.collection.relocation == Relocation::Separate);
        let units = profile.geometry.superblock_units();
        let mut all: Vec<Frontier> =
            (0..=moves).map(|_| Frontier::new(&profile.geometry, units, false)).collect();
        if let Some(slc) = &profile.slc {
            let units = slc.superblock_units(&profile.geometry);
            all.push(Frontier::new(&profile.geometry, units, true));
        }
        Self { all, moves }
    }

    /// The one that a stream fills.
    #[inline]
    pub fn of(&mut self, stream: Stream) -> &mut Frontier {
        match stream {
            Stream::Host => &mut self.all[0],
            Stream::Moves => &mut self.all[self.moves],
            Stream::Slc => &mut self.all[self.moves + 1],
        }
    }

    /// The streams that have a frontier of their own.
    pub fn streams(&self) -> impl Iterator<Item = Stream> + use<> {
        let moves = (self.moves > 0).then_some(Stream::Moves);
        let slc = (self.all.len() > self.moves + 1).then_some(Stream::Slc);
        [Some(Stream::Host), moves, slc].into_iter().flatten()
    }

    /// Units written for a cause that wait in pages that are not full.
    pub fn waiting(&self, cause: Cause) -> u64 {
        self.all.iter().map(|frontier| u64::from(frontier.waiting(cause))).sum()
    }

    /// How far each is filled, so that what was written up to now can be told from what follows.
    pub fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        for (mark, frontier) in marks.0.iter_mut().zip(&self.all) {
            *mark = frontier.taken;
        }
        marks
    }

    /// Whether all that was written up to the marks is being programmed or in flash.
    pub fn programmed_up_to(&self, marks: &Marks) -> bool {
        marks.0.iter().zip(&self.all).all(|(mark, frontier)| frontier.programmed() >= *mark)
    }
}

/// How far each frontier was filled at some moment, in units taken since the drive was new.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks([u64; 3]);

/// The next place to write, and the pages begun but not full.
///
/// A *run* is what follows each other on one page: a chunk, or a page where a chunk is longer. A
/// *row* is what is filled together: a page, or one on each die where a chunk is shorter.
#[derive(Debug)]
pub struct Frontier {
    superblock: u32,
    /// Units that it fills of each superblock.
    superblock_units: u32,
    /// Whether it fills them at one bit a cell.
    slc: bool,
    run_units: u32,
    row_units: u32,
    next: u32,
    /// Units taken since the drive was new.
    taken: u64,
    /// Where what its units replace is noted.
    log: usize,
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
    units: [u32; CAUSES],
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
    /// The stream that took them.
    pub stream: Stream,
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
    /// Whether they fill that page.
    pub fills_page: bool,
}

/// No superblock has this number.
const NONE: u32 = u32::MAX;

impl Frontier {
    /// A frontier that has no superblock yet.
    fn new(geometry: &Geometry, superblock_units: u32, slc: bool) -> Self {
        Self {
            superblock: NONE,
            superblock_units,
            slc,
            run_units: geometry.multi_page_units().min(geometry.chunk_units),
            row_units: geometry.open_units() as u32,
            next: superblock_units,
            taken: 0,
            log: 0,
            run_left: 0,
            place: Place { die: 0, page: 0, page_in_block: 0, last_of_page: false, slc },
            units_open: 0,
            filling: vec![Filling::default(); geometry.dies() as usize],
        }
    }

    /// Goes on in an erased superblock after the old one was filled.
    pub fn open(&mut self, superblock: u32, log: usize) {
        assert!(self.is_full() && self.units_open == 0, "the old superblock is filled");
        self.superblock = superblock;
        self.log = log;
        self.next = 0;
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

    /// Units written to pages that are not full yet.
    pub fn units_open(&self) -> u32 {
        self.units_open
    }

    /// Units taken up to the last page that is full, and so being programmed or in flash.
    fn programmed(&self) -> u64 {
        if self.units_open == 0 {
            return self.taken;
        }
        self.taken - u64::from(self.next % self.row_units)
    }

    /// Takes up to `most` consecutive addresses of the current run.
    #[inline]
    pub fn take(&mut self, stream: Stream, most: u32, splitter: &Splitter) -> Slot {
        if self.run_left == 0 {
            let last = self.next + self.run_units - 1;
            self.place = Place { slc: self.slc, ..splitter.place(self.superblock, last) };
            self.run_left = self.run_units;
        }
        let units = most.min(self.run_left);
        let offset = self.next;
        self.next += units;
        self.taken += u64::from(units);
        self.run_left -= units;
        self.units_open += units;
        Slot {
            stream,
            ppn: splitter.ppn(self.superblock, offset),
            superblock: self.superblock,
            offset,
            log: self.log,
            units,
            place: self.place,
            fills_page: self.run_left == 0 && self.place.last_of_page,
        }
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
