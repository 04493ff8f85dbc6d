//! `LatencyCompensation`: how much earlier replies leave, so that clients see the latency of the
//! drive and not also that of the transport and of the timers.

use std::time::Duration;

/// Data bytes of a short reply.
pub const SHORT: usize = 4096;

/// What keeps an answer from being with its client when it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyCompensation {
    /// A request and its answer with 4 KiB are so long on their way: the median.
    pub transport: Duration,
    /// Each byte beyond them, in nanoseconds: it is copied into the connection and out of it.
    pub byte_ns: f64,
    /// Who sleeps is woken so late: 99 of 100 times not later.
    pub waking: Duration,
}

impl LatencyCompensation {
    /// The same machine's, where a short answer's way takes so long, and that of so many bytes.
    #[must_use]
    pub fn of_ways(self, short: Duration, (bytes, long): (usize, Duration)) -> Self {
        let beyond = bytes.saturating_sub(SHORT).max(1) as f64;
        let byte_ns = long.saturating_sub(short).as_nanos() as f64 / beyond;
        Self { transport: short, byte_ns, ..self }
    }

    /// How long before its time an answer leaves to a request; so many bytes come with one of
    /// them.
    pub fn of(&self, bytes: u64) -> Duration {
        let beyond = bytes.saturating_sub(SHORT as u64) as f64;
        self.transport + Duration::from_nanos((beyond * self.byte_ns) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::LatencyCompensation;

    #[test]
    fn each_byte_beyond_a_short_answers_lets_it_leave_earlier() {
        let transport = Duration::from_micros(10);
        let lead = LatencyCompensation { transport, byte_ns: 0.5, waking: Duration::ZERO };
        assert_eq!(lead.of(0), transport);
        assert_eq!(lead.of(4096), transport);
        assert_eq!(lead.of(4096 + 2000), Duration::from_micros(11));
    }
}
