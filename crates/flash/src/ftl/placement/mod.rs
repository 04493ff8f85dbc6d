//! Where units are written: one file per placement policy, and the frontiers that they fill.

mod frontier;
mod frontiers;
mod hinted;
mod packed;
mod streams;

pub use frontier::{Lane, OpenPage, Slot};
pub use frontiers::{Frontiers, Marks};
pub use packed::Packed;

use hinted::{Hinted, Inferred};
use streams::Streams;

use ssdlab_device::LBA_BYTES;

use super::map::{L2p, Lpn};
use crate::config::{PlacementRule, Profile};
use crate::nand::Splitter;

/// A host hint for a unit: `ssdlab_device::Hint` in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// No hint.
    None,
    /// It continues the previous unit of the same command.
    Continues,
    /// It is appended to a file after this unit.
    After(Lpn),
    /// It overwrites content of a file in place.
    Overwrite,
    /// It belongs to the stream with this number.
    Stream(u8),
}

impl Hint {
    /// A request's hint, on a drive of `units` units. A block beyond its end counts as no hint.
    #[inline]
    pub fn of_request(hint: ssdlab_device::Hint, unit_shift: u32, units: u64) -> Self {
        match hint {
            ssdlab_device::Hint::None => Self::None,
            ssdlab_device::Hint::Overwrite => Self::Overwrite,
            ssdlab_device::Hint::Stream(number) => Self::Stream(number),
            ssdlab_device::Hint::AppendAfter(lba) => {
                let unit = lba.get() >> (unit_shift - LBA_BYTES.trailing_zeros());
                if unit < units { Self::After(Lpn(unit as u32)) } else { Self::None }
            }
        }
    }

    /// The hint for the next unit of the same command.
    #[inline]
    pub fn of_next(self) -> Self {
        if let Self::Stream(_) = self { self } else { Self::Continues }
    }
}

/// Finds the dies of units that hints refer to.
#[derive(Clone, Copy)]
pub struct UnitLocator<'a> {
    pub l2p: &'a L2p,
    pub splitter: &'a Splitter,
}

impl UnitLocator<'_> {
    /// The die of a unit's current content; `None` if the unit is unmapped.
    fn die(self, lpn: Lpn) -> Option<u32> {
        let (superblock, offset) = self.splitter.superblock(self.l2p.get(lpn)?);
        Some(self.splitter.place(superblock, offset).die)
    }
}

/// Where relocated units come from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The host stream that filled their superblock.
    pub stream: u8,
    /// The die that they are on.
    pub die: u32,
}

/// The policy of a drive: selects the lane for each unit. The caller finds another one if that lane
/// has no room. An enum, because a virtual call per unit would be slow.
#[derive(Clone, Debug)]
pub enum Policy {
    /// Striped placement has one stream.
    Streams(Streams),
    Hinted(Hinted),
    Inferred(Inferred),
    Packed(Packed),
}

impl Policy {
    /// The policy of a profile, for a drive with these frontiers.
    pub fn new(profile: &Profile, frontiers: &Frontiers) -> Self {
        let hinted = || Hinted::new(&profile.geometry, frontiers);
        match profile.placement {
            PlacementRule::Striped => Self::Streams(Streams::new(1, frontiers)),
            PlacementRule::Streams(count) => Self::Streams(Streams::new(count, frontiers)),
            PlacementRule::Hinted => Self::Hinted(hinted()),
            PlacementRule::Inferred => Self::Inferred(Inferred { hinted: hinted(), last: None }),
            PlacementRule::Packed => Self::Packed(Packed::new(&profile.geometry, hinted())),
        }
    }

    /// The state of packed placement, if that is the policy.
    #[inline]
    pub fn packed(&mut self) -> Option<&mut Packed> {
        if let Self::Packed(packed) = self { Some(packed) } else { None }
    }

    /// The lane for a unit that the host writes.
    #[inline]
    pub fn host(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) -> Lane {
        match self {
            Self::Streams(streams) => streams.host(hint),
            Self::Hinted(hinted) => hinted.host(lpn, hint, locator),
            Self::Inferred(inferred) => inferred.host(lpn, hint, locator),
            Self::Packed(packed) => packed.host(lpn, hint, locator),
        }
    }

    /// The lane for relocated units.
    #[inline]
    pub fn relocated(&self, from: Origin) -> Lane {
        match self {
            Self::Streams(streams) => streams.relocated(from),
            Self::Hinted(hinted)
            | Self::Inferred(Inferred { hinted, .. })
            | Self::Packed(Packed { loose: hinted, .. }) => hinted.relocated(from),
        }
    }

    /// The selected lane has no room; this one takes the unit.
    pub fn displaced(&mut self, lane: Lane) {
        match self {
            Self::Streams(_) => {}
            Self::Hinted(hinted) | Self::Inferred(Inferred { hinted, .. }) => {
                hinted.displaced(lane);
            }
            Self::Packed(packed) => packed.displaced(lane),
        }
    }

    /// A run is full.
    #[inline]
    pub fn ended_run(&mut self, slot: &Slot) {
        match self {
            Self::Streams(_) => {}
            Self::Hinted(hinted)
            | Self::Inferred(Inferred { hinted, .. })
            | Self::Packed(Packed { loose: hinted, .. }) => hinted.ended_run(slot),
        }
    }
}
