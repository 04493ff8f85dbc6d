//! What the flash does: the operations and moves of the recent past, and what each die does now.

use ssdlab_time::{Nanos, Span};

use super::Place;
use crate::counters::Cause;

/// The kind of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A page is sensed for the host.
    Sense,
    /// A (multi-plane) page is programmed.
    Program,
    /// A block in each plane of a die is erased.
    Erase,
    /// A page is sensed for collection, or a map page for any purpose.
    Fetch,
}

/// An operation of a die, as it was planned when it was queued: a later read may delay it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its kind.
    pub kind: OperationKind,
    /// The die.
    pub die: u32,
    /// Block in each plane of that die, also the number of the superblock, and page in that block;
    /// `None` for a map page, which is in no superblock. The page of an erase is 0.
    pub page: Option<(u32, u32)>,
    /// When it runs.
    pub span: Span,
}

/// Units that were moved from one superblock to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The superblock that they left.
    pub from: u32,
    /// The superblock that has them now.
    pub to: u32,
    /// How many.
    pub units: u32,
    /// Why.
    pub cause: Cause,
    /// When the first of them was in the controller.
    pub at: Nanos,
}

/// Operations and moves since they were last taken, in the order in which they were queued.
#[derive(Clone, Debug, Default)]
pub struct ActivityLog {
    /// The operations of all dies.
    pub operations: Vec<Operation>,
    /// The moves. Neighbours with the same superblocks and cause are one.
    pub moves: Vec<Move>,
}

impl ActivityLog {
    #[cold]
    pub(super) fn add_operation(
        &mut self,
        kind: OperationKind,
        place: Place,
        pages_per_block: u32,
        span: Span,
    ) {
        let Place { die, page, page_in_block, .. } = place;
        let in_superblock = page != u32::MAX;
        let page = in_superblock.then(|| ((page - page_in_block) / pages_per_block, page_in_block));
        self.operations.push(Operation { kind, die, page, span });
    }

    #[cold]
    pub(super) fn add_move(&mut self, new: Move) {
        match self.moves.last_mut() {
            Some(last) if (last.from, last.to, last.cause) == (new.from, new.to, new.cause) => {
                last.units += new.units;
            }
            _ => self.moves.push(new),
        }
    }
}

/// What a die does at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieActivity {
    /// The operation in progress and when it ends; `None` if the die is idle.
    pub now: Option<(OperationKind, Nanos)>,
    /// When the die has done all that is queued, as far as is known.
    pub free_at: Nanos,
    /// Programs, erases and reads for collection that have not ended.
    pub queued: usize,
}
