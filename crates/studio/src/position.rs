//! `Position`: a moment in the history of a twin.

use ssdlab_time::Nanos;

/// A moment in the history of a twin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Ticks since the start.
    pub tick: u64,
    /// Requests completed since the start.
    pub requests: u64,
    /// Time since the start: the clocks of all drives so far, added up.
    pub time: Nanos,
}

/// The number that finds a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekBy {
    /// Ticks.
    Tick,
    /// Requests completed.
    Requests,
    /// Nanoseconds since the start.
    Time,
}

impl Position {
    /// The number that finds it.
    pub fn by(&self, by: SeekBy) -> u64 {
        match by {
            SeekBy::Tick => self.tick,
            SeekBy::Requests => self.requests,
            SeekBy::Time => self.time.get(),
        }
    }

    /// Whether it is on the way to the first tick at which the number is at least `value`.
    pub fn is_before(&self, by: SeekBy, value: u64) -> bool {
        self.by(by) < value || (by == SeekBy::Tick && self.tick == value)
    }
}
