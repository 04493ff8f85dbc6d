//! `Undo`: what each unit that may not be in flash yet has replaced, to roll back at a power cut.

use ssdlab_time::Nanos;

use crate::nand::{Geometry, Place, Ppn};

/// Undo logs of the superblocks that may not be in flash as a whole.
///
/// Drives gather this when power returns, by reading the unit numbers and sequence numbers in each
/// flash page. The model keeps it in memory instead: a log for each superblock that is being
/// filled, and for those just filled whose last programs have not ended.
///
/// A page counts as in flash at the end time of its program that was reported to the write buffer
/// and to flushes, even if a read delayed the program later.
#[derive(Clone, Debug)]
pub struct Undo {
    logs: Vec<Log>,
    /// The number of each superblock's log, or `NO_LOG`.
    log_of: Vec<u32>,
    superblock_units: usize,
    pages: usize,
    pages_per_block: u32,
    /// Writes that were in flash by then cannot be undone.
    forgotten_before: Nanos,
    /// When the last program of the drive ends.
    pub programs_end: Nanos,
}

/// The units written to one superblock.
#[derive(Clone, Debug)]
struct Log {
    superblock: u32,
    /// For each address, what its unit replaced. Meaningless if nothing was written there.
    replaced: Vec<Replaced>,
    /// For each page, die by die, when its program ends.
    page_ends: Vec<Nanos>,
    last_end: Nanos,
    filled: bool,
}

/// The unit's content before it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its address plus one; 0 if the unit was unmapped.
    before: u32,
    /// The number of host writes that are merged at the new address; 0 if a relocation copied the
    /// old content there.
    pub host_writes: u32,
}

impl Replaced {
    /// The previous address of the unit.
    pub fn before(self) -> Option<Ppn> {
        self.before.checked_sub(1).map(Ppn)
    }
}

/// The end time of a page that is not full yet.
const NOT_YET: Nanos = Nanos::MAX;

const NO_LOG: u32 = u32::MAX;

impl Undo {
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            logs: Vec::new(),
            log_of: vec![NO_LOG; geometry.blocks_per_plane as usize],
            superblock_units: geometry.superblock_units() as usize,
            pages: (geometry.dies() * geometry.pages_per_block) as usize,
            pages_per_block: geometry.pages_per_block,
            forgotten_before: Nanos::ZERO,
            programs_end: Nanos::ZERO,
        }
    }

    /// Starts the log of a superblock that is about to be filled; returns the log's number.
    ///
    /// Reuses the log of a superblock that is completely in flash at `now`, if there is one.
    pub fn open(&mut self, superblock: u32, now: Nanos) -> usize {
        let settled = |log: &Log| log.filled && log.last_end <= now;
        let same = self.log_of[superblock as usize];
        let same = (same != NO_LOG).then_some(same as usize);
        let reused = same.or_else(|| self.logs.iter().position(settled));
        let number = reused.unwrap_or_else(|| {
            let nothing = Replaced { before: 0, host_writes: 0 };
            self.logs.push(Log {
                superblock,
                replaced: vec![nothing; self.superblock_units],
                page_ends: vec![NOT_YET; self.pages],
                last_end: Nanos::ZERO,
                filled: false,
            });
            self.logs.len() - 1
        });
        self.forget_before(self.logs[number].last_end.min(now));
        let log = &mut self.logs[number];
        self.log_of[log.superblock as usize] = NO_LOG;
        self.log_of[superblock as usize] = number as u32;
        log.superblock = superblock;
        log.page_ends.fill(NOT_YET);
        log.last_end = Nanos::ZERO;
        log.filled = false;
        number
    }

    /// Records that the unit at this offset of the log's superblock replaces `before`.
    #[inline]
    pub fn record(&mut self, log: usize, offset: u32, before: Option<Ppn>, by_host: bool) {
        let before = before.map_or(0, |ppn| ppn.0 + 1);
        let host_writes = u32::from(by_host);
        self.logs[log].replaced[offset as usize] = Replaced { before, host_writes };
    }

    /// Records one more host write that is merged with the unit at this offset of a superblock,
    /// whose page is not in flash yet.
    pub fn merged(&mut self, superblock: u32, offset: u32) {
        let log = self.log_of[superblock as usize] as usize;
        self.logs[log].replaced[offset as usize].host_writes += 1;
    }

    /// Records when the program of a page ends.
    pub fn programmed(&mut self, log: usize, place: Place, end: Nanos) {
        let page = self.page(place.die, place.page_in_block);
        let log = &mut self.logs[log];
        log.page_ends[page] = end;
        log.last_end = log.last_end.max(end);
        self.programs_end = self.programs_end.max(end);
    }

    /// Records that the log's superblock has no room left.
    pub fn filled(&mut self, log: usize) {
        self.logs[log].filled = true;
    }

    /// Forgets content replaced by units in flash at `time`, because its place is reused.
    ///
    /// The model works ahead of the clock while requests wait for the buffer; a power cut before
    /// `time` then takes effect at `time`.
    pub fn forget_before(&mut self, time: Nanos) {
        self.forgotten_before = self.forgotten_before.max(time);
    }

    /// The superblocks that may not be in flash as a whole.
    pub fn superblocks(&self) -> impl Iterator<Item = u32> {
        self.logs.iter().map(|log| log.superblock)
    }

    /// What the unit at an address replaced, if its page is not in flash at `now`.
    pub fn replaced(
        &self,
        superblock: u32,
        offset: u32,
        place: Place,
        now: Nanos,
    ) -> Option<Replaced> {
        let end = self.in_flash_at(superblock, place);
        let log = self.log(superblock)?;
        (end > now.max(self.forgotten_before)).then(|| log.replaced[offset as usize])
    }

    /// When the page at this place is in flash, or any time in the past; `Nanos::MAX` if the page
    /// is not full yet.
    #[inline]
    pub fn in_flash_at(&self, superblock: u32, place: Place) -> Nanos {
        self.log(superblock)
            .map_or(Nanos::ZERO, |log| log.page_ends[self.page(place.die, place.page_in_block)])
    }

    /// Forgets everything: after a power cut at `now`, all that is left is in flash.
    pub fn clear(&mut self, now: Nanos) {
        for log in &mut self.logs {
            log.last_end = Nanos::ZERO;
            for end in log.page_ends.iter_mut().filter(|end| **end < NOT_YET) {
                *end = Nanos::ZERO;
            }
        }
        self.forgotten_before = Nanos::ZERO;
        self.programs_end = now;
    }

    #[inline]
    fn log(&self, superblock: u32) -> Option<&Log> {
        self.logs.get(self.log_of[superblock as usize] as usize)
    }

    fn page(&self, die: u32, page_in_block: u32) -> usize {
        (die * self.pages_per_block + page_in_block) as usize
    }
}
