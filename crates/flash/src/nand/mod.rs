//! The media: how flash is laid out, what its operations cost, and when each part of it is free.

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
