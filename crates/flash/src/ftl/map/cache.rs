//! `MapCache`: a drive that holds only a part of its map in memory pays flash reads for the rest.
//!
//! Modelled: the map consists of pages of 4-byte entries; a read of a unit whose map page is not in
//! memory first senses that page; a dirty page is programmed when it is evicted; CLOCK (second
//! chance) selects the page to evict. Not modelled: where map pages are stored and how their own
//! garbage is collected (they have an area of their own, a die by page number), map updates by
//! relocations, and the journal that makes single entries durable.
//!
//! Differs from hardware: a write is charged the flash operations of its map page but does not wait
//! for them: drives update their maps behind the buffer. Source of the idea: Gupta, Kim, Urgaonkar,
//! "DFTL", ASPLOS 2009.

use ssdlab_time::Nanos;

use super::Lpn;
use crate::config::Profile;
use crate::counters::Counters;
use crate::nand::{Geometry, Media, Place};

const ABSENT: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub struct MapCache {
    dies: u32,
    /// Mapping units in a flash page.
    page_units: u32,
    /// Mapping units whose entries share a map page.
    map_page_entries: u32,
    slots: Vec<Slot>,
    capacity: usize,
    /// The next slot that CLOCK examines.
    hand: usize,
    /// The slot of each map page, or `ABSENT`.
    slot_of: Vec<u32>,
    /// Whether flash has a version of each map page: one that was never written back is not read.
    stored: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    map_page: u32,
    referenced: bool,
    dirty: bool,
}

/// The flash operations that an access to the map needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MapAccess {
    /// The map page that must be read from flash first.
    read: Option<u32>,
    /// The dirty map page that is evicted.
    write_back: Option<u32>,
}

impl MapCache {
    /// The empty cache of a profile; `None` if the whole map is in memory.
    pub fn of_profile(profile: &Profile) -> Option<Self> {
        let is_needed = profile.map_cache > 0;
        let new = || Self::new(profile.map_cache, &profile.geometry, profile.logical_units());
        is_needed.then(new)
    }

    /// An empty cache of `bytes` for the map of `logical_units`.
    fn new(bytes: u64, geometry: &Geometry, logical_units: u64) -> Self {
        let page_bytes = u64::from(geometry.page_units) * geometry.unit_bytes();
        let map_page_entries = page_bytes / 4;
        let map_pages = logical_units.div_ceil(map_page_entries) as usize;
        Self {
            dies: geometry.dies(),
            page_units: geometry.page_units,
            map_page_entries: map_page_entries as u32,
            slots: Vec::new(),
            capacity: (bytes / page_bytes).max(1) as usize,
            hand: 0,
            slot_of: vec![ABSENT; map_pages],
            stored: vec![false; map_pages],
        }
    }

    /// Brings the map entry of a unit into memory, and marks its page as dirty if it changes;
    /// returns when it is there.
    pub fn lookup(
        &mut self,
        lpn: Lpn,
        changes: bool,
        at: Nanos,
        media: &mut impl Media,
        counters: &mut Counters,
    ) -> Nanos {
        let access = self.access(lpn, changes);
        if let Some(map_page) = access.write_back {
            counters.nand_mapping_writes += u64::from(self.page_units);
            media.program(self.place(map_page), at);
        }
        let Some(map_page) = access.read else { return at };
        counters.mapping_senses += 1;
        media.fetch(self.place(map_page), at, self.page_units)
    }

    /// The place of a map page: the die follows from its number, and it is in no superblock.
    fn place(&self, map_page: u32) -> Place {
        let die = map_page % self.dies;
        Place { die, page: u32::MAX, ..Place::default() }
    }

    /// Reads, or changes, the entry of a mapping unit.
    fn access(&mut self, lpn: Lpn, changes: bool) -> MapAccess {
        let map_page = lpn.0 / self.map_page_entries;
        let slot = self.slot_of[map_page as usize];
        if slot != ABSENT {
            let slot = &mut self.slots[slot as usize];
            slot.referenced = true;
            slot.dirty |= changes;
            return MapAccess::default();
        }
        let write_back = self.insert(Slot { map_page, referenced: true, dirty: changes });
        let read = self.stored[map_page as usize].then_some(map_page);
        MapAccess { read, write_back }
    }

    /// Puts a page into a slot; returns the page evicted from there if it is dirty.
    fn insert(&mut self, page: Slot) -> Option<u32> {
        if self.slots.len() < self.capacity {
            self.slot_of[page.map_page as usize] = self.slots.len() as u32;
            self.slots.push(page);
            return None;
        }
        while self.slots[self.hand].referenced {
            self.slots[self.hand].referenced = false;
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let old = std::mem::replace(&mut self.slots[self.hand], page);
        self.slot_of[old.map_page as usize] = ABSENT;
        self.slot_of[page.map_page as usize] = self.hand as u32;
        self.hand = (self.hand + 1) % self.slots.len();
        self.stored[old.map_page as usize] |= old.dirty;
        old.dirty.then_some(old.map_page)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lpn, MapAccess, MapCache};
    use crate::nand::Geometry;

    const HIT: MapAccess = MapAccess { read: None, write_back: None };

    /// A cache for `pages` map pages of 1024 entries.
    fn cache(pages: u64) -> MapCache {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes: 1,
            independent_plane_reads: false,
            page_units: 1,
            pages_per_block: 64,
            blocks_per_plane: 200,
            unit_bytes: 4096,
            chunk_units: 1,
        };
        MapCache::new(pages * 4096, &geometry, 10_000)
    }

    #[test]
    fn a_page_in_memory_costs_nothing() {
        let mut cache = cache(2);
        assert_eq!(cache.access(Lpn(0), false), HIT, "never written, so not read either");
        assert_eq!(cache.access(Lpn(1023), true), HIT);
        assert_eq!(cache.access(Lpn(1024), true), HIT, "room for two");
        assert_eq!(cache.access(Lpn(0), false), HIT);
    }

    #[test]
    fn a_dirty_page_is_written_back_once_and_read_when_it_is_needed_again() {
        let mut cache = cache(1);
        cache.access(Lpn(0), true);
        let evicts = cache.access(Lpn(1024), false);
        assert_eq!(evicts, MapAccess { read: None, write_back: Some(0) });
        let back = cache.access(Lpn(5), false);
        assert_eq!(back, MapAccess { read: Some(0), write_back: None });
        assert_eq!(cache.access(Lpn(2048), false).write_back, None, "it did not change again");
    }

    #[test]
    fn a_page_used_again_has_a_second_chance() {
        let mut cache = cache(3);
        for page in [0, 1, 2] {
            cache.access(Lpn(page * 1024), true);
        }
        assert_eq!(cache.access(Lpn(3 * 1024), true).write_back, Some(0), "the first in order");
        cache.access(Lpn(1024), false);
        assert_eq!(cache.access(Lpn(4 * 1024), true).write_back, Some(2), "page 1 was used since");
    }
}
