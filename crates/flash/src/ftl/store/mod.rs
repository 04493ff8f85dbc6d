//! `UnitStore`: the maps, the superblocks and the write path of the translation layer.

mod buffer;
mod closed;
mod erase;
mod power;
mod retire;
mod slc;
mod superblocks;
mod undo;

use ssdlab_time::Nanos;

use buffer::WriteBuffer;
pub use closed::Closed;
use erase::Emptied;
pub use power::LostUnit;
use retire::Retirement;
pub use retire::Service;
pub use slc::{FREE_KEPT, SlcCache};
use superblocks::Superblocks;
pub use superblocks::{LastWrite, Superblock, SuperblockState, Wear};
use undo::Undo;

use super::map::{L2p, Lpn};
use super::placement::{Frontiers, Hint, Lane, OpenPage, Policy, Slot, UnitLocator};
use crate::config::Profile;
use crate::counters::{Cause, Counters};
use crate::nand::{Media, Place, Ppn};

/// Where a unit's current content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Never written, or trimmed.
    Unmapped,
    /// In the controller's memory: its page is partly filled or being programmed.
    Buffered,
    /// In flash, at this address and place.
    Flash(Ppn, Place),
}

impl Location {
    /// The address, if the unit is in flash.
    #[inline]
    pub fn ppn(self) -> Option<Ppn> {
        if let Self::Flash(ppn, _) = self { Some(ppn) } else { None }
    }
}

/// The units of a drive: which superblocks hold them, and how they are written there.
///
/// Units are appended at frontiers. A page is programmed when it is full, a superblock is closed
/// when it is full, and erased when it holds no valid unit.
#[derive(Clone, Debug)]
pub struct UnitStore {
    pub superblock_units: u32,
    dies: u32,
    pub l2p: L2p,
    pub superblocks: Superblocks,
    emptied: Emptied,
    /// `None` if the drive has no SLC cache.
    pub slc: Option<SlcCache>,
    pub retirement: Retirement,
    pub placement: Policy,
    pub frontiers: Frontiers,
    pub buffer: WriteBuffer,
    pub undo: Undo,
    pub counters: Counters,
}

