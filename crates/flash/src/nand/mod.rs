//! The media: geometry, durations of operations, and when each die and channel is busy.

mod activity;
mod address;
mod array;
mod die;
mod geometry;

pub use activity::{ActivityLog, DieActivity, Move, Operation, OperationKind};
pub use address::{Place, Ppn, Splitter};
pub use array::{Array, Media, Untimed};
pub use geometry::{Geometry, SlcTiming, Timing};
