//! Virtual time, resource calendars and seeded random streams: the basis of reproducible runs.

mod calendar;
mod gaps;
mod nanos;
mod random;

pub use calendar::{Calendar, Span};
pub use nanos::Nanos;
pub use random::{Random, fnv_1a};
