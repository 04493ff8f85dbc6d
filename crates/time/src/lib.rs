//! Virtual time, resource calendars and seeded random streams: the basis of reproducible runs.

mod calendar;
mod gaps;
mod nanos;
mod random;
mod span;

pub use calendar::Calendar;
pub use nanos::Nanos;
pub use random::{Random, fnv_1a};
pub use span::Span;
