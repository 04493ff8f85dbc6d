//! The policy: which unit goes where, what is collected when, what waits in the buffer.

mod buffer;
mod closed;
mod erase;
mod frontier;
mod gc;
mod map;
mod power;
mod relocate;
mod retire;
mod slc;
mod superblock;
mod undo;
mod victim;
mod wear;

use ssdlab_time::Nanos;

use buffer::WriteBuffer;
use erase::Emptied;
pub use frontier::Cause;
use frontier::{Filling, Frontiers, Slot, Stream};
use gc::Collector;
pub use map::Lpn;
use map::{L2p, MapCache};
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

/// The flash translation layer of one drive: page mapping with striped placement.
///
/// Modelled: one frontier for the host and one for collection, each filling a superblock along the
/// stripe; a buffer that takes writes at once and is drained by whole multi-plane pages; padding by
/// a flush; collection paced by the host's writing.
///
/// Not modelled: read disturb; merging of two writes to one unit that are both still in the buffer
/// (both are programmed).
///
/// Differs from hardware: a unit gets its address when it enters the buffer, not when it leaves.
#[derive(Debug)]
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

fn map_cache(profile: &Profile) -> Option<MapCache> {
    let geometry = &profile.geometry;
    let page_bytes = u64::from(geometry.page_units) * geometry.unit_bytes();
    let cached = profile.map_cache > 0;
    cached.then(|| MapCache::new(profile.map_cache, page_bytes, profile.logical_units()))
}

/// Where a page of the map lies: on a die by its number, in no superblock.
fn map_place(map_page: u32, dies: u32) -> Place {
    Place {
        die: map_page % dies,
        page: u32::MAX,
        page_in_block: 0,
        last_of_page: false,
        slc: false,
    }
}

