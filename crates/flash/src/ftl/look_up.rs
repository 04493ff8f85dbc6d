//! Looking a unit up: in memory at once, or by the cached part of a map that lies in flash.

use ssdlab_time::Nanos;

use super::Ftl;
use super::map::{Lpn, MapCache};
use crate::config::Profile;
use crate::nand::{Media, Place};

/// The cache of the map, where the whole map is not in memory.
pub fn map_cache(profile: &Profile) -> Option<MapCache> {
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
    /// Has the map's entry of a unit in memory; returns when it is there.
    #[inline]
    pub fn look_up(&mut self, lpn: Lpn, changes: bool, at: Nanos, array: &mut impl Media) -> Nanos {
        if self.map_cache.is_some() { self.bring_in(lpn, changes, at, array) } else { at }
    }

    fn bring_in(&mut self, lpn: Lpn, changes: bool, at: Nanos, array: &mut impl Media) -> Nanos {
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
}
