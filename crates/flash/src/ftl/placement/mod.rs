//! Where units go: a policy a file behind one trait, and the frontiers that they fill.

mod frontier;
mod frontiers;
mod hinted;
mod inferred;
mod packed;
mod streams;
mod striped;

pub use frontier::Lane;
pub use frontier::{Filling, Slot};
pub use frontiers::{Frontiers, Marks};

use hinted::Hinted;
use inferred::Inferred;
use packed::Packed;
use streams::Streams;
use striped::Striped;

use ssdlab_device::LBA_BYTES;

use super::map::{L2p, Lpn};
use crate::config::{PlacementRule, Profile};
use crate::nand::Splitter;

/// What the host let the drive know of a unit: `ssdlab_device::Hint` in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    None,
    /// It goes on where the last unit went, in one command with it.
    GoesOn,
    /// It goes on in a file after this unit.
    After(Lpn),
    /// It replaces content of a file in its place.
    Overwrite,
    /// It belongs to the stream of this number.
    Stream(u8),
}

impl Hint {
    /// A request's hint, on a drive of so many units; what names a block beyond it says nothing.
    #[inline]
    pub fn of_request(said: ssdlab_device::Hint, unit_shift: u32, units: u64) -> Self {
        match said {
            ssdlab_device::Hint::None => Self::None,
            ssdlab_device::Hint::Overwrite => Self::Overwrite,
            ssdlab_device::Hint::Stream(number) => Self::Stream(number),
            ssdlab_device::Hint::AppendAfter(lba) => {
                let unit = lba.get() >> (unit_shift - LBA_BYTES.trailing_zeros());
                if unit < units { Self::After(Lpn(unit as u32)) } else { Self::None }
            }
        }
    }

    /// What is known of the next unit of the same command.
    #[inline]
    pub fn of_next(self) -> Self {
        if let Self::Stream(_) = self { self } else { Self::GoesOn }
    }
}

/// Where units lie that a hint names.
#[derive(Clone, Copy)]
pub struct Sites<'a> {
    pub l2p: &'a L2p,
    pub splitter: &'a Splitter,
}

impl Sites<'_> {
    /// The die of a unit's current content.
    fn die(self, lpn: Lpn) -> Option<u32> {
        let (superblock, offset) = self.splitter.superblock(self.l2p.get(lpn)?);
        Some(self.splitter.place(superblock, offset).die)
    }
}

/// Where units that are moved come from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The host's stream that filled their superblock.
    pub stream: u8,
    /// The die that they lie on.
    pub die: u32,
}

/// Which lane a unit takes. Whether that has room, and what then, is not its matter.
pub trait Placement {
    /// The lane for a unit that the host writes.
    fn host(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) -> Lane;

    /// The lane for units that are moved.
    fn moved(&self, from: Origin) -> Lane;

    /// Hears that the lane for the host's unit has no room, and that this one takes it.
    fn displaced(&mut self, _lane: Lane) {}

    /// Hears that a run is full.
    fn ended_run(&mut self, _slot: &Slot) {}
}

/// The policy of a drive: one of few, so that asking it for each unit is a jump and no call.
#[derive(Clone, Debug)]
pub enum Policy {
    Striped(Striped),
    Streams(Streams),
    Hinted(Hinted),
    Inferred(Inferred),
    Packed(Packed),
}

impl Policy {
    /// The policy that a profile names, for a drive with these frontiers.
    pub fn new(profile: &Profile, frontiers: &Frontiers) -> Self {
        match profile.placement {
            PlacementRule::Striped => Self::Striped(Striped::new(frontiers)),
            PlacementRule::Streams(count) => Self::Streams(Streams::new(count, frontiers)),
            PlacementRule::Hinted => Self::Hinted(Hinted::new(&profile.geometry, frontiers)),
            PlacementRule::Inferred => {
                Self::Inferred(Inferred::new(Hinted::new(&profile.geometry, frontiers)))
            }
            PlacementRule::Packed => Self::Packed(Packed::new(&profile.geometry, frontiers)),
        }
    }

    /// Hears that a command with so many units follows.
    #[inline]
    pub fn begins(&mut self, units: u32) {
        if let Self::Packed(packed) = self {
            packed.begins(units);
        }
    }

    /// Earlier units to be written together with the one that was asked for last, before it.
    #[inline]
    pub fn along(&mut self) -> Option<Vec<Lpn>> {
        if let Self::Packed(packed) = self { packed.along() } else { None }
    }

    /// Hears that the pages that are not full are programmed.
    pub fn flushed(&mut self) {
        if let Self::Packed(packed) = self {
            packed.flushed();
        }
    }

    /// Forgets what was in memory: the power was cut.
    pub fn forget(&mut self) {
        if let Self::Packed(packed) = self {
            packed.forget();
        }
    }
}

impl Placement for Policy {
    #[inline]
    fn host(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) -> Lane {
        match self {
            Self::Striped(striped) => striped.host(lpn, hint, sites),
            Self::Streams(streams) => streams.host(lpn, hint, sites),
            Self::Hinted(hinted) => hinted.host(lpn, hint, sites),
            Self::Inferred(inferred) => inferred.host(lpn, hint, sites),
            Self::Packed(packed) => packed.host(lpn, hint, sites),
        }
    }

    #[inline]
    fn moved(&self, from: Origin) -> Lane {
        match self {
            Self::Striped(striped) => striped.moved(from),
            Self::Streams(streams) => streams.moved(from),
            Self::Hinted(hinted) => hinted.moved(from),
            Self::Inferred(inferred) => inferred.moved(from),
            Self::Packed(packed) => packed.moved(from),
        }
    }

    fn displaced(&mut self, lane: Lane) {
        match self {
            Self::Striped(_) | Self::Streams(_) => {}
            Self::Hinted(hinted) => hinted.displaced(lane),
            Self::Inferred(inferred) => inferred.displaced(lane),
            Self::Packed(packed) => packed.displaced(lane),
        }
    }

    #[inline]
    fn ended_run(&mut self, slot: &Slot) {
        match self {
            Self::Striped(_) | Self::Streams(_) => {}
            Self::Hinted(hinted) => hinted.ended_run(slot),
            Self::Inferred(inferred) => inferred.ended_run(slot),
            Self::Packed(packed) => packed.ended_run(slot),
        }
    }
}
