//! `Span`: when a resource serves a user.

use crate::Nanos;

/// A booking, from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The start of the booking.
    pub start: Nanos,
    /// The time at which the next user may start.
    pub end: Nanos,
}

impl Span {
    /// What a booking leaves of a gap before it, the booking, and what it leaves after it.
    #[inline]
    pub(crate) fn split(self, earliest: Nanos, duration: Nanos) -> (Self, Self, Self) {
        let start = self.start.max(earliest);
        let end = start + duration;
        (Self { start: self.start, end: start }, Self { start, end }, Self { start: end, ..self })
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}
