//! How to collect: fetch the victim's next valid units, write them to collection's frontier.

use ssdlab_time::Nanos;

use super::gc::Victim;
use super::{Ftl, Stream};
use crate::nand::Array;

impl Ftl {
    /// Moves the valid units of the victim's next run that has any; returns how many.
    ///
    /// A run is what follows each other on one page. A page is sensed once however many of its
    /// runs are moved, as long as collection senses no other page of that die in between.
    pub(super) fn move_next_run(
        &mut self,
        victim: &mut Victim,
        at: Nanos,
        array: &mut Array,
    ) -> u32 {
        let run_units = self.run_units;
        loop {
            let start = victim.next;
            assert!(start < self.superblock_units, "a victim with valid units has a next run");
            victim.next += run_units;
            let valid = self.valid_in(victim.superblock, start);
            if valid > 0 {
                self.move_run(victim.superblock, start, valid, (at, array));
                return valid;
            }
        }
    }

    fn valid_in(&self, superblock: u32, start: u32) -> u32 {
        let ppn = |offset| self.splitter.ppn(superblock, offset);
        let valid = |offset: &u32| self.superblocks.is_valid(ppn(*offset));
        (start..start + self.run_units).filter(valid).count() as u32
    }

    fn move_run(
        &mut self,
        superblock: u32,
        start: u32,
        valid: u32,
        (at, array): (Nanos, &mut Array),
    ) {
        let place = self.splitter.place(superblock, start);
        let sensed = &mut self.collector.sensed[place.die as usize];
        let fetched = if *sensed == Some(place.page) {
            array.transfer_out(place.die, at, valid).end
        } else {
            *sensed = Some(place.page);
            self.counters.collection_senses += 1;
            array.fetch(place, at, valid)
        };
        for offset in start..start + self.run_units {
            let ppn = self.splitter.ppn(superblock, offset);
            if !self.superblocks.is_valid(ppn) {
                continue;
            }
            if self.collection.is_full(self.superblock_units) {
                self.collection.open(self.superblocks.take_free());
            }
            let lpn = self.superblocks.lpn(ppn);
            self.counters.collection_moves += 1;
            self.put(Stream::Collection, Some(lpn), fetched, array);
        }
    }
}
