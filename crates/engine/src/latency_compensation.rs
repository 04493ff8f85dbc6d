//! `LatencyCompensation`: how much earlier replies are sent, so that clients measure the latency of
//! the drive without that of the transport and of the timers.

use std::time::Duration;

/// Data bytes of the short reply whose round trip is measured.
pub const SHORT_REPLY_BYTES: usize = 4096;

/// Delays between the moment a reply is due and the moment the client has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyCompensation {
    /// Median round trip of a request and a reply with 4 KiB of data, without the drive's latency.
    pub round_trip: Duration,
    /// Nanoseconds for each further byte, which is copied into the connection and out of it.
    pub ns_per_byte: f64,
    /// Wake-up latency of a sleeping thread, 99th percentile.
    pub wake_up: Duration,
}

impl LatencyCompensation {
    /// Sets the round trip of a 4 KiB reply and, from the round trip of a reply of `long_bytes`,
    /// the cost of each further byte.
    #[must_use]
    pub fn with_round_trips(self, short: Duration, long_bytes: usize, long: Duration) -> Self {
        let beyond = long_bytes.saturating_sub(SHORT_REPLY_BYTES).max(1) as f64;
        let ns_per_byte = long.saturating_sub(short).as_nanos() as f64 / beyond;
        Self { round_trip: short, ns_per_byte, ..self }
    }

    /// How early to send the reply when the request or the reply carries `bytes` of data.
    pub fn for_bytes(&self, bytes: u64) -> Duration {
        let beyond = bytes.saturating_sub(SHORT_REPLY_BYTES as u64) as f64;
        self.round_trip + Duration::from_nanos((beyond * self.ns_per_byte) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::LatencyCompensation;

    #[test]
    fn each_byte_beyond_a_short_reply_makes_it_leave_earlier() {
        let round_trip = Duration::from_micros(10);
        let compensation =
            LatencyCompensation { round_trip, ns_per_byte: 0.5, wake_up: Duration::ZERO };
        assert_eq!(compensation.for_bytes(0), round_trip);
        assert_eq!(compensation.for_bytes(4096), round_trip);
        assert_eq!(compensation.for_bytes(4096 + 2000), Duration::from_micros(11));
    }
}
