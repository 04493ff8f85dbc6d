//! `InFlight`: the requests that a twin has accepted and not yet completed, soonest first.

use ssdlab_device::{Completion, Wait};
use ssdlab_time::Nanos;

/// Fewer completed entries than this at the front are not worth removing.
const COMPLETED_MIN: usize = 64;

/// A new request is compared with up to this many others one by one, then by binary search.
const LINEAR_MAX: usize = 32;

/// Requests in flight. At equal completion times, the one submitted first comes first.
///
/// A sorted list rather than a heap: most new requests complete among the last, or before all
/// others if a write overtakes reads, so that few entries move.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    /// By completion time, after some that have completed.
    entries: Vec<Completion>,
    completed: usize,
}

impl InFlight {
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.completed
    }

    /// Adds a request whose completion is known already.
    #[inline]
    pub fn submit(&mut self, new: Completion) {
        if self.completed > 0 && self.next().is_none_or(|next| new.completed < next) {
            self.completed -= 1;
            self.entries[self.completed] = new;
            return;
        }
        self.entries.push(new);
        let pending = &mut self.entries[self.completed..];
        let mut place = pending.len() - 1;
        let linear_end = place.saturating_sub(LINEAR_MAX);
        while place > linear_end && new.completed < pending[place - 1].completed {
            pending[place] = pending[place - 1];
            place -= 1;
        }
        pending[place] = new;
        if place > 0 && new.completed < pending[place - 1].completed {
            insert_by_search(&mut pending[..=place]);
        }
    }

    /// Removes all requests; returns their ids by completion time.
    pub fn abandon(&mut self) -> Vec<u64> {
        let pending = self.entries.drain(self.completed..).map(|each| each.id).collect();
        self.entries.clear();
        self.completed = 0;
        pending
    }

    /// When the next one completes.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.entries.get(self.completed).map(|next| next.completed)
    }

    /// The time until which a drive at `now` runs for a `wait`.
    #[inline]
    pub fn end_of(&self, wait: Wait, now: Nanos) -> Nanos {
        let next = self.next();
        let until = match wait {
            Wait::Poll => now,
            Wait::One => next.unwrap_or(now),
            Wait::Until(time) => next.map_or(time, |next| next.min(time)),
        };
        now.max(until)
    }

    /// Completes all requests that are done by `now`.
    #[inline]
    pub fn complete(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(next) = self.entries.get(self.completed)
            && next.completed <= now
        {
            done.push(*next);
            self.completed += 1;
        }
        if self.completed >= COMPLETED_MIN.max(self.len()) {
            self.remove_completed();
        }
    }

    #[inline(never)]
    fn remove_completed(&mut self) {
        self.entries.drain(..self.completed);
        self.completed = 0;
    }
}

/// Moves the last of these to its place among the others, which are sorted.
#[cold]
fn insert_by_search(pending: &mut [Completion]) {
    let (new, others) = pending.split_last().expect("a new request");
    let place = others.partition_point(|other| other.completed <= new.completed);
    pending[place..].rotate_right(1);
}

#[cfg(test)]
mod tests {
    use super::InFlight;
    use ssdlab_device::Completion;
    use ssdlab_time::Nanos;

    #[test]
    fn requests_complete_by_time_then_in_the_order_of_submission() {
        let mut random = ssdlab_time::Random::new(4, "flight");
        let (mut in_flight, mut expected) = (InFlight::default(), Vec::new());
        let (mut now, mut completed_count, mut longest) = (0, 0, 0);
        for id in 0..20_000 {
            // Alternately grows to some hundreds and shrinks to a few.
            let span = if id / 1000 % 2 == 0 { 600 } else { 20 };
            let completed = now + random.below(span);
            expected.push((completed, id));
            let (submitted, completed) = (Nanos::new(now), Nanos::new(completed));
            in_flight.submit(Completion { id, submitted, completed, outcome: Ok(()) });
            now += 1;
            expected.sort_unstable();
            let done = expected.partition_point(|request| request.0 <= now);
            let next = expected.first().map(|next| Nanos::new(next.0));
            assert_eq!(in_flight.next(), next);
            let mut completions = Vec::new();
            in_flight.complete(Nanos::new(now), &mut completions);
            let found: Vec<_> = completions.iter().map(|c| (c.completed.get(), c.id)).collect();
            assert_eq!(found, expected[..done], "exactly the requests that are done");
            completed_count += expected.drain(..done).count();
            assert_eq!(in_flight.len(), expected.len());
            longest = longest.max(expected.len());
        }
        let enough = completed_count > 19_000 && longest > 200;
        assert!(enough, "{completed_count} completed, {longest} at once");
        assert!(in_flight.entries.capacity() < 8 * longest, "entries are reused");
    }
}
