//! `Calendar`: the bookings of a resource that serves one user at a time.

use crate::gaps::Gaps;
use crate::{Nanos, Span};

/// Size of the ring of gaps: a power of two.
const RING: usize = 64;

/// Number of gaps that are moved out of a full ring.
const SWEPT: u64 = 16;

/// A channel or a link: busy until a time, with free gaps before that time.
///
/// A single busy-until time is wrong if bookings are made out of order: a transfer that waits for a
/// slow die would delay all transfers that are ready earlier. A calendar keeps the gaps that such a
/// booking leaves, and fills them.
///
/// Modelled: exclusive use, first fit. Not modelled: arbitration time, preemption. Differs from
/// hardware: a transfer is never split to fit into smaller gaps.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// No later booking starts before this time.
    now: Nanos,
    /// The end of the last booking.
    free: Nanos,
    /// The latest of the disjoint gaps before `free`, in order of time; gap number `n` is at index
    /// `n % RING`. Most bookings fit into one of them.
    gaps: [Span; RING],
    /// Number of the first gap in the ring.
    first: u64,
    /// Number of the last gap in the ring, plus one.
    end: u64,
    /// The gaps before those, if many bookings are made far ahead.
    early: Gaps,
}

impl Default for Calendar {
    fn default() -> Self {
        let none = Span { start: Nanos::ZERO, end: Nanos::ZERO };
        Self {
            now: Nanos::ZERO,
            free: Nanos::ZERO,
            gaps: [none; RING],
            first: 0,
            end: 0,
            early: Gaps::default(),
        }
    }
}

impl Calendar {
    /// Sets the clock: no later booking starts before `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Books the first free span of `duration` that starts at `earliest` or later.
    #[inline]
    pub fn book(&mut self, earliest: Nanos, duration: Nanos) -> Span {
        if earliest < self.free {
            if !self.early.is_empty()
                && let Some(booked) = self.book_early(earliest, duration)
            {
                return booked;
            }
            if let Some(number) = self.find(earliest, duration) {
                return self.book_gap(number, earliest, duration);
            }
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

    /// The first gap in the ring with room for the booking. Searched from the back, because most
    /// bookings fit into one of the last gaps.
    fn find(&self, earliest: Nanos, duration: Nanos) -> Option<u64> {
        let mut number = self.end;
        while number > self.first && self.gap(number - 1).end >= earliest + duration {
            number -= 1;
        }
        let fits = |gap: Span| gap.end >= gap.start.max(earliest) + duration;
        (number..self.end).find(|number| fits(self.gap(*number)))
    }

    /// Books a span in one of the early gaps; `None` if it fits into none.
    #[cold]
    fn book_early(&mut self, earliest: Nanos, duration: Nanos) -> Option<Span> {
        self.early.forget_before(self.now);
        self.early.book(earliest, duration)
    }

    fn book_gap(&mut self, number: u64, earliest: Nanos, duration: Nanos) -> Span {
        let (before, booked, after) = self.gap(number).split(earliest, duration);
        match (!before.is_empty(), !after.is_empty()) {
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

    /// Inserts a gap before gap `number`.
    fn insert(&mut self, number: u64, gap: Span) {
        for later in (number..self.end).rev() {
            *self.gap_mut(later + 1) = self.gap(later);
        }
        *self.gap_mut(number) = gap;
        self.end += 1;
        if (self.end - self.first) as usize == RING {
            self.sweep();
        }
    }

    /// Moves the earliest gaps of the ring to `early`, which keeps no past ones.
    #[cold]
    fn sweep(&mut self) {
        for number in self.first..self.first + SWEPT {
            self.early.push(self.gap(number));
        }
        self.first += SWEPT;
        self.early.forget_before(self.now);
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
    use super::Calendar;
    use crate::{Nanos, Span};

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

    /// The first free span among sorted bookings.
    fn first_fit(booked: &[Span], earliest: Nanos, duration: Nanos) -> Span {
        let mut start = earliest;
        for each in booked {
            if start + duration <= each.start {
                break;
            }
            start = start.max(each.end);
        }
        Span { start, end: start + duration }
    }

    #[test]
    fn bookings_are_the_first_free_spans_however_far_ahead_others_are() {
        for ahead in [300, 100_000] {
            let mut random = crate::Random::new(7, "calendar");
            let (mut calendar, mut booked) = (Calendar::default(), Vec::<Span>::new());
            for number in 0..3000 {
                let now = number * 20;
                calendar.advance(Nanos::new(now));
                let earliest = Nanos::new(now + random.below(ahead));
                let duration = Nanos::new(1 + random.below(30));
                let expected = first_fit(&booked, earliest, duration);
                assert_eq!(calendar.book(earliest, duration), expected, "booking {number}");
                let at = booked.partition_point(|each| each.start < expected.start);
                booked.insert(at, expected);
            }
        }
    }

    #[test]
    fn gaps_before_many_bookings_are_found() {
        let mut calendar = Calendar::default();
        for number in 1..=1000 {
            calendar.book(Nanos::new(number * 10), Nanos::new(5));
        }
        assert_eq!(calendar.book(Nanos::ZERO, Nanos::new(5)), span(0, 5));
        assert_eq!(calendar.book(Nanos::new(1), Nanos::new(5)), span(5, 10));
        assert_eq!(calendar.book(Nanos::new(16), Nanos::new(2)), span(16, 18));
        assert_eq!(calendar.book(Nanos::new(11), Nanos::new(2)), span(18, 20));
        assert_eq!(calendar.book(Nanos::new(5001), Nanos::new(5)), span(5005, 5010));
        assert_eq!(calendar.book(Nanos::new(5001), Nanos::new(6)), span(10_005, 10_011));
    }

    #[test]
    fn only_gaps_in_the_future_are_kept_beyond_the_ring() {
        for ahead in [1, 500] {
            let mut calendar = Calendar::default();
            for number in ahead..=10_000 {
                calendar.advance(Nanos::new((number - ahead) * 10));
                calendar.book(Nanos::new(number * 10), Nanos::new(5));
            }
            assert!(calendar.early.len() <= ahead as usize, "{} gaps", calendar.early.len());
            assert_eq!(calendar.early.is_empty(), ahead == 1);
        }
    }
}
