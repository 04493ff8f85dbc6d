//! What a power cut takes, and how the drive comes back.
//!
//! Modelled: a protected drive writes its buffer out on its capacitors. One without loses every
//! unit whose page has not been programmed: unwritten pages in the buffer, and pages whose program
//! the cut breaks off. Each such unit has the newest content again that is in flash: that is what
//! a scan of unit and sequence numbers finds. A move that is lost leaves the unit where it was,
//! because its old place is not erased before the new one is in flash. A trim that was answered
//! holds. The drive goes on behind the pages that it was filling.
//!
//! Not modelled: pages programmed earlier that a broken-off program spoils (paired pages, which
//! drives guard by backups or one-pass programming); the time that recovery takes; an erase that is
//! broken off (taken as done); a map that is older than the data it names.
//!
//! Differs from hardware: what a read pushes back counts as in flash at the time that was told
//! before; where requests that wait for the buffer had a superblock erased ahead of the clock, the
//! cut is taken as one at that moment; where no superblock is erased, so that what is lost could
//! not be collected anew, the cut comes when all that is buffered has been programmed.
//!
//! Source: Zheng, Tucek, Qin, Lillibridge, "Understanding the robustness of SSDs under power
//! fault", FAST 2013, for what drives do where they do it wrong.

use ssdlab_time::Nanos;

use super::Ftl;
use super::slc::SlcCache;
use super::undo::Replaced;
use super::victim::Candidates;
use crate::cause::Cause;
use crate::nand::{Media, Ppn};

/// A mapping unit whose newest content a power cut took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostUnit {
    /// The unit.
    pub unit: u64,
    /// How many of the host's writes to it are gone: the newest ones, in a row.
    pub writes: u32,
    /// Whether it has older content now; if not, it reads as if it had never been written.
    pub has_older: bool,
}

impl Ftl {
    /// Cuts the power at `now` and turns it on again; returns what was lost, by unit.
    pub fn power_cut(
        &mut self,
        protected: bool,
        now: Nanos,
        array: &mut impl Media,
    ) -> Vec<LostUnit> {
        let no_reserve = self.superblocks.free_count() == 0;
        let saves = protected || no_reserve;
        let lost = if saves { self.save(now, array) } else { self.roll_back(now) };
        for cause in [Cause::Collection, Cause::Wear, Cause::Folding, Cause::Packing] {
            let waiting = self.frontiers.waiting(cause);
            *self.counters.moves(cause) -= waiting;
        }
        self.counters.host_writes_lost += self.frontiers.waiting(Cause::Host);
        for lane in self.frontiers.lanes() {
            let was_filled = self.frontiers.is_filled(lane);
            let frontier = self.frontiers.of(lane);
            frontier.skip_open_pages();
            let (superblock, log) = (frontier.superblock(), frontier.log());
            if self.frontiers.is_filled(lane) && !was_filled {
                self.close(superblock);
                self.undo.filled(log);
            }
        }
        self.undo.settle();
        self.buffer.clear();
        self.placement.forget();
        self.host_programs_end = now;
        self.programs_end = now;
        self.begin_collection_anew(now, array);
        lost
    }

    /// Writes out all that is in pages that are not full.
    fn save(&mut self, now: Nanos, array: &mut impl Media) -> Vec<LostUnit> {
        for lane in self.frontiers.lanes() {
            self.pad(lane, now, array);
        }
        Vec::new()
    }

    /// Gives each unit whose page is not in flash its newest content that is.
    fn roll_back(&mut self, now: Nanos) -> Vec<LostUnit> {
        let mut lost = Vec::new();
        let superblocks: Vec<u32> = self.undo.superblocks().collect();
        for superblock in superblocks {
            for offset in 0..self.superblock_units {
                let ppn = self.splitter.ppn(superblock, offset);
                if self.superblocks.is_valid(ppn) {
                    lost.extend(self.roll_back_unit(ppn, now));
                }
            }
        }
        lost.sort_unstable_by_key(|each| each.unit);
        lost
    }

    /// Rolls a current unit back, if its page is not in flash; tells what the host lost by that.
    fn roll_back_unit(&mut self, current: Ppn, now: Nanos) -> Option<LostUnit> {
        self.replaced(current, now)?;
        let lpn = self.superblocks.lpn(current);
        let (mut writes, mut at) = (0, Some(current));
        while let Some(ppn) = at
            && let Some(replaced) = self.replaced(ppn, now)
        {
            writes += u32::from(replaced.by_host);
            at = replaced.before();
        }
        self.invalidate(current);
        match at {
            None => {
                self.l2p.clear(lpn);
            }
            Some(older) => {
                assert_eq!(self.superblocks.lpn(older), lpn, "older content is still in its place");
                let (superblock, _) = self.splitter.superblock(older);
                self.superblocks.restore(superblock, older);
                self.l2p.set(lpn, older);
            }
        }
        let has_older = at.is_some();
        (writes > 0).then_some(LostUnit { unit: u64::from(lpn.0), writes, has_older })
    }

    /// What the unit at an address replaced, if its page is not in flash.
    fn replaced(&self, ppn: Ppn, now: Nanos) -> Option<Replaced> {
        let (superblock, offset) = self.splitter.superblock(ppn);
        let place = self.splitter.place(superblock, offset);
        self.undo.lost((superblock, offset), place, now)
    }

    /// Puts what was being emptied back among the full superblocks. What is empty stays so, unless
    /// a unit was rolled back to it. Ends with an erased superblock at hand.
    fn begin_collection_anew(&mut self, now: Nanos, array: &mut impl Media) {
        let empty = self.emptied.take_all();
        let victim = self.collector.reset();
        for superblock in empty.chain(victim) {
            if self.superblocks.valid(superblock) > 0 {
                self.close(superblock);
            } else {
                self.emptied(superblock);
            }
        }
        self.erase_emptied(now, array);
        while self.free_count() == 0 {
            let borrows = self.slc.as_ref().is_some_and(SlcCache::borrows);
            if !(borrows && self.begin_folding()) {
                let emptiest = self.superblocks.closed().fewest_valid();
                self.begin_victim(emptiest, Cause::Collection);
            }
            self.finish_victim(now, array);
        }
    }
}
