//! How to collect: fetch the victim's next valid units, write them to collection's frontier.

use ssdlab_time::Nanos;

use super::Ftl;
use super::gc::Victim;
use super::map::Lpn;
use super::placement::{Lane, Origin, Placement};
use crate::cause::Cause;
use crate::nand::{Media, Place, Ppn};

/// How many units of a victim are looked at together: the largest part of a run that fits into a
/// word of valid bits.
pub fn units_at_once(run_units: u32) -> u32 {
    (1..=64).rev().find(|units| run_units.is_multiple_of(*units)).expect("one divides all")
}

/// How many units of a victim are looked at before their turn.
const LOOK_AHEAD: u32 = 48;

/// Units of one run that are moved: those of `mask`, counted from `first` on.
#[derive(Clone, Copy)]
struct Moved {
    cause: Cause,
    first: Ppn,
    mask: u64,
    lane: Lane,
}

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
                let place = self.place(victim.superblock, start);
                let ready = self.fetch((victim.superblock, place), mask.count_ones(), at, array);
                self.superblocks.unassign(victim.superblock, first, mask);
                let origin = Origin { stream: victim.stream, die: place.die };
                let lane = self.placement.moved(origin);
                let moved = Moved { cause: victim.cause, first, mask, lane };
                self.rewrite(moved, ready, array);
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
        (superblock, place): (u32, Place),
        units: u32,
        at: Nanos,
        array: &mut impl Media,
    ) -> Nanos {
        let at = at.max(self.undo.in_flash_at(superblock, place));
        let sensed = &mut self.collector.sensed[place.die as usize];
        if *sensed == Some(place.page) {
            return array.fetch_again(place.die, at, units);
        }
        *sensed = Some(place.page);
        self.counters.collection_senses += 1;
        array.fetch(place, at, units)
    }

    /// Writes units to the lane of what is moved.
    fn rewrite(&mut self, moved: Moved, mut ready: Nanos, array: &mut impl Media) {
        let Moved { cause, first, mut mask, lane } = moved;
        *self.counters.moves(cause) += u64::from(mask.count_ones());
        while mask != 0 {
            let mut lane = lane;
            if self.frontiers.of(lane).is_full() {
                (lane, ready) = self.room_for_moves(lane, ready, array);
            }
            let slot = self.frontiers.of(lane).take(lane, mask.count_ones(), &self.splitter);
            if lane != moved.lane {
                self.counters.displaced_moves += u64::from(slot.units);
            }
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

    /// Writes earlier units of the host again, to the page that the next one goes to; returns the
    /// lane that took them, and from when on.
    pub(super) fn bring_along(
        &mut self,
        units: &[Lpn],
        mut lane: Lane,
        mut at: Nanos,
        array: &mut impl Media,
    ) -> (Lane, Nanos) {
        for lpn in units {
            if self.frontiers.of(lane).is_full() {
                (lane, at) = self.room_for_host(lane, at, array);
            }
            // After that: to make room they may have been moved.
            let old = self.l2p.get(*lpn).expect("what is brought along is mapped");
            let slot = self.frontiers.of(lane).take(lane, 1, &self.splitter);
            self.superblocks.assign(slot.superblock, slot.ppn, *lpn);
            self.l2p.set(*lpn, slot.ppn);
            self.undo.note(slot.log, slot.offset, Some(old), false);
            self.invalidate(old);
            self.counters.packing_moves += 1;
            let programmed = self.settle(Cause::Packing, &slot, at, array);
            self.collector.host_units_filled += programmed;
        }
        (lane, at)
    }

    /// A lane that takes units whose own is full, and from when on.
    fn room_for_moves(&mut self, lane: Lane, at: Nanos, array: &mut impl Media) -> (Lane, Nanos) {
        match self.frontiers.with_room(lane) {
            Some(other) => (other, at),
            None => (lane, self.open(lane, at, array)),
        }
    }
}
