//! The policy: which unit goes where, what is collected when, what waits in the buffer.

mod buffer;
mod closed;
mod erase;
mod gc;
mod look_up;
mod map;
mod placement;
mod power;
mod relocate;
mod retire;
mod slc;
mod superblock;
mod undo;
mod victim;
mod wear;

use ssdlab_time::Nanos;

pub use crate::cause::Cause;
use buffer::WriteBuffer;
use erase::Emptied;
use gc::Collector;
use look_up::map_cache;
pub use map::Lpn;
use map::{L2p, MapCache};
pub use placement::Hint;
use placement::{Filling, Frontiers, Lane, Placement, Policy, Sites, Slot};
pub use power::LostUnit;
use retire::Lives;
pub use retire::Service;
use slc::SlcCache;
use superblock::Superblocks;
use undo::Undo;

use crate::config::Profile;
use crate::counters::Counters;
use crate::inside::Superblock;
use crate::nand::{Media, Place, Ppn, Splitter, Untimed};

/// Where a unit's current content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Never written, or trimmed.
    Unmapped,
    /// In the controller's memory: its page is not full yet, or being programmed.
    Buffered,
    /// In flash, at this address and place.
    Flash(Ppn, Place),
}

impl Location {
    /// The address, of what is in flash.
    #[inline]
    pub fn ppn(self) -> Option<Ppn> {
        if let Self::Flash(ppn, _) = self { Some(ppn) } else { None }
    }
}

/// The flash translation layer of one drive: page mapping.
///
/// Modelled: frontiers for the host and for collection, each filling a superblock, as `placement`
/// says; a buffer that takes writes at once and is drained by whole multi-plane pages; padding by
/// a flush; collection paced by the host's writing.
///
/// Not modelled: read disturb; merging of two writes to one unit that are both still in the buffer
/// (both are programmed).
///
/// Differs from hardware: a unit gets its address when it enters the buffer, not when it leaves.
#[derive(Clone, Debug)]
pub struct Ftl {
    splitter: Splitter,
    superblock_units: u32,
    /// Units of a victim that are looked at and moved together.
    move_units: u32,
    dies: u32,
    l2p: L2p,
    /// Absent where the whole map is in memory.
    map_cache: Option<MapCache>,
    page_units: u32,
    superblocks: Superblocks,
    /// Absent where the drive has none.
    slc: Option<SlcCache>,
    /// Absent where blocks never fail.
    lives: Option<Lives>,
    service: Service,
    placement: Policy,
    frontiers: Frontiers,
    undo: Undo,
    collector: Collector,
    emptied: Emptied,
    buffer: WriteBuffer,
    /// When the last program of host data ends, and the last one of any data.
    host_programs_end: Nanos,
    programs_end: Nanos,
    counters: Counters,
    announced: Lpn,
}

impl Ftl {
    /// The translation layer of an empty drive.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let geometry = &profile.geometry;
        let run_units = geometry.multi_page_units().min(geometry.chunk_units);
        let frontiers = Frontiers::new(profile);
        let mut ftl = Self {
            splitter: Splitter::new(geometry),
            superblock_units: geometry.superblock_units(),
            move_units: relocate::units_at_once(run_units),
            dies: geometry.dies(),
            l2p: L2p::new(profile.logical_units()),
            map_cache: map_cache(profile),
            page_units: geometry.page_units,
            superblocks: Superblocks::new(profile),
            slc: SlcCache::new(profile),
            lives: Lives::new(profile, seed),
            service: Service::new(profile),
            placement: Policy::new(profile, &frontiers),
            frontiers,
            undo: Undo::new(geometry),
            collector: Collector::new(profile.collection, geometry.dies(), seed),
            emptied: Emptied::default(),
            buffer: WriteBuffer::new(profile.buffer.size / geometry.unit_bytes()),
            host_programs_end: Nanos::ZERO,
            programs_end: Nanos::ZERO,
            counters: Counters { unit_bytes: geometry.unit_bytes(), ..Counters::default() },
            announced: Lpn(0),
        };
        for lane in ftl.frontiers.lanes() {
            if ftl.frontiers.opens_at_once(lane) && ftl.frontiers.is_filled(lane) {
                ftl.open(lane, Nanos::ZERO, &mut Untimed);
            }
        }
        ftl
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Erases of each superblock.
    pub fn erases(&self) -> impl Iterator<Item = u32> + Clone {
        self.superblocks.erases()
    }

    /// Superblocks in service, and whether writes are still taken.
    pub fn service(&self) -> Service {
        self.service
    }

    /// All superblocks, by number.
    pub fn superblocks(&self) -> &[Superblock] {
        self.superblocks.all()
    }

    /// Units that a stream's open superblock still takes.
    pub fn stream_room(&self, stream: u32) -> u32 {
        self.frontiers.room(stream)
    }

    /// Counts units read and pages sensed for the host.
    pub fn count_read(&mut self, units: u64, senses: u64) {
        self.counters.host_reads += units;
        self.counters.host_senses += senses;
    }

