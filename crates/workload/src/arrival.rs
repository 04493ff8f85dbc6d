//! `Arrivals`: the arrival times of an open loop.

use ssdlab_time::{Nanos, Random};

use crate::requests::Requests;
use crate::{Arrival, Job};

#[derive(Clone, Debug)]
pub enum Arrivals {
    Rate(Rate),
    /// The times of a trace, relative to this start.
    Trace(Nanos),
}

impl Arrivals {
    /// The arrival times from `start` on, or `None` for a closed loop.
    pub fn new(job: &Job, start: Nanos) -> Option<Self> {
        match &job.replay {
            Some(replay) => replay.speed.map(|_| Self::Trace(start)),
            None => Rate::new(job.arrival, start, job.seed).map(Self::Rate),
        }
    }

    /// When the next request arrives.
    pub fn next(&self, requests: &Requests) -> Nanos {
        match self {
            Self::Rate(rate) => rate.next(),
            Self::Trace(start) => *start + requests.due(),
        }
    }

    /// Advances to the request after that.
    pub fn advance(&mut self) {
        if let Self::Rate(rate) = self {
            rate.advance();
        }
    }

    /// The number of requests that arrive before `deadline`; 0 for a trace.
    pub fn count_until(&mut self, deadline: Nanos) -> u64 {
        let Self::Rate(rate) = self else { return 0 };
        let mut count = 0;
        while rate.next() < deadline {
            rate.advance();
            count += 1;
        }
        count
    }
}

/// Arrival times at a rate.
#[derive(Clone, Debug)]
pub struct Rate {
    start: Nanos,
    /// Mean time between arrivals, in nanoseconds.
    gap: f64,
    /// The random stream of a Poisson process.
    random: Option<Random>,
    /// Time of the next arrival in units of `gap`, so that rounding errors do not accumulate.
    elapsed_gaps: f64,
}

impl Rate {
    fn new(arrival: Arrival, start: Nanos, seed: u64) -> Option<Self> {
        let Arrival::Rate { per_s, poisson } = arrival else { return None };
        let random = poisson.then(|| Random::new(seed, "arrival"));
        let mut arrivals = Self { start, gap: 1e9 / per_s, random, elapsed_gaps: 0.0 };
        if poisson {
            arrivals.advance();
        }
        Some(arrivals)
    }

    fn next(&self) -> Nanos {
        self.start + Nanos::new((self.elapsed_gaps * self.gap) as u64)
    }

    fn advance(&mut self) {
        self.elapsed_gaps += match &mut self.random {
            None => 1.0,
            Some(random) => -(1.0 - random.unit()).ln(),
        };
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_time::Nanos;

    use super::Rate;
    use crate::Arrival;

    fn times(poisson: bool, count: usize) -> Vec<f64> {
        let rate = Arrival::Rate { per_s: 1000.0, poisson };
        let mut arrivals = Rate::new(rate, Nanos::ZERO, 7).unwrap();
        let mut next = || {
            let time = arrivals.next();
            arrivals.advance();
            time.get() as f64
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_constant_rate_has_equal_gaps_without_rounding_drift() {
        let times = times(false, 100_001);
        for (index, time) in [(0, 0.0), (1, 1e6), (2, 2e6), (100_000, 1e11)] {
            assert!((times[index] - time).abs() < 0.5, "{index}: {}", times[index]);
        }
    }

    #[test]
    fn a_poisson_process_has_exponential_gaps_of_the_given_rate() {
        let times = times(true, 100_001);
        assert!(times[0] > 0.0, "the first request, too, arrives after a random gap");
        assert!((times[100_000] / 1e11 - 1.0).abs() < 0.01, "{}", times[100_000]);
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let spread = gaps.map(|gap| (gap - 1e6).powi(2)).sum::<f64>() / 1e5;
        assert!((spread.sqrt() / 1e6 - 1.0).abs() < 0.02, "{}", spread.sqrt());
    }

    #[test]
    fn a_closed_loop_has_no_arrival_times() {
        assert!(Rate::new(Arrival::Closed, Nanos::ZERO, 0).is_none());
    }
}
