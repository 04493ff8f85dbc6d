//! The media: geometry, durations of operations, and when each die and channel is busy.

mod address;
mod array;
mod die;
mod geometry;
mod media;
mod timing;

pub use address::{Place, Ppn, Splitter};
pub use array::Array;
pub use geometry::Geometry;
pub use media::{Media, Untimed};
pub use timing::{SlcTiming, Timing};
