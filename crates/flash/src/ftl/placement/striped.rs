//! `Striped`: what the host writes fills one superblock after the other, along the stripe.
//!
//! Modelled: the rule of a drive without hints: whatever comes next goes to the next place of all
//! dies in turn. So what was written together lies side by side, whosever it is.

use super::{Frontiers, Hint, Lane, Origin, Placement, Sites};
use crate::ftl::map::Lpn;

/// One frontier over all dies for the host, one for what is moved.
#[derive(Clone, Debug)]
pub struct Striped {
    moves: Lane,
}

impl Striped {
    /// The rule for these frontiers.
    pub fn new(frontiers: &Frontiers) -> Self {
        Self { moves: frontiers.moves() }
    }
}

impl Placement for Striped {
    #[inline]
    fn host(&mut self, _lpn: Lpn, _hint: Hint, _sites: Sites<'_>) -> Lane {
        Lane(0)
    }

    #[inline]
    fn moved(&self, _from: Origin) -> Lane {
        self.moves
    }
}
