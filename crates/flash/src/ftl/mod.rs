//! The flash translation layer: where units are stored, and which superblocks are collected when.
//!
//! `UnitStore` has the maps, the superblocks and the write path. `Collector` reclaims space in it.
//! `Ftl` serves the host with both.

mod gc;
mod map;
mod placement;
mod relocate;
mod store;
mod victim;

use ssdlab_time::Nanos;

use gc::Collector;
pub use map::Lpn;
use map::MapCache;
pub use placement::Hint;
use placement::{Lane, Packed};
use store::UnitStore;
pub use store::{LastWrite, Location, LostUnit, Service, Superblock, SuperblockState, Wear};

use crate::config::Profile;
use crate::counters::Cause;
use crate::nand::{Media, Move, Untimed};

/// The flash translation layer of one drive: page mapping.
///
/// Modelled: frontiers for the host and for collection, each filling a superblock, according to
/// `placement`; a buffer that accepts writes at once and is drained in whole multi-plane pages;
/// padding by a flush; collection paced by the host's writes.
///
/// Not modelled: read disturb; merging of two writes to one unit that are both still in the buffer
/// (both are programmed), except of writes in order that each cover a part (`merges_writes`).
///
/// Differs from hardware: a unit gets its address when it enters the buffer, not when it leaves.
#[derive(Clone, Debug)]
pub struct Ftl {
    pub store: UnitStore,
    pub collector: Collector,
    /// `None` if the whole map is in memory.
    map_cache: Option<MapCache>,
    /// The unit announced last.
    announced: Lpn,
}

