//! `Streams`: each stream of the host fills superblocks of its own, so that what dies together
//! lies together.
//!
//! Modelled: reclaim unit handles as `NVMe`'s flexible data placement has them, a superblock being
//! the reclaim unit; a write without a hint, or of a stream that the drive does not have, belongs
//! to stream 0. What is moved goes to the frontier of the stream that it came from where
//! `ftl.relocation` is `mixed` ("persistently isolated"), and to one for all where it is `separate`
//! ("initially isolated"). A handle that is updated goes on in another superblock; what is left of
//! the old one stays empty until that is collected. Not modelled: reclaim groups, endurance groups.
//!
//! Differs from hardware: what an SLC cache takes loses its stream: it is folded as if it were of
//! stream 0. Source: NVM Express TP4146, "Flexible Data Placement", 2022.

use ssdlab_time::Nanos;

use super::{Frontiers, Hint, Lane, Origin, Placement, Sites};
use crate::ftl::Ftl;
use crate::ftl::map::Lpn;
use crate::nand::Media;

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

impl Ftl {
    /// Lets a stream go on in another superblock: pages of the old one that are not full are
    /// padded, and the rest is left. False where nothing of it is used or left, or none follows.
    pub fn renew_stream(&mut self, stream: u32, at: Nanos, array: &mut impl Media) -> bool {
        if self.frontiers.room(stream) == 0 || self.service.read_only {
            return false;
        }
        let lane = Lane(stream);
        let padded = self.pad(lane, at, array);
        let frontier = self.frontiers.of(lane);
        let (superblock, log) = (frontier.superblock(), frontier.log());
        let left = frontier.give_up();
        if left > 0 {
            self.close(superblock);
            self.undo.filled(log);
        }
        if padded + left > 0 {
            // What is left takes room as host writes do, and owes the same moves.
            self.collect_in_step(padded + left, at, array);
        }
        if self.frontiers.of(lane).is_full() {
            self.room_for_host(lane, at, array);
        }
        padded + left > 0
    }
}