    /// Counts bytes written by the host.
    pub fn count_written(&mut self, bytes: u64) {
        self.counters.host_write_bytes += bytes;
    }

    /// Fetches what a request for this unit will look up.
    pub fn announce(&mut self, lpn: Lpn, overwrites: bool) {
        self.l2p.prefetch(lpn);
        // Its own entry is not there yet; that of the unit announced before is.
        if overwrites && let Some(old) = self.l2p.get(self.announced) {
            self.superblocks.prefetch(old);
        }
        self.announced = lpn;
    }

    /// Hears that a command writes so many units.
    #[inline]
    pub fn begin_command(&mut self, units: u32) {
        self.placement.begins(units);
    }

    /// Takes a unit whose data is with the controller at `ready`; returns when the buffer has it.
    #[inline]
    pub fn write(&mut self, lpn: Lpn, hint: Hint, ready: Nanos, array: &mut impl Media) -> Nanos {
        let mut admitted = self.buffer.admit(ready);
        self.counters.host_writes += 1;
        self.look_up(lpn, true, admitted, array);
        let slc = self.slc_lane(admitted, array);
        let sites = Sites { l2p: &self.l2p, splitter: &self.splitter };
        let mut lane = slc.unwrap_or_else(|| self.placement.host(lpn, hint, sites));
        if let Some(units) = self.placement.along() {
            (lane, admitted) = self.bring_along(&units, lane, admitted, array);
        }
        if self.frontiers.of(lane).is_full() {
            (lane, admitted) = self.room_for_host(lane, admitted, array);
        }
        let programmed = self.put(lane, lpn, admitted, array);
        if programmed > 0 && slc.is_none() {
            self.collect_in_step(programmed, admitted, array);
        }
        admitted
    }

    /// Forgets a unit's content.
    pub fn trim(&mut self, lpn: Lpn, at: Nanos, array: &mut impl Media) {
        self.counters.host_trims += 1;
        self.forget(lpn, at, array);
    }

    /// Takes a unit of zeros, which is kept in the map alone; returns when it is there.
    ///
    /// Differs from hardware: a power cut loses no such write, as it loses no trim.
    pub fn elide(&mut self, lpn: Lpn, ready: Nanos, array: &mut impl Media) -> Nanos {
        self.counters.host_writes += 1;
        self.counters.host_writes_elided += 1;
        self.forget(lpn, ready, array)
    }

    /// Leaves a unit without an address; returns when the map's entry was there to be changed.
    fn forget(&mut self, lpn: Lpn, at: Nanos, array: &mut impl Media) -> Nanos {
        let changed = self.look_up(lpn, true, at, array);
        if let Some(old) = self.l2p.clear(lpn) {
            self.invalidate(old);
        }
        changed
    }

    /// Closes the pages that host data is waiting in and returns when all of it is in flash.
    pub fn drain(&mut self, at: Nanos, array: &mut impl Media) -> Nanos {
        self.placement.flushed();
        if let Some(slc) = self.frontiers.slc() {
            self.pad(slc, at, array);
        }
        let lanes = self.frontiers.host_lanes();
        let programmed = lanes.map(|lane| self.pad(lane, at, array)).sum();
        if programmed > 0 {
            // Padding takes room as host writes do, and owes the same moves. After the loop: where
            // moves share the host's frontier they would open another page.
            self.collect_in_step(programmed, at, array);
        }
        self.host_programs_end.max(at)
    }

    /// Fills up the pages of a lane that are not full, so that they are programmed; returns with
    /// how many units.
    fn pad(&mut self, lane: Lane, at: Nanos, array: &mut impl Media) -> u32 {
        let mut padded = 0;
        while self.frontiers.of(lane).units_open() > 0 {
            let slot = self.frontiers.of(lane).take(lane, u32::MAX, &self.splitter);
            self.settle(Cause::Padding, &slot, at, array);
            padded += slot.units;
        }
        padded
    }

    /// A lane that takes a unit of the host whose own is full, and from when on: another die's, or
    /// its own in another superblock.
    fn room_for_host(&mut self, lane: Lane, at: Nanos, array: &mut impl Media) -> (Lane, Nanos) {
        let mut found = self.frontiers.with_room(lane);
        if found.is_none() {
            self.make_room(at, array);
            // Where moved units share the host's frontier, making room may have opened it.
            found = self.frontiers.with_room(lane);
        }
        let Some(found) = found else { return (lane, self.open(lane, at, array)) };
        if found != lane {
            self.counters.displaced_writes += 1;
            self.placement.displaced(found);
        }
        (found, at)
    }

    /// Goes on in an erased superblock, where a lane has filled its old one; returns since when.
    fn open(&mut self, lane: Lane, at: Nanos, array: &mut impl Media) -> Nanos {
        let (superblock, from) = self.take_free(at, array);
        self.superblocks.set_stream(superblock, self.frontiers.stream(lane));
        let log = self.undo.open(superblock, from);
        self.frontiers.open(lane, superblock, log);
        from
    }

