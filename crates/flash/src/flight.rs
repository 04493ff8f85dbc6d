//! `Flight`: the requests that a twin has taken and not yet answered, soonest completion first.

use ssdlab_device::Completion;
use ssdlab_time::Nanos;

/// Fewer places than this at the front are not worth closing up.
const LANDED_MIN: usize = 64;

/// Requests in flight. Of equal completion times the first submitted comes first.
///
/// A sorted list and no heap: finding a place takes no branch that is hard to predict, and with
/// tens of requests in flight little has to move.
#[derive(Debug, Default)]
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
        let first = self.landed;
        let flying = &self.completions[first..];
        let sooner = flying.partition_point(|other| other.completed <= new.completed);
        let place = first + sooner;
        // The shorter side makes room: a write overtakes many reads.
        if first > 0 && sooner < flying.len() / 2 {
            self.completions.copy_within(first..place, first - 1);
            self.completions[place - 1] = new;
            self.landed -= 1;
        } else {
            self.completions.insert(place, new);
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
        let flying = &self.completions[self.landed..];
        let count = flying.iter().take_while(|next| next.completed <= now).count();
        done.extend_from_slice(&flying[..count]);
        self.landed += count;
        if self.landed >= LANDED_MIN.max(self.len()) {
            self.completions.drain(..self.landed);
            self.landed = 0;
        }
    }
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
