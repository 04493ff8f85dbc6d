//! When an emptied superblock is erased: not before what it held is safe elsewhere.
//!
//! Modelled: a superblock is empty when its last valid unit was moved or overwritten, but the new
//! copy may still be on its way to flash. The erase is queued once every page that was open then
//! is in flash. Where erased superblocks run out, pages that are not full are padded for it and
//! what is to be written waits. Not modelled: erases put off until a superblock is needed, or split
//! to let reads in between (`flash.suspend` does that). Source: the order that crash consistency
//! asks of any log-structured store (Rosenblum and Ousterhout, TOCS 1992).

use std::collections::VecDeque;

use ssdlab_time::Nanos;

use super::Ftl;
use super::placement::{Lane, Marks};
use super::slc::SlcCache;
use crate::nand::Media;

/// Superblocks that hold nothing valid and are not erased yet, in order of emptying.
#[derive(Clone, Debug, Default)]
pub struct Emptied {
    waiting: VecDeque<Waiting>,
    /// How many of them will be free for any use.
    free: usize,
}

#[derive(Clone, Debug)]
struct Waiting {
    superblock: u32,
    /// What was written when it became empty.
    written: Marks,
    /// Whether it will be free for any use, and not go back to a static SLC cache.
    free: bool,
    /// When that is in flash, once all of it has been handed to the dies.
    safe_at: Option<Nanos>,
}

impl Emptied {
    /// Adds a superblock that is empty since the frontiers stood at these marks.
    pub fn add(&mut self, superblock: u32, written: Marks, free: bool) {
        self.free += usize::from(free);
        self.waiting.push_back(Waiting { superblock, written, free, safe_at: None });
    }

    /// Whether there are any.
    pub fn has_any(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes all of them out.
    pub fn take_all(&mut self) -> impl Iterator<Item = u32> + use<> {
        std::mem::take(self).waiting.into_iter().map(|each| each.superblock)
    }
}

impl Ftl {
    /// Superblocks that are erased, or will be before anything else is asked of collection.
    pub(super) fn free_count(&self) -> usize {
        self.superblocks.free_count() + self.emptied.free
    }

    /// Queues the erases of what is safe at `at`.
    #[inline]
    pub(super) fn erase_emptied(&mut self, at: Nanos, array: &mut impl Media) {
        while self.emptied.has_any() {
            match self.safe_at() {
                Some(safe_at) if safe_at <= at => self.erase_next(safe_at, at, array),
                _ => return,
            }
        }
    }

    /// When the first emptied superblock may be erased; `None` while that is open.
    fn safe_at(&mut self) -> Option<Nanos> {
        let first = self.emptied.waiting.front_mut()?;
        if first.safe_at.is_none() && self.frontiers.programmed_up_to(&first.written) {
            first.safe_at = Some(self.programs_end);
        }
        first.safe_at
    }

    fn erase_next(&mut self, safe_at: Nanos, at: Nanos, array: &mut impl Media) {
        let first = self.emptied.waiting.pop_front();
        let Waiting { superblock, free, .. } = first.expect("an empty superblock is erased");
        self.emptied.free -= usize::from(free);
        for die in 0..self.dies {
            array.erase(die, at);
        }
        self.counters.erases += u64::from(self.dies);
        self.undo.forget_before(safe_at);
        let slc = self.superblocks.is_slc(superblock);
        self.superblocks.erase(superblock);
        if slc && self.slc.as_mut().is_some_and(|cache| cache.erased(superblock)) {
            return;
        }
        if self.retires(superblock) {
            self.superblocks.retire(superblock);
        } else {
            self.superblocks.set_free(superblock);
        }
    }

    /// Erases what is empty in the time from `at` to `until`, in which nobody asks for anything, if
    /// that is enough: pages that are not full are padded for it.
    pub(super) fn erase_idle(&mut self, at: Nanos, until: Nanos, array: &mut impl Media) {
        if at.max(self.programs_end) >= until || !self.emptied.has_any() {
            return;
        }
        for lane in self.frontiers.lanes() {
            self.pad(lane, at, array);
        }
        let safe_at = self.programs_end.max(at);
        if safe_at < until {
            self.erase_emptied(safe_at, array);
        }
    }

    /// Notes that a superblock holds nothing valid any more.
    pub(super) fn emptied(&mut self, superblock: u32) {
        let borrows = self.slc.as_ref().is_none_or(SlcCache::borrows);
        let free = borrows || !self.superblocks.is_slc(superblock);
        self.superblocks.empty(superblock);
        self.emptied.add(superblock, self.frontiers.marks(), free);
    }

    /// An erased superblock to be filled, and from when on.
    ///
    /// Where only emptied ones are left, the first is erased as soon as that is safe: pages that
    /// are not full are padded, if it waits for them.
    ///
    /// # Panics
    /// When none is free: collection must keep one in reserve.
    pub(super) fn take_free(&mut self, at: Nanos, array: &mut impl Media) -> (u32, Nanos) {
        let mut from = at;
        // The first may be one that goes back to a static cache.
        while self.superblocks.free_count() == 0
            && let Some(first) = self.emptied.waiting.front()
        {
            let behind: Vec<Lane> = self.frontiers.behind(&first.written).collect();
            for lane in behind {
                self.pad(lane, at, array);
            }
            let safe_at = self.safe_at().expect("what it waited for is being programmed");
            from = safe_at.max(at);
            self.erase_next(safe_at, from, array);
        }
        (self.superblocks.take_free(), from)
    }
}
