//! `Hinted`: an append goes to the die after that of what it follows, an overwrite to the die of
//! what it replaces.
//!
//! Modelled: the published rules. Each die fills its own part of the open superblock. A hint speaks
//! of a command's first unit; what has none goes where the last unit went, and to the next die when
//! a chunk is full. What is moved stays on its die. Where a die has no room left in the open
//! superblock the one with the most takes its place, and is counted: so dies are worn alike.
//!
//! Differs from hardware: the published drive has free blocks a die and no collection; here a
//! superblock is opened, emptied and erased as a whole. A page that a flush closed counts as full.
//! Source: Jun, Park, Kang, Kim, Seo, "We Ain't Afraid of No File Fragmentation", FAST 2024.

use super::{Frontiers, Hint, Lane, Origin, Placement, Sites, Slot};
use crate::ftl::map::Lpn;
use crate::nand::Geometry;

/// A lane for each die for the host, and perhaps as many for what is moved.
#[derive(Clone, Debug)]
pub struct Hinted {
    dies: u32,
    chunk_units: u32,
    /// The lane of what is moved from die 0.
    moves: u32,
    /// The die that the next unit goes to, if nothing is said of it.
    die: u32,
}

impl Hinted {
    /// The rule for these frontiers.
    pub fn new(geometry: &Geometry, frontiers: &Frontiers) -> Self {
        let (dies, chunk_units) = (geometry.dies(), geometry.chunk_units);
        Self { dies, chunk_units, moves: frontiers.moves().0, die: 0 }
    }

    /// The die after this one.
    pub fn after(&self, die: u32) -> u32 {
        if die + 1 == self.dies { 0 } else { die + 1 }
    }

    /// The lane of this die; of the one that the last unit went to, if none is wanted.
    #[inline]
    pub fn at(&mut self, wanted: Option<u32>) -> Lane {
        self.die = wanted.unwrap_or(self.die);
        Lane(self.die)
    }
}

impl Placement for Hinted {
    #[inline]
    fn host(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) -> Lane {
        let wanted = match hint {
            Hint::After(prior) => sites.die(prior).map(|die| self.after(die)),
            Hint::Overwrite => sites.die(lpn),
            Hint::None | Hint::GoesOn | Hint::Stream(_) => None,
        };
        self.at(wanted)
    }

    #[inline]
    fn moved(&self, from: Origin) -> Lane {
        Lane(self.moves + from.die)
    }

    fn displaced(&mut self, lane: Lane) {
        self.die = lane.0;
    }

    fn ended_run(&mut self, slot: &Slot) {
        let ends_chunk = || (slot.offset + slot.units).is_multiple_of(self.chunk_units);
        if slot.lane == Lane(self.die) && ends_chunk() {
            self.die = self.after(self.die);
        }
    }
}