impl Ftl {
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let mut store = UnitStore::new(profile, seed);
        store.open_frontiers(&mut Untimed);
        Self {
            store,
            collector: Collector::new(profile, seed),
            map_cache: MapCache::of_profile(profile),
            announced: Lpn(0),
        }
    }

    /// Counts units read and pages sensed for the host.
    pub fn count_read(&mut self, units: u64, senses: u64) {
        self.store.counters.host_reads += units;
        self.store.counters.host_senses += senses;
    }

    /// Prefetches the map entries that a coming request for this unit will use.
    pub fn announce(&mut self, lpn: Lpn, overwrites: bool) {
        self.store.l2p.prefetch(lpn);
        // This unit's own entry has not arrived yet; that of the unit announced before has.
        if overwrites && let Some(old) = self.store.l2p.get(self.announced) {
            self.store.superblocks.p2l.prefetch(old);
        }
        self.announced = lpn;
    }

    /// Begins a write command of `units` units, or parts of them.
    #[inline]
    pub fn begin_command(&mut self, units: u32) {
        if let Some(packed) = self.store.placement.packed() {
            packed.begin_command(units);
        }
    }

    /// Brings the map entry of a unit into memory; returns when it is there.
    #[inline]
    pub fn lookup(&mut self, lpn: Lpn, changes: bool, at: Nanos, media: &mut impl Media) -> Nanos {
        match &mut self.map_cache {
            Some(cache) => cache.lookup(lpn, changes, at, media, &mut self.store.counters),
            None => at,
        }
    }

    /// Accepts a unit whose data reaches the controller at `ready`; returns when the buffer has it.
    #[inline]
    pub fn write(&mut self, lpn: Lpn, hint: Hint, ready: Nanos, media: &mut impl Media) -> Nanos {
        let mut admitted = self.store.buffer.admit(ready);
        self.store.counters.host_writes += 1;
        self.lookup(lpn, true, admitted, media);
        let slc = self.store.slc_lane(admitted, media);
        let mut lane = slc.unwrap_or_else(|| self.store.host_lane(lpn, hint));
        if let Some(pieces) = self.store.placement.packed().and_then(Packed::take_pieces) {
            (lane, admitted) = self.pack(&pieces, lane, admitted, media);
        }
        if self.store.frontiers.of(lane).is_full() {
            (lane, admitted) = self.room_for_host(lane, admitted, media);
        }
        let programmed = self.store.append(lane, lpn, admitted, media);
        if programmed > 0 {
            let cache = self.store.slc.as_ref().filter(|_| slc.is_some());
            let owed = cache.map_or(programmed, |cache| cache.units_owed(programmed));
            if owed > 0 {
                self.collector.collect_in_step(&mut self.store, owed, admitted, media);
            }
        }
        admitted
    }

    /// Merges a write of a part of a unit with that unit, which is in the buffer.
    pub fn merge(&mut self, lpn: Lpn) {
        let ppn = self.store.l2p.get(lpn).expect("a unit in the buffer is mapped");
        let (superblock, offset) = self.store.superblocks.splitter.superblock(ppn);
        self.store.undo.merged(superblock, offset);
    }

    /// Writes earlier pieces of a file again, to the page that its next unit goes to. Returns the
    /// lane for that unit, and when it can be written.
    fn pack(
        &mut self,
        pieces: &[Lpn],
        mut lane: Lane,
        mut at: Nanos,
        media: &mut impl Media,
    ) -> (Lane, Nanos) {
        for lpn in pieces {
            if self.store.frontiers.of(lane).is_full() {
                (lane, at) = self.room_for_host(lane, at, media);
            }
            // After making room, which may have moved the piece.
            let old = self.store.l2p.get(*lpn).expect("pieces to pack are mapped");
            let slot = self.store.take_slot(lane, 1);
            let (from, _) = self.store.superblocks.splitter.superblock(old);
            let (to, cause) = (slot.superblock, Cause::Packing);
            media.record_move(Move { from, to, units: 1, cause, at });
            self.store.map_copy(&slot, 0, *lpn, old);
            self.store.superblocks.invalidate(old);
            self.store.counters.packing_moves += 1;
            let programmed = self.store.write_slot(Cause::Packing, &slot, at, media);
            self.collector.add_host_units(programmed);
        }
        (lane, at)
    }

    /// A lane for a host unit whose own lane is full, and when it can be written: the lane of
    /// another die, or the same lane in a newly opened superblock.
    fn room_for_host(&mut self, lane: Lane, at: Nanos, media: &mut impl Media) -> (Lane, Nanos) {
        let mut found = self.store.frontiers.with_room(lane);
        if found.is_none() {
            self.collector.make_room(&mut self.store, at, media);
            // If relocations share the host's frontier, making room may have opened it.
            found = self.store.frontiers.with_room(lane);
        }
        let Some(found) = found else { return (lane, self.store.open(lane, at, media)) };
        if found != lane {
            self.store.counters.displaced_writes += 1;
            self.store.placement.displaced(found);
        }
        (found, at)
    }

    pub fn trim(&mut self, lpn: Lpn, at: Nanos, media: &mut impl Media) {
        self.store.counters.host_trims += 1;
        self.unmap(lpn, at, media);
    }

    /// Accepts a unit of zeros, which is recorded in the map only; returns when it is.
    ///
    /// Differs from hardware: a power cut never loses such a write, nor a trim.
    pub fn elide(&mut self, lpn: Lpn, ready: Nanos, media: &mut impl Media) -> Nanos {
        self.store.counters.host_writes += 1;
        self.store.counters.host_writes_elided += 1;
        self.unmap(lpn, ready, media)
    }

    /// Removes a unit from the map; returns when its map entry was in memory.
    fn unmap(&mut self, lpn: Lpn, at: Nanos, media: &mut impl Media) -> Nanos {
        let changed = self.lookup(lpn, true, at, media);
        if let Some(old) = self.store.l2p.clear(lpn) {
            self.store.superblocks.invalidate(old);
        }
        changed
    }

    /// Pads the partly filled pages of the host; returns when all host data is in flash.
    pub fn drain(&mut self, at: Nanos, media: &mut impl Media) -> Nanos {
        let padded = self.store.pad_host_lanes(at, media);
        if padded > 0 {
            // Padding uses up room like host writes, so it owes the same relocations. Only after
            // all lanes are padded: relocations to the host's frontier would open another page.
            self.collector.collect_in_step(&mut self.store, padded, at, media);
        }
        self.store.buffer.empty_at.max(at)
    }

    /// Continues a stream in another superblock: pads the partly filled pages of the old one and
    /// leaves the rest of it empty. False if the old one is unused or full, or no other is left.
    pub fn renew_stream(&mut self, stream: u32, at: Nanos, media: &mut impl Media) -> bool {
        if self.store.frontiers.room(stream) == 0 || self.store.retirement.service.read_only {
            return false;
        }
        let lane = Lane(stream);
        let skipped = self.store.pad(lane, at, media) + self.store.give_up_rest(lane);
        if skipped > 0 {
            // Skipped units use up room like host writes, so they owe the same relocations.
            self.collector.collect_in_step(&mut self.store, skipped, at, media);
        }
        if self.store.frontiers.of(lane).is_full() {
            self.room_for_host(lane, at, media);
        }
        skipped > 0
    }

    /// Cuts the power at `now` and restores it; returns the lost units by number. `protected`:
    /// capacitors save the buffer.
    pub fn power_cut(
        &mut self,
        protected: bool,
        now: Nanos,
        media: &mut impl Media,
    ) -> Vec<LostUnit> {
        let lost = self.store.power_cut(protected, now, media);
        self.collector.recover(&mut self.store, now, media);
        lost
    }
}
