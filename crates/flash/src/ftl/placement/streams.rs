//! `Streams`: each stream of the host fills superblocks of its own, so that what dies together
//! lies together.
//!
//! Modelled: reclaim unit handles as `NVMe`'s flexible data placement has them, a superblock being
//! the reclaim unit; a write without a hint, or of a stream that the drive does not have, belongs
//! to stream 0. What is moved goes to the frontier of the stream that it came from where
//! `ftl.relocation` is `mixed` ("persistently isolated"), and to one for all where it is `separate`
//! ("initially isolated"). Not modelled: reclaim groups, endurance groups, the events and the log
//! that tell a host when a reclaim unit was changed.
//!
//! Differs from hardware: what an SLC cache takes loses its stream: it is folded as if it were of
//! stream 0. Source: NVM Express TP4146, "Flexible Data Placement", 2022.

use super::{Frontiers, Hint, Lane, Origin, Placement, Sites};
use crate::ftl::map::Lpn;

/// A frontier over all dies for each stream, and perhaps one for what is moved.
#[derive(Clone, Debug)]
pub struct Streams {
    count: u32,
    /// Where all that is moved goes, if that is one place.
    moves: Option<Lane>,
}

impl Streams {
    /// The rule for so many streams on these frontiers.
    pub fn new(count: u32, frontiers: &Frontiers) -> Self {
        let moves = frontiers.moves();
        Self { count, moves: (moves != Lane(0)).then_some(moves) }
    }
}

impl Placement for Streams {
    #[inline]
    fn host(&mut self, _lpn: Lpn, hint: Hint, _sites: Sites<'_>) -> Lane {
        match hint {
            Hint::Stream(number) if u32::from(number) < self.count => Lane(u32::from(number)),
            _ => Lane(0),
        }
    }

    #[inline]
    fn moved(&self, from: Origin) -> Lane {
        self.moves.unwrap_or(Lane(u32::from(from.stream)))
    }
}
