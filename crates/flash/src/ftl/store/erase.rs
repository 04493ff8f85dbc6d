//! When an emptied superblock is erased: not before its units are safe elsewhere.
//!
//! Modelled: a superblock is empty when its last valid unit was moved or overwritten, but the new
//! copy may not be in flash yet. The erase is queued once every page that was open at that moment
//! is in flash. If erased superblocks run out, partly filled pages are padded to get there, and
//! writes wait. Not modelled: erases that are postponed until a superblock is needed, or split to
//! let reads in between (`flash.suspend` does that). Source: the order that crash consistency
//! requires of any log-structured store (Rosenblum and Ousterhout, TOCS 1992).

use std::collections::VecDeque;

use ssdlab_time::Nanos;

use super::UnitStore;
use crate::ftl::placement::{Lane, Marks};
use crate::nand::Media;

/// Superblocks that hold nothing valid and are not erased yet, in order of emptying.
#[derive(Clone, Debug, Default)]
pub struct Emptied {
    waiting: VecDeque<Waiting>,
    /// The number of them that become free for any use.
    free: usize,
}

#[derive(Clone, Debug)]
struct Waiting {
    superblock: u32,
    /// How far the frontiers were filled when it became empty.
    written: Marks,
    /// Whether it becomes free for any use, rather than going back to a static SLC cache.
    free: bool,
    /// When `written` is in flash; `None` while part of it waits in partly filled pages.
    safe_at: Option<Nanos>,
}

impl Emptied {
    /// Adds a superblock that became empty when the frontiers were at these marks.
    fn add(&mut self, superblock: u32, written: Marks, free: bool) {
        self.free += usize::from(free);
        self.waiting.push_back(Waiting { superblock, written, free, safe_at: None });
    }

    /// The number of them that become free for any use.
    pub fn free(&self) -> usize {
        self.free
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl UnitStore {
    /// Superblocks that are free, or will be before collection must do anything else.
    pub fn free_count(&self) -> usize {
        self.superblocks.free_count() + self.emptied.free
    }

    /// Queues the erases of superblocks whose content is safe at `at`.
    #[inline]
    pub fn erase_emptied(&mut self, at: Nanos, media: &mut impl Media) {
        while !self.emptied.is_empty() {
            match self.safe_at() {
                Some(safe_at) if safe_at <= at => self.erase_next(safe_at, at, media),
                _ => return,
            }
        }
    }

    /// When the first emptied superblock may be erased; `None` if that is not known yet.
    fn safe_at(&mut self) -> Option<Nanos> {
        let first = self.emptied.waiting.front_mut()?;
        if first.safe_at.is_none() && self.frontiers.programmed_up_to(&first.written) {
            first.safe_at = Some(self.undo.programs_end);
        }
        first.safe_at
    }

    fn erase_next(&mut self, safe_at: Nanos, at: Nanos, media: &mut impl Media) {
        let first = self.emptied.waiting.pop_front();
        let Waiting { superblock, free, .. } = first.expect("an emptied superblock waits");
        self.emptied.free -= usize::from(free);
        for die in 0..self.dies {
            media.erase(die, superblock, at);
        }
        self.counters.erases += u64::from(self.dies);
        self.undo.forget_before(safe_at);
        let slc = self.superblocks.is_slc(superblock);
        let erases = self.superblocks.erase(superblock);
        if slc && self.slc.as_mut().is_some_and(|cache| cache.take_back(superblock)) {
            return;
        }
        if self.retirement.retires(superblock, erases, self.superblocks.free_count()) {
            self.superblocks.retire(superblock);
        } else {
            self.superblocks.set_free(superblock);
        }
    }

    /// Erases emptied superblocks in the idle time from `at` to `until`, if that is long enough;
    /// pads partly filled pages first.
    pub fn erase_idle(&mut self, at: Nanos, until: Nanos, media: &mut impl Media) {
        if at.max(self.undo.programs_end) >= until || self.emptied.is_empty() {
            return;
        }
        for lane in self.frontiers.lanes() {
            self.pad(lane, at, media);
        }
        let safe_at = self.undo.programs_end.max(at);
        if safe_at < until {
            self.erase_emptied(safe_at, media);
        }
    }

    /// Hands a superblock without valid units over to be erased.
    pub fn release(&mut self, superblock: u32) {
        let free = self.slc_borrows() || !self.superblocks.is_slc(superblock);
        self.superblocks.empty(superblock);
        self.emptied.add(superblock, self.frontiers.marks(), free);
    }

    /// Takes all emptied superblocks out of the queue.
    pub fn take_emptied(&mut self) -> impl Iterator<Item = u32> + use<> {
        std::mem::take(&mut self.emptied).waiting.into_iter().map(|each| each.superblock)
    }

    /// An erased superblock, and when it can be written.
    ///
    /// If only emptied ones are left, the first is erased as soon as that is safe; the partly
    /// filled pages that it waits for are padded.
    pub fn take_free(&mut self, at: Nanos, media: &mut impl Media) -> (u32, Nanos) {
        let mut from = at;
        // The first emptied superblock may go back to a static cache: then erase another.
        while self.superblocks.free_count() == 0
            && let Some(first) = self.emptied.waiting.front()
        {
            let behind: Vec<Lane> = self.frontiers.behind(&first.written).collect();
            for lane in behind {
                self.pad(lane, at, media);
            }
            let safe_at = self.safe_at().expect("padding programs all pages it waits for");
            from = safe_at.max(at);
            self.erase_next(safe_at, from, media);
        }
        (self.superblocks.take_free(), from)
    }
}