impl Ftl {
    /// The translation layer of an empty drive.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let geometry = &profile.geometry;
        let run_units = geometry.multi_page_units().min(geometry.chunk_units);
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
            frontiers: Frontiers::new(profile),
            undo: Undo::new(geometry),
            collector: Collector::new(profile.collection, geometry.dies(), seed),
            emptied: Emptied::default(),
            buffer: WriteBuffer::new(profile.buffer.size / geometry.unit_bytes()),
            host_programs_end: Nanos::ZERO,
            programs_end: Nanos::ZERO,
            counters: Counters { unit_bytes: geometry.unit_bytes(), ..Counters::default() },
            announced: Lpn(0),
        };
        for stream in ftl.frontiers.streams().filter(|stream| *stream != Stream::Slc) {
            ftl.open(stream, Nanos::ZERO, &mut Untimed);
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

    /// Takes a unit whose data is with the controller at `ready`; returns when the buffer has it.
    pub fn write(&mut self, lpn: Lpn, ready: Nanos, array: &mut impl Media) -> Nanos {
        let mut admitted = self.buffer.admit(ready);
        self.counters.host_writes += 1;
        self.look_up(lpn, true, admitted, array);
        let stream = self.host_stream(admitted, array);
        if self.frontiers.of(stream).is_full() {
            self.make_room(admitted, array);
            // Where moved units share the host's frontier, making room may have opened it.
            if self.frontiers.of(stream).is_full() {
                admitted = self.open(stream, admitted, array);
            }
        }
        let programmed = self.put(stream, lpn, admitted, array);
        if programmed > 0 && stream == Stream::Host {
            self.collect_in_step(programmed, admitted, array);
        }
        admitted
    }

    /// Has the map's entry of a unit in memory; returns when it is there.
    #[inline]
    pub fn look_up(&mut self, lpn: Lpn, changes: bool, at: Nanos, array: &mut impl Media) -> Nanos {
        let Some(cache) = &mut self.map_cache else { return at };
        let access = cache.access(lpn.0, changes);
        if let Some(map_page) = access.write_back {
            self.counters.nand_mapping_writes += u64::from(self.page_units);
            array.program(map_place(map_page, self.dies), at);
        }
        let Some(map_page) = access.read else { return at };
        self.counters.mapping_senses += 1;
        array.fetch(map_place(map_page, self.dies), at, self.page_units)
    }

    /// Forgets a unit's content.
    pub fn trim(&mut self, lpn: Lpn, at: Nanos, array: &mut impl Media) {
        self.counters.host_trims += 1;
        self.look_up(lpn, true, at, array);
        if let Some(old) = self.l2p.clear(lpn) {
            self.invalidate(old);
        }
    }

    /// Closes the pages that host data is waiting in and returns when all of it is in flash.
    pub fn drain(&mut self, at: Nanos, array: &mut impl Media) -> Nanos {
        if self.slc.is_some() {
            self.pad(Stream::Slc, at, array);
        }
        let programmed = self.pad(Stream::Host, at, array);
        if programmed > 0 {
            // Padding takes room as host writes do, and owes the same moves. After the loop: where
            // moves share the host's frontier they would open another page.
            self.collect_in_step(programmed, at, array);
        }
        self.host_programs_end.max(at)
    }

    /// Fills up the pages of a stream that are not full, so that they are programmed; returns with
    /// how many units.
    fn pad(&mut self, stream: Stream, at: Nanos, array: &mut impl Media) -> u32 {
        let mut padded = 0;
        while self.frontiers.of(stream).units_open() > 0 {
            let slot = self.frontiers.of(stream).take(stream, u32::MAX, &self.splitter);
            self.settle(Cause::Padding, &slot, at, array);
            padded += slot.units;
        }
        padded
    }

    /// Goes on in an erased superblock, where a stream has filled its old one; returns since when.
    fn open(&mut self, stream: Stream, at: Nanos, array: &mut impl Media) -> Nanos {
        let (superblock, from) = self.take_free(at, array);
        let log = self.undo.open(superblock, from);
        self.frontiers.of(stream).open(superblock, log);
        from
    }

    /// Where a unit's content is at `now`.
    #[inline]
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

    /// Notes that a stream has filled its superblock, or that one is a possible victim again.
    fn close(&mut self, superblock: u32) {
        match &mut self.slc {
            Some(cache) if self.superblocks.is_slc(superblock) => {
                self.superblocks.close_slc(superblock);
                cache.add_full(superblock);
            }
            _ => self.superblocks.close(superblock, self.counters.host_writes),
        }
    }

    fn invalidate(&mut self, ppn: Ppn) {
        let (superblock, _) = self.splitter.superblock(ppn);
        self.superblocks.invalidate(superblock, ppn);
    }

    /// Writes a unit of the host to a stream whose frontier has room. Returns the host's units of
    /// the page that this filled, 0 if it filled none.
    fn put(&mut self, stream: Stream, lpn: Lpn, ready: Nanos, array: &mut impl Media) -> u32 {
        let slot = self.frontiers.of(stream).take(stream, 1, &self.splitter);
        self.superblocks.assign(slot.superblock, slot.ppn, lpn);
        let old = self.l2p.replace(lpn, slot.ppn);
        self.undo.note(slot.log, slot.offset, old, true);
        if let Some(old) = old {
            self.invalidate(old);
        }
        self.settle(Cause::Host, &slot, ready, array)
    }

    /// Adds units to the page of their slot and programs it when it is full. Returns the host's
    /// units of the programmed page.
    #[inline]
    fn settle(&mut self, cause: Cause, slot: &Slot, ready: Nanos, array: &mut impl Media) -> u32 {
        let frontier = self.frontiers.of(slot.stream);
        frontier.fill(slot, cause, ready);
        if !slot.fills_page {
            return 0;
        }
        let page = frontier.take_page(slot.place.die);
        if frontier.is_full() {
            self.close(slot.superblock);
            self.undo.filled(slot.log);
        }
        self.program(slot, &page, array);
        self.erase_emptied(page.ready, array);
        page.of(Cause::Host)
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
        let host = host + counters.host_writes_lost;
        assert_eq!(host, counters.host_writes, "host units in flash and in the buffer");
        let moved = counters.nand_collection_writes + self.frontiers.waiting(Cause::Collection);
        assert_eq!(moved, counters.collection_moves, "moved units in flash and on their way");
        let levelled = counters.nand_wear_writes + self.frontiers.waiting(Cause::Wear);
        assert_eq!(levelled, counters.wear_moves, "levelled units in flash and on their way");
        let folded = counters.nand_folding_writes + self.frontiers.waiting(Cause::Folding);
        assert_eq!(folded, counters.folding_moves, "folded units in flash and on their way");
    }
}
