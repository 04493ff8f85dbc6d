//! The internal state of a twin, for lessons, tests and a server's maps. Read-only, and not part of
//! the `Device` contract: a real drive does not report this.

use ssdlab_time::Nanos;

use super::{Ssd, Temperature};
use crate::config::ReadsBack;
use crate::counters::Counters;
use crate::ftl::{LastWrite, Location, Lpn, Service, Superblock, Wear};
use crate::nand::{ActivityLog, DieActivity, Place};

/// Where the current content of a mapping unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitLocation {
    /// Never written, or trimmed.
    Unmapped,
    /// In the controller's memory: its page is partly filled or being programmed.
    Buffer,
    /// In flash.
    Flash {
        /// Die, from 0; its channel is `die % channels`.
        die: u32,
        /// Block in each plane of that die; also the number of the superblock.
        block: u32,
        /// (Multi-plane) page in that block.
        page: u32,
    },
}

/// Space on its way from one use to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Superblocks that are erased and not open.
    pub free_superblocks: usize,
    /// Units that the host has written and that are not in flash yet, with those that wait for
    /// room in the buffer.
    pub buffered_units: u64,
}

impl Ssd {
    /// What the drive has counted since it was new.
    pub fn counters(&self) -> &Counters {
        &self.controller.ftl.store.counters
    }

    /// The wear of the flash.
    pub fn wear(&self) -> Wear {
        self.controller.ftl.store.superblocks.wear(self.endurance)
    }

    /// Superblocks left to replace bad blocks, and whether the drive accepts writes.
    pub fn service(&self) -> Service {
        self.controller.ftl.store.retirement.service
    }

    /// The temperature; `None` if the profile has no thermal model.
    pub fn temperature(&self) -> Option<Temperature> {
        let mut thermometer = self.thermometer.clone()?;
        thermometer.advance(self.now, self.counters());
        Some(thermometer.temperature())
    }

    /// What reads of trimmed addresses return.
    pub fn trim_reads_back(&self) -> ReadsBack {
        self.controller.trim.reads_back
    }

    /// Bytes in a mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        self.controller.unit_bytes
    }

    /// The longest command of the link, in bytes.
    pub fn max_transfer(&self) -> u64 {
        self.controller.host.link.max_transfer
    }

    /// The most units that a power cut can affect: those in the buffer, or none if capacitors
    /// protect it.
    pub fn volatile_units(&self) -> u64 {
        let buffer = &self.controller.buffer;
        if buffer.power_loss_protection { 0 } else { buffer.size / self.unit_bytes() }
    }

    /// The number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// When the next request in flight completes.
    pub fn next_completion(&self) -> Option<Nanos> {
        self.in_flight.next()
    }

    /// Where a mapping unit's current content is now.
    pub fn locate(&self, unit: u64) -> UnitLocation {
        assert!(unit < self.controller.logical_units, "the drive has no unit {unit}");
        match self.controller.ftl.store.locate(Lpn(unit as u32), self.drive_now()) {
            Location::Unmapped => UnitLocation::Unmapped,
            Location::Buffered => UnitLocation::Buffer,
            Location::Flash(_, Place { die, page, page_in_block, .. }) => {
                let block = (page - page_in_block) / self.controller.pages_per_block;
                UnitLocation::Flash { die, block, page: page_in_block }
            }
        }
    }

    /// The number of mapping units that hold host data.
    pub fn mapped_units(&self) -> u64 {
        self.controller.ftl.store.superblocks.valid_sum()
    }

    /// Free bytes in a stream's open superblock; 0 if streams are not separated.
    pub fn stream_room(&self, stream: u32) -> u64 {
        u64::from(self.controller.ftl.store.frontiers.room(stream)) * self.unit_bytes()
    }

    /// Free superblocks, and what the buffer holds.
    pub fn space(&self) -> Space {
        let store = &self.controller.ftl.store;
        Space {
            free_superblocks: store.superblocks.free_count(),
            buffered_units: store.buffer.held_at(self.drive_now()),
        }
    }

    /// By number of the superblock: the last page programmed there since it was erased.
    pub fn last_writes(&self) -> &[Option<LastWrite>] {
        &self.controller.ftl.store.superblocks.last_writes
    }

    /// What each die does now. Times are those of the drive's clock, which is the host's unless
    /// the drive throttles.
    pub fn dies(&self) -> impl Iterator<Item = DieActivity> {
        self.controller.array.activity(self.drive_now())
    }

    /// Starts or ends the recording of flash operations and moves. Recording changes no result.
    pub fn observe(&mut self, on: bool) {
        self.controller.array.observe(on);
    }

    /// The flash operations and moves recorded since the last call. The model works ahead of the
    /// clock, so they may lie in the future; those in idle time are recorded when it ends.
    pub fn take_activity(&mut self) -> ActivityLog {
        self.controller.array.take_activity()
    }

    /// All superblocks by number.
    pub fn superblocks(&self) -> &[Superblock] {
        &self.controller.ftl.store.superblocks.table
    }

    /// Checks the maps and counts against each other; panics if they disagree. For tests: it
    /// looks at every mapping unit.
    pub fn assert_consistent(&self) {
        self.controller.ftl.store.assert_consistent();
    }
}
