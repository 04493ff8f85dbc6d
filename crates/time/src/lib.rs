//! What makes a run repeat: virtual time, resources busy until a time, seeded random streams.

mod calendar;
mod nanos;
mod random;

pub use calendar::{Calendar, Span};
pub use nanos::Nanos;
pub use random::Random;
