//! `Calendar`: the bookings of a resource that serves one user at a time.

use crate::Nanos;

/// The number of free gaps that a calendar keeps. Beyond it the earliest gap is dropped.
const GAPS_MAX: u64 = 48;

/// Size of the ring of gaps: a power of two above `GAPS_MAX`.
const RING: usize = 64;

/// A booking, from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The start of the booking.
    pub start: Nanos,
    /// The time at which the next user may start.
    pub end: Nanos,
}

/// A channel or a link: busy until a time, with free gaps before that time.
///
/// A single busy-until time is wrong if bookings are made out of order: a transfer that waits for a
/// slow die would delay all transfers that are ready earlier. A calendar keeps the gaps that such a
/// booking leaves, and fills them.
///
/// Modelled: exclusive use, first fit. Not modelled: arbitration time, preemption. Differs from
/// hardware: a transfer is never split to fit into smaller gaps; beyond 48 gaps the earliest are
/// dropped, so that the resource looks slightly busier than it is.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The end of the last booking.
    free: Nanos,
    /// Disjoint gaps before `free`, in order of time; gap number `n` is at index `n % RING`. Gaps
    /// in the past remain, unused, until they are dropped as the earliest ones.
    gaps: [Span; RING],
    /// Number of the first gap.
    first: u64,
    /// Number of the last gap, plus one.
    end: u64,
}

impl Default for Calendar {
    fn default() -> Self {
        let none = Span { start: Nanos::ZERO, end: Nanos::ZERO };
        Self { free: Nanos::ZERO, gaps: [none; RING], first: 0, end: 0 }
    }
}

impl Calendar {
    /// Books the first free span of `duration` that starts at `earliest` or later.
    #[inline]
    pub fn book(&mut self, earliest: Nanos, duration: Nanos) -> Span {
        if earliest < self.free
            && let Some(number) = self.find(earliest, duration)
        {
            return self.book_gap(number, earliest, duration);
        }
        let start = earliest.max(self.free);
        if start > self.free {
            self.insert(self.end, Span { start: self.free, end: start });
        }
        self.free = start + duration;
        Span { start, end: self.free }
    }

    fn gap(&self, number: u64) -> Span {
        self.gaps[number as usize % RING]
    }

    fn gap_mut(&mut self, number: u64) -> &mut Span {
        &mut self.gaps[number as usize % RING]
    }

    /// The first gap with room for the booking. Searched from the back, because most bookings fit
    /// into one of the last gaps.
    fn find(&self, earliest: Nanos, duration: Nanos) -> Option<u64> {
        let mut number = self.end;
        while number > self.first && self.gap(number - 1).end >= earliest + duration {
            number -= 1;
        }
        let fits = |gap: Span| gap.end >= gap.start.max(earliest) + duration;
        (number..self.end).find(|number| fits(self.gap(*number)))
    }

    fn book_gap(&mut self, number: u64, earliest: Nanos, duration: Nanos) -> Span {
        let gap = self.gap(number);
        let start = gap.start.max(earliest);
        let booked = Span { start, end: start + duration };
        let before = Span { start: gap.start, end: booked.start };
        let after = Span { start: booked.end, end: gap.end };
        match (before.start < before.end, after.start < after.end) {
            (true, true) => {
                *self.gap_mut(number) = after;
                self.insert(number, before);
            }
            (true, false) => *self.gap_mut(number) = before,
            (false, true) => *self.gap_mut(number) = after,
            (false, false) => self.remove(number),
        }
        booked
    }

    /// Inserts a gap before gap `number`, and drops the earliest if there are too many.
    fn insert(&mut self, number: u64, gap: Span) {
        for later in (number..self.end).rev() {
            *self.gap_mut(later + 1) = self.gap(later);
        }
        *self.gap_mut(number) = gap;
        self.end += 1;
        if self.end - self.first > GAPS_MAX {
            self.first += 1;
        }
    }

    fn remove(&mut self, number: u64) {
        for later in number + 1..self.end {
            *self.gap_mut(later - 1) = self.gap(later);
        }
        self.end -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Calendar, GAPS_MAX, Span};
    use crate::Nanos;

    fn span(start: u64, end: u64) -> Span {
        Span { start: Nanos::new(start), end: Nanos::new(end) }
    }

    #[test]
    fn bookings_in_order_follow_each_other() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.book(Nanos::ZERO, Nanos::new(5)), span(0, 5));
        assert_eq!(calendar.book(Nanos::new(2), Nanos::new(5)), span(5, 10));
    }

    #[test]
    fn a_booking_in_the_future_does_not_delay_an_earlier_one() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.book(Nanos::new(100), Nanos::new(10)), span(100, 110));
        assert_eq!(calendar.book(Nanos::new(20), Nanos::new(10)), span(20, 30));
        assert_eq!(calendar.book(Nanos::new(25), Nanos::new(70)), span(30, 100));
        assert_eq!(calendar.book(Nanos::new(0), Nanos::new(21)), span(110, 131));
        assert_eq!(calendar.book(Nanos::new(0), Nanos::new(20)), span(0, 20));
        assert_eq!(calendar.first, calendar.end);
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
    fn the_earliest_gap_is_dropped_when_there_are_too_many() {
        let mut calendar = Calendar::default();
        for number in 1..=GAPS_MAX + 1 {
            calendar.book(Nanos::new(number * 10), Nanos::new(5));
        }
        assert_eq!(calendar.book(Nanos::ZERO, Nanos::new(5)), span(15, 20));
    }
}
