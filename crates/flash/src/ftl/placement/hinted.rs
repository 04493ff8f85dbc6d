//! `Hinted`: an append goes to the die after that of the preceding unit, an overwrite to the die of
//! the unit that it replaces.
//!
//! Modelled: the published rules. Each die fills its own part of the open superblock. A hint is
//! for a command's first unit; a unit without a hint goes where the last unit went, and to the next
//! die when a chunk is full. Relocated units stay on their die. If a die has no room left in the
//! open superblock, the die with the most room takes the unit, and this is counted: so dies wear
//! evenly.
//!
//! Differs from hardware: the published drive has free blocks per die and no collection; here a
//! superblock is opened, emptied and erased as a whole. A page that a flush padded counts as full.
//! Source: Jun, Park, Kang, Kim, Seo, "We Ain't Afraid of No File Fragmentation", FAST 2024.

use super::{Frontiers, Hint, Lane, Origin, Slot, UnitLocator};
use crate::ftl::map::Lpn;
use crate::nand::Geometry;

/// One host lane per die, and possibly as many for relocations.
#[derive(Clone, Debug)]
pub struct Hinted {
    dies: u32,
    chunk_units: u32,
    /// The lane for relocations from die 0.
    relocations: u32,
    /// The die that the next unit without a hint goes to.
    die: u32,
}

impl Hinted {
    pub fn new(geometry: &Geometry, frontiers: &Frontiers) -> Self {
        let (dies, chunk_units) = (geometry.dies(), geometry.chunk_units);
        Self { dies, chunk_units, relocations: frontiers.relocations.0, die: 0 }
    }

    pub fn after(&self, die: u32) -> u32 {
        if die + 1 == self.dies { 0 } else { die + 1 }
    }

    /// The lane of this die; without one, of the die that the last unit went to.
    #[inline]
    pub fn lane(&mut self, die: Option<u32>) -> Lane {
        self.die = die.unwrap_or(self.die);
        Lane(self.die)
    }

    #[inline]
    pub fn host(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) -> Lane {
        let die = match hint {
            Hint::After(prior) => locator.die(prior).map(|die| self.after(die)),
            Hint::Overwrite => locator.die(lpn),
            Hint::None | Hint::Continues | Hint::Stream(_) => None,
        };
        self.lane(die)
    }

    #[inline]
    pub fn relocated(&self, from: Origin) -> Lane {
        Lane(self.relocations + from.die)
    }

    pub fn displaced(&mut self, lane: Lane) {
        self.die = lane.0;
    }

    pub fn ended_run(&mut self, slot: &Slot) {
        let ends_chunk = || (slot.offset + slot.units).is_multiple_of(self.chunk_units);
        if slot.lane == Lane(self.die) && ends_chunk() {
            self.die = self.after(self.die);
        }
    }
}

/// The rules of `Hinted`, with hints that the drive guesses for hosts that give none.
///
/// Modelled: a sequential write goes where the previous one would have continued; any other write
/// to a mapped unit counts as an overwrite, and one to an unmapped unit as an append to the unit
/// with the previous number. Hints from the host take precedence.
///
/// Differs from hardware: no drive is known to do this. A file whose pieces do not have consecutive
/// numbers is not recognised: only the host knows that they belong together.
#[derive(Clone, Debug)]
pub struct Inferred {
    pub hinted: Hinted,
    /// The unit that the host wrote last.
    pub last: Option<Lpn>,
}

impl Inferred {
    /// The die for a write without a hint.
    #[inline]
    fn guess(&self, lpn: Lpn, locator: UnitLocator<'_>) -> Option<u32> {
        let before = lpn.0.checked_sub(1).map(Lpn);
        if before.is_some() && self.last == before {
            return None;
        }
        let after = || Some(self.hinted.after(locator.die(before?)?));
        locator.die(lpn).or_else(after)
    }

    #[inline]
    pub fn host(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) -> Lane {
        let guessed = (hint == Hint::None).then(|| self.guess(lpn, locator));
        self.last = Some(lpn);
        match guessed {
            Some(die) => self.hinted.lane(die),
            None => self.hinted.host(lpn, hint, locator),
        }
    }
}
