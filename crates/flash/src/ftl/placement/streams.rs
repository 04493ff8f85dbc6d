//! `Streams`: each host stream fills superblocks of its own, so that data with the same lifetime is
//! erased together. Striped placement is the same with one stream: host writes fill one superblock
//! after the other, along the stripe.
//!
//! Modelled: reclaim unit handles as in `NVMe`'s flexible data placement, with a superblock as the
//! reclaim unit; a write without a hint, or of a stream that the drive does not have, belongs to
//! stream 0. If `ftl.relocation` is `mixed`, relocated units go to the frontier of their stream
//! ("persistently isolated"); if it is `separate`, to one frontier for all ("initially isolated").
//! Updating a handle continues it in another superblock; the rest of the old one stays empty until
//! that is collected. Without streams, the rule of a drive without hints: units written one after
//! the other are adjacent, even if they are of different files. Not modelled: reclaim groups,
//! endurance groups.
//!
//! Differs from hardware: units in the SLC cache lose their stream: they are folded as units of
//! stream 0. Source: NVM Express TP4146, "Flexible Data Placement", 2022.

use super::{Frontiers, Hint, Lane, Origin};

/// A frontier over all dies for each stream, and possibly one for relocations.
#[derive(Clone, Debug)]
pub struct Streams {
    count: u32,
    /// The lane for all relocations, if they share one.
    relocations: Option<Lane>,
}

impl Streams {
    pub fn new(count: u32, frontiers: &Frontiers) -> Self {
        let lane = frontiers.relocations;
        Self { count, relocations: (lane != Lane(0)).then_some(lane) }
    }

    #[inline]
    pub fn host(&self, hint: Hint) -> Lane {
        match hint {
            Hint::Stream(number) if u32::from(number) < self.count => Lane(u32::from(number)),
            _ => Lane(0),
        }
    }

    #[inline]
    pub fn relocated(&self, from: Origin) -> Lane {
        self.relocations.unwrap_or(Lane(u32::from(from.stream)))
    }
}
