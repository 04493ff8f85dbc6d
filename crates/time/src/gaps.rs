//! `Gaps`: the free spans of a calendar that begin before its last ones, however many there are.

use std::collections::{BTreeMap, VecDeque};

use crate::{Nanos, Span};

/// The most gaps in `Gaps::near`, in which a new gap moves others.
const NEAR: usize = if cfg!(test) { 8 } else { 8192 };

/// Disjoint gaps in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// The first of them; empty only if `far` is.
    near: VecDeque<Span>,
    /// Those after them: the start of each, by its end.
    far: BTreeMap<Nanos, Nanos>,
}

impl Gaps {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }

    /// Adds a gap after all others.
    pub fn push(&mut self, gap: Span) {
        if self.far.is_empty() && self.near.len() < NEAR {
            self.near.push_back(gap);
        } else {
            self.far.insert(gap.end, gap.start);
        }
    }

    /// Removes the gaps that end by `now`.
    pub fn forget_before(&mut self, now: Nanos) {
        while self.near.front().is_some_and(|gap| gap.end <= now) {
            self.near.pop_front();
            self.refill();
        }
    }

    /// Books the first free span of `duration` that starts at `earliest` or later; `None` if it
    /// fits into no gap.
    pub fn book(&mut self, earliest: Nanos, duration: Nanos) -> Option<Span> {
        let fits = |gap: &Span| gap.end >= gap.start.max(earliest) + duration;
        let first = self.near.partition_point(|gap| gap.end < earliest + duration);
        if let Some(index) = (first..self.near.len()).find(|index| fits(&self.near[*index])) {
            return Some(self.book_near(index, earliest, duration));
        }
        let gaps = self.far.range(earliest + duration..);
        let gap = gaps.map(|(end, start)| Span { start: *start, end: *end }).find(fits)?;
        let (before, booked, after) = gap.split(earliest, duration);
        if after.is_empty() {
            self.far.remove(&gap.end);
        } else {
            self.far.insert(gap.end, after.start);
        }
        if !before.is_empty() {
            self.far.insert(before.end, before.start);
        }
        Some(booked)
    }

    fn book_near(&mut self, index: usize, earliest: Nanos, duration: Nanos) -> Span {
        let (before, booked, after) = self.near[index].split(earliest, duration);
        match (before.is_empty(), after.is_empty()) {
            (false, false) => {
                self.near[index] = after;
                self.near.insert(index, before);
                if self.near.len() > NEAR {
                    let later = self.near.split_off(NEAR / 2);
                    self.far.extend(later.iter().map(|gap| (gap.end, gap.start)));
                }
            }
            (false, true) => self.near[index] = before,
            (true, false) => self.near[index] = after,
            (true, true) => {
                self.near.remove(index);
                self.refill();
            }
        }
        booked
    }

    fn refill(&mut self) {
        if !self.near.is_empty() {
            return;
        }
        while self.near.len() < NEAR / 2
            && let Some((end, start)) = self.far.pop_first()
        {
            self.near.push_back(Span { start, end });
        }
    }
}
