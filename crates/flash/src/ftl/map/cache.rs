//! `MapCache`: a drive that holds only a part of its map in memory pays flash reads for the rest.
//!
//! Modelled: the map is cut into pages of 4-byte entries; a read of a unit whose map page is not in
//! memory first senses that page; a page that changed is programmed when it has to make room; which
//! one makes room is decided by CLOCK (second chance). Not modelled: where map pages lie and how
//! their own garbage is collected (they have an area of their own, a die by page number), and the
//! journal that makes single entries durable.
//!
//! Differs from hardware: a write, or a move by collection, is charged the flash operations of its
//! map page but does not wait for them: drives update their maps behind the buffer. Source of the
//! idea: Gupta, Kim, Urgaonkar, "DFTL", ASPLOS 2009.

const ABSENT: u32 = u32::MAX;

/// Map pages in memory.
#[derive(Clone, Debug)]
pub struct MapCache {
    /// Mapping units whose entries share a map page.
    page_units: u32,
    slots: Vec<Slot>,
    most: usize,
    hand: usize,
    /// For each map page: its slot, or `ABSENT`.
    slot_of: Vec<u32>,
    /// Whether flash has a version of it: one that was never written back need not be read.
    stored: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    map_page: u32,
    referenced: bool,
    dirty: bool,
}

/// What an access to the map costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapAccess {
    /// The map page that must be read from flash first.
    pub read: Option<u32>,
    /// The map page that must be programmed to make room.
    pub write_back: Option<u32>,
}

impl MapCache {
    /// An empty cache of `bytes` for the map of `logical_units`, in flash pages of `page_bytes`.
    pub fn new(bytes: u64, page_bytes: u64, logical_units: u64) -> Self {
        let page_units = page_bytes / 4;
        let map_pages = logical_units.div_ceil(page_units) as usize;
        Self {
            page_units: page_units as u32,
            slots: Vec::new(),
            most: (bytes / page_bytes).max(1) as usize,
            hand: 0,
            slot_of: vec![ABSENT; map_pages],
            stored: vec![false; map_pages],
        }
    }

    /// Looks up, or changes, the entry of a mapping unit.
    pub fn access(&mut self, unit: u32, changes: bool) -> MapAccess {
        let map_page = unit / self.page_units;
        let slot = self.slot_of[map_page as usize];
        if slot != ABSENT {
            let slot = &mut self.slots[slot as usize];
            slot.referenced = true;
            slot.dirty |= changes;
            return MapAccess::default();
        }
        let write_back = self.bring_in(Slot { map_page, referenced: true, dirty: changes });
        let read = self.stored[map_page as usize].then_some(map_page);
        MapAccess { read, write_back }
    }

    /// Puts a page into a slot; returns the page that has to be written back for it.
    fn bring_in(&mut self, page: Slot) -> Option<u32> {
        if self.slots.len() < self.most {
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
    use super::{MapAccess, MapCache};

    const HIT: MapAccess = MapAccess { read: None, write_back: None };

    #[test]
    fn a_page_in_memory_costs_nothing() {
        let mut cache = MapCache::new(8192, 4096, 10_000);
        assert_eq!(cache.access(0, false), HIT, "never written, so not read either");
        assert_eq!(cache.access(1023, true), HIT);
        assert_eq!(cache.access(1024, true), HIT, "room for two");
        assert_eq!(cache.access(0, false), HIT);
    }

    #[test]
    fn a_changed_page_is_written_back_once_and_read_when_it_is_needed_again() {
        let mut cache = MapCache::new(4096, 4096, 10_000);
        cache.access(0, true);
        let moved_on = cache.access(1024, false);
        assert_eq!(moved_on, MapAccess { read: None, write_back: Some(0) });
        let back = cache.access(5, false);
        assert_eq!(back, MapAccess { read: Some(0), write_back: None });
        assert_eq!(cache.access(2048, false).write_back, None, "it did not change again");
    }

    #[test]
    fn the_page_used_since_has_a_second_chance() {
        let mut cache = MapCache::new(3 * 4096, 4096, 10_000);
        for page in [0, 1, 2] {
            cache.access(page * 1024, true);
        }
        assert_eq!(cache.access(3 * 1024, true).write_back, Some(0), "the hand clears all marks");
        cache.access(1024, false);
        assert_eq!(cache.access(4 * 1024, true).write_back, Some(2), "page 1 was used since");
    }
}
