//! `Calendar`: a resource that serves one user at a time and remembers the gaps left between them.

use std::collections::VecDeque;

use crate::Nanos;

/// How many free gaps a calendar remembers; past that it forgets the earliest one.
const GAPS_MAX: usize = 48;

/// A time that something is in use: from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first moment of use.
    pub start: Nanos,
    /// The moment at which the next user may start.
    pub end: Nanos,
}

/// A channel or a link: busy until a time, with free gaps before it.
///
/// A plain busy-until time is wrong where users are booked out of order: a transfer that has to
/// wait for a slow die would hold up all that are ready before it. A calendar keeps the gaps that
/// such a booking leaves, and fills them.
///
/// Modelled: exclusive use, first fit. Not modelled: arbitration time, preemption. Differs from
/// hardware: a gap smaller than the transfer is never used by a part of it; of very many gaps the
/// earliest are forgotten, so that the resource then looks a little busier than it is.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    /// The end of the last booking.
    free: Nanos,
    /// Gaps before `free`, by time, not touching.
    gaps: VecDeque<Span>,
}

impl Calendar {
    /// Books `duration` at the first moment from `earliest` on that is free for all of it.
    pub fn book(&mut self, earliest: Nanos, duration: Nanos) -> Span {
        if earliest < self.free
            && let Some(span) = self.book_gap(earliest, duration)
        {
            return span;
        }
        let start = earliest.max(self.free);
        if start > self.free {
            self.remember(Span { start: self.free, end: start });
        }
        self.free = start + duration;
        Span { start, end: self.free }
    }

    /// The end of the last booking.
    pub fn free(&self) -> Nanos {
        self.free
    }

    /// Forgets gaps that end at or before `now`: nothing can be booked in the past.
    pub fn forget_before(&mut self, now: Nanos) {
        while self.gaps.front().is_some_and(|gap| gap.end <= now) {
            self.gaps.pop_front();
        }
    }

    fn remember(&mut self, gap: Span) {
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }

    fn book_gap(&mut self, earliest: Nanos, duration: Nanos) -> Option<Span> {
        if self.gaps.back()?.end < earliest + duration {
            return None;
        }
        let fits = |gap: &Span| gap.end >= gap.start.max(earliest) + duration;
        let late_enough = self.gaps.partition_point(|gap| gap.end < earliest + duration);
        let index = late_enough + self.gaps.range(late_enough..).position(fits)?;
        let gap = self.gaps[index];
        let start = gap.start.max(earliest);
        let booked = Span { start, end: start + duration };
        let before = Span { start: gap.start, end: booked.start };
        let after = Span { start: booked.end, end: gap.end };
        match (before.start < before.end, after.start < after.end) {
            (true, true) => {
                self.gaps[index] = before;
                self.gaps.insert(index + 1, after);
                if self.gaps.len() > GAPS_MAX {
                    self.gaps.pop_front();
                }
            }
            (true, false) => self.gaps[index] = before,
            (false, true) => self.gaps[index] = after,
            (false, false) => {
                self.gaps.remove(index);
            }
        }
        Some(booked)
    }
}

#[cfg(test)]
mod tests {
    use super::{Calendar, Span};
    use crate::Nanos;

    fn span(start: u64, end: u64) -> Span {
        Span { start: Nanos::new(start), end: Nanos::new(end) }
    }

    #[test]
    fn users_that_come_in_order_queue_up() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.book(Nanos::ZERO, Nanos::new(5)), span(0, 5));
        assert_eq!(calendar.book(Nanos::new(2), Nanos::new(5)), span(5, 10));
    }

    #[test]
    fn a_late_booking_does_not_hold_up_an_early_one() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.book(Nanos::new(100), Nanos::new(10)), span(100, 110));
        assert_eq!(calendar.book(Nanos::new(20), Nanos::new(10)), span(20, 30));
        assert_eq!(calendar.book(Nanos::new(25), Nanos::new(70)), span(30, 100));
        assert_eq!(calendar.book(Nanos::new(0), Nanos::new(21)), span(110, 131));
        assert_eq!(calendar.book(Nanos::new(0), Nanos::new(20)), span(0, 20));
        assert!(calendar.gaps.is_empty());
    }

    #[test]
    fn bookings_never_overlap() {
        let mut calendar = Calendar::default();
        let mut random = crate::Random::new(7, "calendar");
        let mut booked: Vec<Span> = Vec::new();
        for _ in 0..2000 {
            let earliest = Nanos::new(random.below(10_000));
            let span = calendar.book(earliest, Nanos::new(1 + random.below(20)));
            assert!(span.start >= earliest);
            assert!(booked.iter().all(|b| b.end <= span.start || span.end <= b.start));
            booked.push(span);
        }
    }

    #[test]
    fn gaps_of_the_past_are_forgotten() {
        let mut calendar = Calendar::default();
        calendar.book(Nanos::new(100), Nanos::new(10));
        calendar.forget_before(Nanos::new(100));
        assert!(calendar.gaps.is_empty());
    }
}
