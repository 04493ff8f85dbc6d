//! What a twin shows of itself: its counters, its wear, where a unit lies.

use ssdlab_time::Nanos;

use super::Ssd;
use crate::config::ReadsBack;
use crate::counters::{Counters, Wear};
use crate::ftl::{Location, Lpn, Service};
use crate::inside::{Superblock, Whereabouts};
use crate::nand::Place;

impl Ssd {
    /// What the drive has counted so far.
    pub fn counters(&self) -> &Counters {
        self.ftl.counters()
    }

    /// How worn it is.
    pub fn wear(&self) -> Wear {
        Wear::new(self.ftl.erases(), self.endurance)
    }

    /// What it has left to replace bad blocks, and whether it still takes writes.
    pub fn service(&self) -> Service {
        self.ftl.service()
    }

    /// What a host is to read where it trimmed.
    pub fn trim_reads_back(&self) -> ReadsBack {
        self.trim.reads_back
    }

    /// Says whether all that the host writes from now on is zeros. The twin holds no bytes, so
    /// whoever makes them has to tell.
    pub fn let_write_zeros(&mut self, zeros: bool) {
        self.writes_zeros = zeros;
    }

    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// The longest command of the link, in bytes.
    pub fn max_transfer(&self) -> u64 {
        self.link.max_transfer
    }

    /// How many units a power cut may take writes from: what the buffer holds, and none where
    /// capacitors protect it.
    pub fn volatile_units(&self) -> u64 {
        if self.buffer.power_loss_protection { 0 } else { self.buffer.size / self.unit_bytes }
    }

    /// When the next request in flight will be done.
    pub fn next_completion(&self) -> Option<Nanos> {
        self.flight.next()
    }

    /// Where a mapping unit's current content is now.
    ///
    /// # Panics
    /// Beyond the last one.
    pub fn whereabouts(&self, unit: u64) -> Whereabouts {
        assert!(unit < self.capacity >> self.unit_shift, "the drive has no unit {unit}");
        match self.ftl.locate(Lpn(unit as u32), self.now) {
            Location::Unmapped => Whereabouts::Nowhere,
            Location::Buffered => Whereabouts::Buffer,
            Location::Flash(_, Place { die, page, page_in_block, .. }) => {
                let block = (page - page_in_block) / self.pages_per_block;
                Whereabouts::Flash { die, block, page: page_in_block }
            }
        }
    }

    /// Mapping units that hold content of the host.
    pub fn mapped_units(&self) -> u64 {
        self.superblocks().iter().map(|each| u64::from(each.valid)).sum()
    }

    /// Bytes that a stream's open superblock still takes; 0 where streams are not kept apart.
    pub fn stream_room(&self, stream: u32) -> u64 {
        u64::from(self.ftl.stream_room(stream)) * self.unit_bytes
    }

    /// All superblocks, by number.
    pub fn superblocks(&self) -> &[Superblock] {
        self.ftl.superblocks()
    }

    /// Checks the maps and counts against each other; panics where they disagree. For tests: it
    /// looks at every mapping unit.
    pub fn assert_consistent(&self) {
        self.ftl.assert_consistent();
    }
}