    /// Where a unit's content is at `now`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a place that comes by way of memory stalls a read")]
    pub fn locate(&self, lpn: Lpn, now: Nanos) -> Location {
        let Some(ppn) = self.l2p.get(lpn) else { return Location::Unmapped };
        let (superblock, offset) = self.splitter.superblock(ppn);
        let place = self.place(superblock, offset);
        if self.undo.in_flash_at(superblock, place) > now {
            Location::Buffered
        } else {
            Location::Flash(ppn, place)
        }
    }

    /// Where a superblock's unit lies.
    #[inline]
    fn place(&self, superblock: u32, offset: u32) -> Place {
        let slc = self.slc.is_some() && self.superblocks.is_slc(superblock);
        Place { slc, ..self.splitter.place(superblock, offset) }
    }

    fn invalidate(&mut self, ppn: Ppn) {
        let (superblock, _) = self.splitter.superblock(ppn);
        self.superblocks.invalidate(superblock, ppn);
    }

    /// Writes a unit of the host to a lane that has room. Returns the host's units of
    /// the page that this filled, 0 if it filled none.
    fn put(&mut self, lane: Lane, lpn: Lpn, ready: Nanos, array: &mut impl Media) -> u32 {
        let slot = self.frontiers.of(lane).take(lane, 1, &self.splitter);
        self.superblocks.assign(slot.superblock, slot.ppn, lpn);
        let old = self.l2p.replace(lpn, slot.ppn);
        self.undo.note(slot.log, slot.offset, old, true);
        if let Some(old) = old {
            self.invalidate(old);
        }
        self.settle(Cause::Host, &slot, ready, array)
    }

    /// Adds units to the page of their slot and programs it when it is full. Returns the host's
    /// units of the programmed page, and what it made be written again.
    #[inline]
    fn settle(&mut self, cause: Cause, slot: &Slot, ready: Nanos, array: &mut impl Media) -> u32 {
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
            self.undo.filled(slot.log);
        }
        self.program(slot, &page, array);
        self.erase_emptied(page.ready, array);
        page.of(Cause::Host) + page.of(Cause::Packing)
    }

    fn program(&mut self, slot: &Slot, page: &Filling, array: &mut impl Media) {
        let end = array.program(slot.place, page.ready);
        self.undo.programmed(slot.log, slot.place, end);
        self.programs_end = self.programs_end.max(end);
        let host = page.of(Cause::Host);
        self.counters.nand_host_writes += u64::from(host);
        self.counters.nand_collection_writes += u64::from(page.of(Cause::Collection));
        self.counters.nand_wear_writes += u64::from(page.of(Cause::Wear));
        self.counters.nand_folding_writes += u64::from(page.of(Cause::Folding));
        self.counters.nand_packing_writes += u64::from(page.of(Cause::Packing));
        self.counters.nand_padding_writes += u64::from(page.of(Cause::Padding));
        if host > 0 {
            self.buffer.release_at(end, host);
            self.host_programs_end = self.host_programs_end.max(end);
        }
    }

    /// Checks that both maps agree and all counts add up; panics where they do not.
    ///
    /// Looks at every mapping unit: for tests.
    pub fn assert_consistent(&self) {
        let mut mapped = 0;
        for lpn in self.l2p.lpns() {
            if let Some(ppn) = self.l2p.get(lpn) {
                mapped += 1;
                let (superblock, _) = self.splitter.superblock(ppn);
                assert!(self.superblocks.is_valid(ppn), "{lpn:?} maps to an invalid unit");
                assert_eq!(self.superblocks.lpn(ppn), lpn, "L2P and P2L disagree");
                assert!(!self.superblocks.is_free(superblock), "{lpn:?} maps to an erased block");
            }
        }
        assert_eq!(self.superblocks.valid_counted(), mapped, "valid bits and mapped units");
        assert_eq!(self.superblocks.valid_summed(), mapped, "valid counts and mapped units");
        let counters = &self.counters;
        let host = counters.nand_host_writes + self.frontiers.waiting(Cause::Host);
        let host = host + counters.host_writes_lost + counters.host_writes_elided;
        assert_eq!(host, counters.host_writes, "host units in flash and in the buffer");
        let moved = counters.nand_collection_writes + self.frontiers.waiting(Cause::Collection);
        assert_eq!(moved, counters.collection_moves, "moved units in flash and on their way");
        let levelled = counters.nand_wear_writes + self.frontiers.waiting(Cause::Wear);
        assert_eq!(levelled, counters.wear_moves, "levelled units in flash and on their way");
        let folded = counters.nand_folding_writes + self.frontiers.waiting(Cause::Folding);
        assert_eq!(folded, counters.folding_moves, "folded units in flash and on their way");
        let packed = counters.nand_packing_writes + self.frontiers.waiting(Cause::Packing);
        assert_eq!(packed, counters.packing_moves, "packed units in flash and on their way");
    }
}
