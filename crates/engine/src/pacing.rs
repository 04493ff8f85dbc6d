//! `Clock`: relates a drive's virtual time to the wall clock. This is the only module of the crate
//! that reads the wall clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ssdlab_time::Nanos;

use crate::sync::lock;

/// Data bytes of the short reply whose round trip is measured.
pub const SHORT_REPLY_BYTES: usize = 4096;

/// How fast a drive's clock runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Replies are sent at once; while the server is idle the drive is idle for the same time.
    None,
    /// Seconds of the drive per second of the wall clock; 1 is real time.
    Scaled(f64),
}

/// A drive's clock and its relation to the wall clock.
pub struct Clock {
    pace: Pace,
    /// The wall clock and the drive's clock at the start.
    started: Instant,
    drive_start: Nanos,
    compensation: Mutex<LatencyCompensation>,
    /// The largest compensation of any reply.
    max_compensation_ns: AtomicU64,
    /// How long the drive had no power, in nanoseconds; its clock stood still.
    paused_ns: AtomicU64,
    /// Without pacing: since when nothing is in flight.
    idle_since: Mutex<Instant>,
    lateness: Mutex<ReplyLateness>,
}

/// How late paced replies were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyLateness {
    /// Number of replies.
    pub replies: u64,
    /// Replies that were sent more than 20 us late.
    pub late: u64,
    /// The largest lateness.
    pub max: Duration,
}

/// Delays between the moment a reply is due and the moment the client has it: replies are sent
/// earlier by them, so that clients measure the latency of the drive without that of the transport
/// and of the timers.
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

/// A reply is late from here on: the kernel's wake-ups vary by about this much.
const LATE: Duration = Duration::from_micros(20);

impl Clock {
    /// Starts a clock at drive time zero.
    pub fn start(pace: Pace, compensation: LatencyCompensation) -> Self {
        let now = wall_clock_now();
        Self {
            pace,
            started: now,
            drive_start: Nanos::ZERO,
            compensation: compensation.into(),
            max_compensation_ns: AtomicU64::new(0),
            paused_ns: AtomicU64::new(0),
            idle_since: Mutex::new(now),
            lateness: Mutex::default(),
        }
    }

    /// The same clock, for a drive whose clock shows `drive_time` at the start.
    #[must_use]
    pub fn starting_at(self, drive_time: Nanos) -> Self {
        Self { drive_start: drive_time, ..self }
    }

    /// The clock of a clone of the drive; if this drive has no power since `paused_since`, the
    /// clone gets power now.
    #[must_use]
    pub(crate) fn clone_resumed(&self, paused_since: Option<Instant>) -> Self {
        let load = |value: &AtomicU64| AtomicU64::new(value.load(Ordering::Relaxed));
        let clock = Self {
            started: self.started,
            drive_start: self.drive_start,
            max_compensation_ns: load(&self.max_compensation_ns),
            paused_ns: load(&self.paused_ns),
            idle_since: Mutex::new(*lock(&self.idle_since)),
            ..Self::start(self.pace, self.compensation())
        };
        if let Some(since) = paused_since {
            clock.resume_after(since);
        }
        clock
    }

    /// Whether replies wait for the drive's clock.
    pub fn is_paced(&self) -> bool {
        self.pace != Pace::None
    }

    /// The time that the drive's clock, which shows `shown`, should show now.
    pub(crate) fn drive_time(&self, shown: Nanos) -> Nanos {
        match self.pace {
            Pace::None => {
                let since = *lock(&self.idle_since);
                shown + nanos(wall_clock_now().saturating_duration_since(since))
            }
            Pace::Scaled(factor) => {
                let started = self.started + self.paused();
                let elapsed = wall_clock_now().saturating_duration_since(started);
                self.drive_start + nanos(elapsed.mul_f64(factor))
            }
        }
    }

    /// Drive time at which every acknowledged request has completed, if the drive's clock shows
    /// `shown`.
    pub(crate) fn acknowledged_time(&self, shown: Nanos) -> Nanos {
        let Pace::Scaled(factor) = self.pace else { return shown };
        let earliest = Duration::from_nanos(self.max_compensation_ns.load(Ordering::Relaxed));
        self.drive_time(shown) + nanos(earliest.mul_f64(factor))
    }

