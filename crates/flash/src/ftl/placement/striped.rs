//! `Striped`: host writes fill one superblock after the other, along the stripe.
//!
//! Modelled: the rule of a drive without hints: the next unit goes to the next place along the
//! stripe. So units written one after the other are adjacent, even if they are of different files.

use super::{Frontiers, Hint, Lane, Origin, Placement, UnitLocator};
use crate::ftl::map::Lpn;

/// One frontier over all dies for the host, one for relocations.
#[derive(Clone, Debug)]
pub struct Striped {
    relocations: Lane,
}

impl Striped {
    /// The policy for these frontiers.
    pub fn new(frontiers: &Frontiers) -> Self {
        Self { relocations: frontiers.relocations() }
    }
}

impl Placement for Striped {
    #[inline]
    fn host(&mut self, _lpn: Lpn, _hint: Hint, _locator: UnitLocator<'_>) -> Lane {
        Lane(0)
    }

    #[inline]
    fn relocated(&self, _from: Origin) -> Lane {
        self.relocations
    }
}
