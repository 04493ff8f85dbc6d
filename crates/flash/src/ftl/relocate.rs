//! How to collect: fetch the victim's next valid units and write them to collection's frontier.

use ssdlab_time::Nanos;

use super::gc::{Collector, Victim};
use super::placement::{Lane, Origin, Slot};
use super::store::UnitStore;
use crate::counters::Cause;
use crate::nand::{Media, Move, Place, Ppn};

/// The number of units ahead of relocation whose map entries are prefetched.
const PREFETCH_UNITS: u32 = 48;

/// Valid units of one run that are relocated: those of `mask`, counted from `first`.
#[derive(Clone, Copy)]
struct Relocated {
    cause: Cause,
    first: Ppn,
    mask: u64,
    lane: Lane,
    superblock: u32,
}

impl Collector {
    /// Relocates the victim's next valid units, all of one page; returns their number, and when
    /// they were in the controller.
    ///
    /// A page is sensed once even if several of its runs are relocated, unless collection senses
    /// another page of that die in between.
    pub(super) fn relocate_next(
        &mut self,
        store: &mut UnitStore,
        victim: &mut Victim,
        at: Nanos,
        media: &mut impl Media,
    ) -> (u32, Nanos) {
        loop {
            let start = victim.next;
            assert!(start < store.superblock_units, "a victim with valid units has a next one");
            victim.next += self.group_units;
            self.prefetch_map(store, victim);
            let first = store.superblocks.splitter.ppn(victim.superblock, start);
            let mask = store.superblocks.p2l.valid_mask(first, self.group_units);
            if mask != 0 {
                let place = store.superblocks.place(victim.superblock, start);
                let at = at.max(store.undo.in_flash_at(victim.superblock, place));
                let ready = self.fetch(store, place, mask.count_ones(), at, media);
                store.superblocks.invalidate_mask(victim.superblock, first, mask);
                let lane =
                    store.placement.relocated(Origin { stream: victim.stream, die: place.die });
                let relocated = Relocated {
                    cause: victim.cause,
                    first,
                    mask,
                    lane,
                    superblock: victim.superblock,
                };
                self.rewrite(store, relocated, ready, media);
                return (mask.count_ones(), ready);
            }
        }
    }

    /// Prefetches the map entries of units that will be relocated soon: they are scattered over
    /// the map, and cache misses would be most of the time of a relocation.
    fn prefetch_map(&self, store: &UnitStore, victim: &mut Victim) {
        let until = (victim.next + PREFETCH_UNITS).min(store.superblock_units);
        let p2l = &store.superblocks.p2l;
        while victim.prefetched < until {
            let first = store.superblocks.splitter.ppn(victim.superblock, victim.prefetched);
            let mut mask = p2l.valid_mask(first, self.group_units);
            victim.prefetched += self.group_units;
            while mask != 0 {
                store.l2p.prefetch(p2l.lpn(Ppn(first.0 + mask.trailing_zeros())));
                mask &= mask - 1;
            }
        }
    }

    /// Brings units of a page to the controller; returns when they are there.
    fn fetch(
        &mut self,
        store: &mut UnitStore,
        place: Place,
        units: u32,
        at: Nanos,
        media: &mut impl Media,
    ) -> Nanos {
        let sensed = &mut self.sensed[place.die as usize];
        if *sensed == Some(place.page) {
            return media.fetch_again(place.die, at, units);
        }
        *sensed = Some(place.page);
        store.counters.collection_senses += 1;
        media.fetch(place, at, units)
    }

    /// Writes units to the lane for relocated units.
    fn rewrite(
        &mut self,
        store: &mut UnitStore,
        relocated: Relocated,
        mut ready: Nanos,
        media: &mut impl Media,
    ) {
        let Relocated { cause, first, mut mask, lane, superblock } = relocated;
        *store.counters.moves(cause) += u64::from(mask.count_ones());
        while mask != 0 {
            let mut lane = lane;
            if store.frontiers.of(lane).is_full() {
                match store.frontiers.with_room(lane) {
                    Some(other) => lane = other,
                    None => ready = store.open(lane, ready, media),
                }
            }
            let slot = store.take_slot(lane, mask.count_ones());
            if lane != relocated.lane {
                store.counters.displaced_moves += u64::from(slot.units);
            }
            let Slot { superblock: to, units, .. } = slot;
            media.record_move(Move { from: superblock, to, units, cause, at: ready });
            for index in 0..slot.units {
                let old = Ppn(first.0 + mask.trailing_zeros());
                mask &= mask - 1;
                let lpn = store.superblocks.p2l.lpn(old);
                store.map_copy(&slot, index, lpn, old);
            }
            let host_units = store.write_slot(cause, &slot, ready, media);
            self.add_host_units(host_units);
        }
    }
}