    /// Resumes the drive's clock, which stood still since `time`.
    pub(crate) fn resume_after(&self, time: Instant) {
        let pause = wall_clock_now().saturating_duration_since(time).as_nanos() as u64;
        self.paused_ns.fetch_add(pause, Ordering::Relaxed);
        self.begin_idle();
    }

    fn paused(&self) -> Duration {
        Duration::from_nanos(self.paused_ns.load(Ordering::Relaxed))
    }

    /// When to send the reply of a request that completes at `completed` on the drive's clock and
    /// transfers `bytes` of data; `None` to send it at once, without pacing.
    pub(crate) fn due(&self, completed: Nanos, bytes: u64) -> Option<Instant> {
        let Pace::Scaled(factor) = self.pace else { return None };
        let compensation = self.compensation().for_bytes(bytes);
        self.max_compensation_ns.fetch_max(compensation.as_nanos() as u64, Ordering::Relaxed);
        let after = completed.saturating_sub(self.drive_start).get();
        let after = Duration::from_nanos(after).div_f64(factor);
        Some(self.started + self.paused() + after.saturating_sub(compensation))
    }

    /// Converts a time of the drive to wall clock time; zero without pacing.
    pub fn wall_time(&self, drive_time: Nanos) -> Duration {
        match self.pace {
            Pace::None => Duration::ZERO,
            Pace::Scaled(factor) => Duration::from_nanos(drive_time.get()).div_f64(factor),
        }
    }

    /// How much earlier replies are sent.
    pub fn compensation(&self) -> LatencyCompensation {
        *lock(&self.compensation)
    }

    /// Sets how much earlier replies are sent from now on.
    pub fn set_compensation(&self, compensation: LatencyCompensation) {
        *lock(&self.compensation) = compensation;
    }

    /// The part of each wait that is a busy wait.
    pub fn spin(&self) -> Duration {
        self.compensation().wake_up
    }

    /// Records that nothing is in flight from now on.
    pub(crate) fn begin_idle(&self) {
        *lock(&self.idle_since) = wall_clock_now();
    }

    /// Records that a reply is sent now which was due at `due`.
    pub fn note_sent(&self, due: Instant) {
        let late = wall_clock_now().saturating_duration_since(due);
        let mut lateness = lock(&self.lateness);
        lateness.replies += 1;
        lateness.late += u64::from(late > LATE);
        lateness.max = lateness.max.max(late);
    }

    /// How late replies were sent so far.
    pub fn reply_lateness(&self) -> ReplyLateness {
        *lock(&self.lateness)
    }
}

/// The time of the wall clock.
#[expect(clippy::disallowed_methods, reason = "the server's pacing is measured in real time")]
pub fn wall_clock_now() -> Instant {
    Instant::now()
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::new(duration.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ssdlab_time::Nanos;

    use super::{Clock, LatencyCompensation, Pace};

    const HOUR: Duration = Duration::from_secs(3600);

    /// A clock that compensates one hour for each byte.
    fn slow_clock() -> Clock {
        let compensation = LatencyCompensation {
            ns_per_byte: HOUR.as_nanos() as f64,
            ..LatencyCompensation::default()
        };
        Clock::start(Pace::Scaled(1.0), compensation)
    }

    #[test]
    fn a_reply_is_sent_earlier_by_the_transfer_time_of_its_bytes() {
        let (clock, done) = (slow_clock(), Nanos::from_secs(1_000_000));
        let short = clock.due(done, 4096).unwrap();
        assert_eq!(short - clock.due(done, 4096 + 3).unwrap(), 3 * HOUR);
    }

    #[test]
    fn a_command_has_completed_once_its_early_reply_was_sent() {
        let clock = slow_clock();
        let before = clock.acknowledged_time(Nanos::ZERO);
        clock.due(Nanos::ZERO, 4096 + 2);
        clock.due(Nanos::ZERO, 512);
        assert!(clock.acknowledged_time(Nanos::ZERO) >= before + Nanos::from_secs(2 * 3600));
        clock.set_compensation(LatencyCompensation::default());
        let acknowledged = clock.acknowledged_time(Nanos::ZERO);
        assert!(
            acknowledged >= before + Nanos::from_secs(2 * 3600),
            "it was sent with the old compensation"
        );
    }

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
