//! How to collect: fetch the victim's next valid units, write them to collection's frontier.

use ssdlab_time::Nanos;

use super::Ftl;
use super::frontier::{Cause, Stream};
use super::gc::Victim;
use crate::nand::{Media, Ppn};

/// How many units of a victim are looked at together: the largest part of a run that fits into a
/// word of valid bits.
pub fn units_at_once(run_units: u32) -> u32 {
    (1..=64).rev().find(|units| run_units.is_multiple_of(*units)).expect("one divides all")
}

/// How many units of a victim are looked at before their turn.
const LOOK_AHEAD: u32 = 48;

impl Ftl {
    /// Moves the victim's next valid units, all of one page; returns how many, and when they were
    /// with the controller.
    ///
    /// A page is sensed once however many of its runs are moved, as long as collection senses no
    /// other page of that die in between.
    pub(super) fn move_next(
        &mut self,
        victim: &mut Victim,
        at: Nanos,
        array: &mut impl Media,
    ) -> (u32, Nanos) {
        loop {
            let start = victim.next;
            assert!(start < self.superblock_units, "a victim with valid units has a next one");
            victim.next += self.move_units;
            self.look_ahead(victim);
            let first = self.splitter.ppn(victim.superblock, start);
            let mask = self.superblocks.valid_mask(first, self.move_units);
            if mask != 0 {
                let ready = self.fetch((victim.superblock, start), mask.count_ones(), at, array);
                self.superblocks.unassign(victim.superblock, first, mask);
                self.rewrite(victim.cause, (first, mask), ready, array);
                return (mask.count_ones(), ready);
            }
        }
    }

    /// Fetches the map entries of units that will be moved soon into the processor's cache: they
    /// lie anywhere, and waiting for each would be most of a move.
    fn look_ahead(&mut self, victim: &mut Victim) {
        let until = (victim.next + LOOK_AHEAD).min(self.superblock_units);
        while victim.seen < until {
            let first = self.splitter.ppn(victim.superblock, victim.seen);
            let mut mask = self.superblocks.valid_mask(first, self.move_units);
            victim.seen += self.move_units;
            while mask != 0 {
                self.l2p.prefetch(self.superblocks.lpn(Ppn(first.0 + mask.trailing_zeros())));
                mask &= mask - 1;
            }
        }
    }

    /// Brings units of a page to the controller; returns when they are there.
    fn fetch(
        &mut self,
        (superblock, offset): (u32, u32),
        units: u32,
        at: Nanos,
        array: &mut impl Media,
    ) -> Nanos {
        let place = self.place(superblock, offset);
        let at = at.max(self.undo.in_flash_at(superblock, place));
        let sensed = &mut self.collector.sensed[place.die as usize];
        if *sensed == Some(place.page) {
            return array.fetch_again(place.die, at, units);
        }
        *sensed = Some(place.page);
        self.counters.collection_senses += 1;
        array.fetch(place, at, units)
    }

    /// Writes the units of `mask`, counted from `first` on, to collection's frontier.
    fn rewrite(
        &mut self,
        cause: Cause,
        (first, mut mask): (Ppn, u64),
        mut ready: Nanos,
        array: &mut impl Media,
    ) {
        *self.counters.moves(cause) += u64::from(mask.count_ones());
        while mask != 0 {
            if self.frontiers.of(Stream::Moves).is_full() {
                ready = self.open(Stream::Moves, ready, array);
            }
            let most = mask.count_ones();
            let slot = self.frontiers.of(Stream::Moves).take(Stream::Moves, most, &self.splitter);
            for unit in 0..slot.units {
                let old = Ppn(first.0 + mask.trailing_zeros());
                let lpn = self.superblocks.lpn(old);
                mask &= mask - 1;
                let ppn = Ppn(slot.ppn.0 + unit);
                self.superblocks.assign(slot.superblock, ppn, lpn);
                self.l2p.set(lpn, ppn);
                self.undo.note(slot.log, slot.offset + unit, Some(old), false);
            }
            let host_units = self.settle(cause, &slot, ready, array);
            self.collector.host_units_filled += host_units;
        }
    }
}