impl UnitStore {
    /// An empty drive without open superblocks.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let geometry = &profile.geometry;
        let frontiers = Frontiers::new(profile);
        Self {
            superblock_units: geometry.superblock_units(),
            dies: geometry.dies(),
            l2p: L2p::new(profile.logical_units()),
            superblocks: Superblocks::new(profile),
            emptied: Emptied::default(),
            slc: SlcCache::new(profile),
            retirement: Retirement::new(profile, seed),
            placement: Policy::new(profile, &frontiers),
            frontiers,
            buffer: WriteBuffer::new(profile.buffer.size / geometry.unit_bytes()),
            undo: Undo::new(geometry),
            counters: Counters { unit_bytes: geometry.unit_bytes(), ..Counters::default() },
        }
    }

    /// Opens a superblock for each frontier that starts with one.
    pub fn open_frontiers(&mut self, media: &mut impl Media) {
        for lane in self.frontiers.lanes() {
            if self.frontiers.opens_at_once(lane) && self.frontiers.is_filled(lane) {
                self.open(lane, Nanos::ZERO, media);
            }
        }
    }

    /// Where a unit's content is at `now`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "returning a place through memory slows reads down")]
    pub fn locate(&self, lpn: Lpn, now: Nanos) -> Location {
        let Some(ppn) = self.l2p.get(lpn) else { return Location::Unmapped };
        let (superblock, offset) = self.superblocks.splitter.superblock(ppn);
        let place = self.superblocks.place(superblock, offset);
        if self.undo.in_flash_at(superblock, place) > now {
            Location::Buffered
        } else {
            Location::Flash(ppn, place)
        }
    }

    /// The lane for a unit that the host writes, without an SLC cache.
    #[inline]
    pub fn host_lane(&mut self, lpn: Lpn, hint: Hint) -> Lane {
        self.placement.host(
            lpn,
            hint,
            UnitLocator { l2p: &self.l2p, splitter: &self.superblocks.splitter },
        )
    }

    /// Takes up to `count` consecutive addresses of a lane that has room.
    #[inline]
    pub fn take_slot(&mut self, lane: Lane, count: u32) -> Slot {
        self.frontiers.of(lane).take(lane, count, &self.superblocks.splitter)
    }

    /// Writes a host unit to a lane that has room. Returns the host units of the page that this
    /// filled, 0 if none was filled.
    pub fn append(&mut self, lane: Lane, lpn: Lpn, ready: Nanos, media: &mut impl Media) -> u32 {
        let slot = self.take_slot(lane, 1);
        self.superblocks.assign(slot.superblock, slot.ppn, lpn);
        let old = self.l2p.replace(lpn, slot.ppn);
        self.undo.record(slot.undo_log, slot.offset, old, true);
        if let Some(old) = old {
            self.superblocks.invalidate(old);
        }
        self.write_slot(Cause::Host, &slot, ready, media)
    }

    /// Maps a unit that is copied from `old` to the slot's address number `index`.
    #[inline]
    pub fn map_copy(&mut self, slot: &Slot, index: u32, lpn: Lpn, old: Ppn) {
        let ppn = Ppn(slot.ppn.0 + index);
        self.superblocks.assign(slot.superblock, ppn, lpn);
        self.l2p.set(lpn, ppn);
        self.undo.record(slot.undo_log, slot.offset + index, Some(old), false);
    }

    /// Adds a slot's units to their page and programs the page if it is full. Returns the host
    /// units of the programmed page, including those rewritten by packing.
    #[inline]
    pub fn write_slot(
        &mut self,
        cause: Cause,
        slot: &Slot,
        ready: Nanos,
        media: &mut impl Media,
    ) -> u32 {
        let frontier = self.frontiers.of(slot.lane);
        frontier.fill(slot, cause, ready);
        if !slot.ends_run {
            return 0;
        }
        self.placement.ended_run(slot);
        if !slot.fills_page {
            return 0;
        }
        let page = frontier.take_page(slot.place.die);
        if frontier.is_full() && self.frontiers.is_filled(slot.lane) {
            self.close(slot.superblock);
            self.undo.filled(slot.undo_log);
        }
        self.program(slot, &page, media);
        self.erase_emptied(page.ready, media);
        page.of(Cause::Host) + page.of(Cause::Packing)
    }

    fn program(&mut self, slot: &Slot, page: &OpenPage, media: &mut impl Media) {
        let end = media.program(slot.place, page.ready);
        self.undo.programmed(slot.undo_log, slot.place, end);
        let (cause, host_writes) = (page.main_cause(), self.counters.host_writes);
        self.superblocks.last_writes[slot.superblock as usize] =
            Some(LastWrite { cause, host_writes });
        let host = page.of(Cause::Host);
        self.counters.nand_host_writes += u64::from(host);
        self.counters.nand_collection_writes += u64::from(page.of(Cause::Collection));
        self.counters.nand_wear_writes += u64::from(page.of(Cause::Wear));
        self.counters.nand_folding_writes += u64::from(page.of(Cause::Folding));
        self.counters.nand_packing_writes += u64::from(page.of(Cause::Packing));
        self.counters.nand_padding_writes += u64::from(page.of(Cause::Padding));
        if host > 0 {
            self.buffer.release_at(end, host);
        }
    }

    /// Fills the partly filled pages of a lane with padding, so that they are programmed; returns
    /// the number of padding units.
    pub fn pad(&mut self, lane: Lane, at: Nanos, media: &mut impl Media) -> u32 {
        let mut padded = 0;
        while self.frontiers.of(lane).open_units > 0 {
            let slot = self.take_slot(lane, u32::MAX);
            self.write_slot(Cause::Padding, &slot, at, media);
            padded += slot.units;
        }
        padded
    }

    /// Pads all pages that hold host data. Returns the units for which the host owes relocations:
    /// the padding, and if the SLC cache is folded while the host writes, the pages padded there.
    pub fn pad_host_lanes(&mut self, at: Nanos, media: &mut impl Media) -> u32 {
        if let Some(packed) = self.placement.packed() {
            packed.flushed();
        }
        let mut owed = 0;
        if let Some(lane) = self.frontiers.slc {
            let units = self.frontiers.of(lane).open_units + self.pad(lane, at, media);
            owed = self.slc.as_ref().map_or(0, |cache| cache.units_owed(units));
        }
        owed + self.frontiers.host_lanes().map(|lane| self.pad(lane, at, media)).sum::<u32>()
    }

    /// Opens an erased superblock for a lane whose old one is full; returns when it can be written.
    pub fn open(&mut self, lane: Lane, at: Nanos, media: &mut impl Media) -> Nanos {
        let (superblock, from) = self.take_free(at, media);
        self.superblocks.set_stream(superblock, self.frontiers.stream(lane));
        let undo_log = self.undo.open(superblock, from);
        self.frontiers.open(lane, superblock, undo_log);
        from
    }

    /// Leaves the rest of a lane's superblock empty and closes it; returns the number of units
    /// left empty. An unused superblock stays open.
    pub fn give_up_rest(&mut self, lane: Lane) -> u32 {
        let frontier = self.frontiers.of(lane);
        let (superblock, undo_log) = (frontier.superblock, frontier.undo_log);
        let left = frontier.give_up();
        if left > 0 {
            self.close(superblock);
            self.undo.filled(undo_log);
        }
        left
    }

    /// Makes a full superblock a possible victim, or hands it to the SLC cache that it belongs to.
    pub fn close(&mut self, superblock: u32) {
        match &mut self.slc {
            Some(cache) if self.superblocks.is_slc(superblock) => {
                self.superblocks.close_slc(superblock);
                cache.add_full(superblock);
            }
            _ => self.superblocks.close(superblock, self.counters.host_writes),
        }
    }

    /// The lane of the SLC cache, if the cache takes the next host unit.
    #[inline]
    pub fn slc_lane(&mut self, at: Nanos, media: &mut impl Media) -> Option<Lane> {
        let lane = self.frontiers.slc?;
        (!self.frontiers.of(lane).is_full() || self.open_slc(lane, at, media)).then_some(lane)
    }

    /// Opens another superblock for the SLC cache, if it may have one.
    fn open_slc(&mut self, lane: Lane, at: Nanos, media: &mut impl Media) -> bool {
        let Some(cache) = &mut self.slc else { return false };
        let emptied = if cache.folds_while_writing() { self.emptied.free() } else { 0 };
        if !cache.can_open(self.superblocks.free_count() + emptied) {
            return false;
        }
        let (superblock, from) = match cache.open() {
            Some(own) => (own, at),
            None => self.take_free(at, media),
        };
        self.superblocks.open_slc(superblock);
        let undo_log = self.undo.open(superblock, from);
        self.frontiers.open(lane, superblock, undo_log);
        true
    }

    /// Whether an SLC cache borrows superblocks, so that folding it makes room.
    pub fn slc_borrows(&self) -> bool {
        self.slc.as_ref().is_some_and(SlcCache::borrows)
    }

    /// Checks that both maps agree and all counts add up; panics if they do not.
    ///
    /// Looks at every mapping unit: for tests.
    pub fn assert_consistent(&self) {
        let (mut mapped, p2l) = (0, &self.superblocks.p2l);
        for lpn in self.l2p.lpns() {
            if let Some(ppn) = self.l2p.get(lpn) {
                mapped += 1;
                let (superblock, _) = self.superblocks.splitter.superblock(ppn);
                assert!(p2l.is_valid(ppn), "{lpn:?} maps to an invalid unit");
                assert_eq!(p2l.lpn(ppn), lpn, "L2P and P2L disagree");
                assert!(!self.superblocks.is_free(superblock), "{lpn:?} maps to an erased block");
            }
        }
        assert_eq!(p2l.valid_count(), mapped, "valid bits and mapped units");
        assert_eq!(self.superblocks.valid_sum(), mapped, "valid counts and mapped units");
        let Counters { host_writes_lost, host_writes_elided, .. } = self.counters;
        let counters = &self.counters;
        for (cause, programmed, expected) in [
            (
                Cause::Host,
                counters.nand_host_writes + host_writes_lost + host_writes_elided,
                counters.host_writes,
            ),
            (Cause::Collection, counters.nand_collection_writes, counters.collection_moves),
            (Cause::Wear, counters.nand_wear_writes, counters.wear_moves),
            (Cause::Folding, counters.nand_folding_writes, counters.folding_moves),
            (Cause::Packing, counters.nand_packing_writes, counters.packing_moves),
        ] {
            let accounted = programmed + self.frontiers.waiting(cause);
            assert_eq!(accounted, expected, "{cause:?}: units in flash and in the buffer");
        }
    }
}
