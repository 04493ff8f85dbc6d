//! What a power cut loses, and how the drive recovers.
//!
//! Modelled: a protected drive writes its buffer out on its capacitors. An unprotected one loses
//! every unit whose page has not been programmed: unwritten pages in the buffer, and pages whose
//! program the cut interrupts. Each such unit reverts to its newest content in flash, as found by
//! a scan of unit and sequence numbers. A relocation that is lost leaves the unit where it was,
//! because its old place is not erased before the new one is in flash. A completed trim is kept.
//! The drive continues behind the pages that were partly filled.
//!
//! Not modelled: earlier pages that an interrupted program corrupts (paired pages, which drives
//! protect by backups or one-pass programming); the time that recovery takes; an interrupted erase
//! (it counts as done); a map that is older than the data it points to.
//!
//! Differs from hardware: a program that reads delayed counts as in flash at the time reported
//! before. If requests that wait for the buffer had a superblock erased ahead of the clock, the cut
//! takes effect at the time of that erase. If no superblock is erased, so that rolling back would
//! leave no room for collection, the cut takes effect when all buffered data has been programmed.
//!
//! Source: Zheng, Tucek, Qin, Lillibridge, "Understanding the robustness of SSDs under power
//! fault", FAST 2013, for what faulty drives do.

use ssdlab_time::Nanos;

use super::UnitStore;
use super::undo::Replaced;
use crate::counters::Cause;
use crate::nand::{Media, Ppn};

/// A mapping unit whose newest content a power cut lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostUnit {
    /// The number of the unit.
    pub unit: u64,
    /// The number of lost host writes to it: the newest ones, in a row.
    pub writes: u32,
    /// Whether it has older content now; if not, it reads as if it had never been written.
    pub has_older: bool,
}

impl UnitStore {
    /// Cuts the power at `now`; returns the lost units by number. Collection must recover next.
    pub fn power_cut(
        &mut self,
        protected: bool,
        now: Nanos,
        media: &mut impl Media,
    ) -> Vec<LostUnit> {
        let no_reserve = self.superblocks.free_count() == 0;
        let lost = if protected || no_reserve {
            for lane in self.frontiers.lanes() {
                self.pad(lane, now, media);
            }
            Vec::new()
        } else {
            self.roll_back(now)
        };
        for cause in [Cause::Collection, Cause::Wear, Cause::Folding, Cause::Packing] {
            let waiting = self.frontiers.waiting(cause);
            *self.counters.moves(cause) -= waiting;
        }
        self.counters.host_writes_lost += self.frontiers.waiting(Cause::Host);
        for lane in self.frontiers.lanes() {
            let was_filled = self.frontiers.is_filled(lane);
            let frontier = self.frontiers.of(lane);
            frontier.skip_open_pages();
            let (superblock, undo_log) = (frontier.superblock, frontier.undo_log);
            if self.frontiers.is_filled(lane) && !was_filled {
                self.close(superblock);
                self.undo.filled(undo_log);
            }
        }
        self.undo.clear(now);
        self.buffer.clear(now);
        if let Some(packed) = self.placement.packed() {
            packed.power_cut();
        }
        lost
    }

    /// Reverts each unit whose page is not in flash to its newest content in flash.
    fn roll_back(&mut self, now: Nanos) -> Vec<LostUnit> {
        let mut lost = Vec::new();
        let superblocks: Vec<u32> = self.undo.superblocks().collect();
        for superblock in superblocks {
            for offset in 0..self.superblock_units {
                let ppn = self.superblocks.splitter.ppn(superblock, offset);
                if self.superblocks.p2l.is_valid(ppn) {
                    lost.extend(self.roll_back_unit(ppn, now));
                }
            }
        }
        lost.sort_unstable_by_key(|each| each.unit);
        lost
    }

    /// Rolls a current unit back, if its page is not in flash; returns what the host lost.
    fn roll_back_unit(&mut self, current: Ppn, now: Nanos) -> Option<LostUnit> {
        self.replaced(current, now)?;
        let lpn = self.superblocks.p2l.lpn(current);
        let (mut writes, mut at) = (0, Some(current));
        while let Some(ppn) = at
            && let Some(replaced) = self.replaced(ppn, now)
        {
            writes += replaced.host_writes;
            at = replaced.before();
        }
        self.superblocks.invalidate(current);
        match at {
            None => {
                self.l2p.clear(lpn);
            }
            Some(older) => {
                let found = self.superblocks.p2l.lpn(older);
                assert_eq!(found, lpn, "older content is still in its place");
                let (superblock, _) = self.superblocks.splitter.superblock(older);
                self.superblocks.restore(superblock, older);
                self.l2p.set(lpn, older);
            }
        }
        let has_older = at.is_some();
        (writes > 0).then_some(LostUnit { unit: u64::from(lpn.0), writes, has_older })
    }

    /// What the unit at an address replaced, if its page is not in flash.
    fn replaced(&self, ppn: Ppn, now: Nanos) -> Option<Replaced> {
        let (superblock, offset) = self.superblocks.splitter.superblock(ppn);
        let place = self.superblocks.splitter.place(superblock, offset);
        self.undo.replaced(superblock, offset, place, now)
    }
}
