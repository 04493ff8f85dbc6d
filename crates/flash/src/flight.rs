//! `Flight`: the requests that a twin has taken and not yet answered, soonest completion first.

use ssdlab_device::Completion;
use ssdlab_time::Nanos;

/// Fewer places than this at the front are not worth closing up.
const LANDED_MIN: usize = 64;

/// A new request passes so many others one by one; if it comes before more, its place is looked up.
const PASSED_MAX: usize = 32;

/// Requests in flight. Of equal completion times the first submitted comes first.
///
/// A sorted list and no heap: most that are new come among the last, or before all others where a
/// write overtakes reads, and little has to move.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    /// By completion time, after some that have landed.
    completions: Vec<Completion>,
    landed: usize,
}

impl Flight {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.completions.len() - self.landed
    }

    /// Takes a request whose completion is known already.
    #[inline]
    pub fn take(&mut self, new: Completion) {
        if self.landed > 0 && self.next().is_none_or(|next| new.completed < next) {
            self.landed -= 1;
            self.completions[self.landed] = new;
            return;
        }
        self.completions.push(new);
        let flying = &mut self.completions[self.landed..];
        let mut place = flying.len() - 1;
        let passed_all = place.saturating_sub(PASSED_MAX);
        while place > passed_all && new.completed < flying[place - 1].completed {
            flying[place] = flying[place - 1];
            place -= 1;
        }
        flying[place] = new;
        if place > 0 && new.completed < flying[place - 1].completed {
            pass_more(&mut flying[..=place]);
        }
    }

    /// Takes all of them out; returns their ids by completion time.
    pub fn abandon(&mut self) -> Vec<u64> {
        let flying = self.completions.drain(self.landed..).map(|each| each.id).collect();
        self.completions.clear();
        self.landed = 0;
        flying
    }

    /// When the next one completes.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.completions.get(self.landed).map(|next| next.completed)
    }

    /// Lands all that are done by `now`.
    #[inline]
    pub fn land(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(next) = self.completions.get(self.landed)
            && next.completed <= now
        {
            done.push(*next);
            self.landed += 1;
        }
        if self.landed >= LANDED_MIN.max(self.len()) {
            self.close_up();
        }
    }

    #[inline(never)]
    fn close_up(&mut self) {
        self.completions.drain(..self.landed);
        self.landed = 0;
    }
}

/// Moves the last of these to its place among the others, which are sorted.
#[cold]
fn pass_more(flying: &mut [Completion]) {
    let (new, others) = flying.split_last().expect("a new one");
    let place = others.partition_point(|other| other.completed <= new.completed);
    flying[place..].rotate_right(1);
}

#[cfg(test)]
mod tests {
    use super::Flight;
    use ssdlab_device::Completion;
    use ssdlab_time::Nanos;

    #[test]
    fn requests_land_by_time_and_of_one_time_in_the_order_of_submission() {
        let mut random = ssdlab_time::Random::new(4, "flight");
        let (mut flight, mut flying) = (Flight::default(), Vec::new());
        let (mut now, mut landed, mut longest) = (0, 0, 0);
        for id in 0..20_000 {
            // Grows to some hundreds and shrinks to a few, in turns.
            let span = if id / 1000 % 2 == 0 { 600 } else { 20 };
            let completed = now + random.below(span);
            let (submitted, completed_at) = (Nanos::new(now), Nanos::new(completed));
            flight.take(Completion { id, submitted, completed: completed_at, outcome: Ok(()) });
            flying.push((completed, id));
            now += 1;
            flying.sort_unstable();
            let done = flying.partition_point(|request| request.0 <= now);
            let next = flying.first().map(|next| Nanos::new(next.0));
            assert_eq!(flight.next(), next);
            let mut completions = Vec::new();
            flight.land(Nanos::new(now), &mut completions);
            let seen: Vec<_> = completions.iter().map(|c| (c.completed.get(), c.id)).collect();
            assert_eq!(seen, flying[..done], "what is done, and nothing else");
            landed += flying.drain(..done).count();
            assert_eq!(flight.len(), flying.len());
            longest = longest.max(flying.len());
        }
        assert!(landed > 19_000 && longest > 200, "{landed} landed, {longest} at once");
        assert!(flight.completions.capacity() < 8 * longest, "places are used again");
    }
}
