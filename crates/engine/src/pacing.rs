//! Real time and a drive's time: the only place of this crate that looks at a clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ssdlab_time::Nanos;

use crate::latency_compensation::LatencyCompensation;

/// How fast a drive's time runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Requests are answered at once; idle time of the server is idle time of the drive.
    None,
    /// So many seconds of the drive in a second; 1 is real time.
    Times(f64),
}

/// A drive's clock against the wall's.
pub struct Clock {
    pace: Pace,
    started: Instant,
    /// What the drive's clock showed then.
    drive_start: Nanos,
    /// What a request and its answer cost on their way: answers leave earlier by that.
    compensation: Mutex<LatencyCompensation>,
    /// The most that any left early, in nanoseconds.
    max_compensation_ns: AtomicU64,
    /// How long the drive had no power: its clock stood still.
    paused: AtomicU64,
    /// Unpaced: since when nothing was in flight.
    idle_since: Mutex<Instant>,
    lateness: Mutex<ReplyLateness>,
}

/// How late answers left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyLateness {
    /// Answers that left.
    pub replies: u64,
    /// Of these, more than 20 us after their time.
    pub late: u64,
    /// The latest.
    pub max: Duration,
}

/// From here on an answer is called late: the kernel's wake-ups alone scatter by about this.
const LATE: Duration = Duration::from_micros(20);

impl Clock {
    /// A drive's time zero is now.
    pub fn start(pace: Pace, compensation: LatencyCompensation) -> Self {
        let now = wall_clock_now();
        let (idle_since, lateness) = (Mutex::new(now), Mutex::default());
        let (max_compensation_ns, paused) = (AtomicU64::new(0), AtomicU64::new(0));
        let (drive_start, compensation) = (Nanos::ZERO, compensation.into());
        Self {
            pace,
            started: now,
            drive_start,
            compensation,
            max_compensation_ns,
            paused,
            idle_since,
            lateness,
        }
    }

    /// The clock of a drive whose replies are sent at once.
    pub fn unpaced() -> Self {
        Self::start(Pace::None, LatencyCompensation::default())
    }

    /// A clock that began when the drive's showed `shown`.
    #[must_use]
    pub fn starting_at(self, drive_time: Nanos) -> Self {
        Self { drive_start: drive_time, ..self }
    }

    /// The clock of a drive that was the same until now, and had no power since a time.
    #[must_use]
    pub fn clone_resumed(&self, paused_since: Option<Instant>) -> Self {
        let idle_since = *self.idle_since.lock().expect("no panic while locked");
        let clock = Self {
            pace: self.pace,
            started: self.started,
            drive_start: self.drive_start,
            compensation: self.compensation().into(),
            max_compensation_ns: AtomicU64::new(self.max_compensation_ns.load(Ordering::Relaxed)),
            paused: AtomicU64::new(self.paused.load(Ordering::Relaxed)),
            idle_since: Mutex::new(idle_since),
            lateness: Mutex::default(),
        };
        if let Some(since) = paused_since {
            clock.resume_after(since);
        }
        clock
    }

    /// Whether answers wait for their time.
    pub fn is_paced(&self) -> bool {
        self.pace != Pace::None
    }

    /// What the drive's clock should show, that shows `shown`.
    pub fn drive_time(&self, shown: Nanos) -> Nanos {
        match self.pace {
            Pace::None => {
                let since = *self.idle_since.lock().expect("no panic while locked");
                shown + nanos(wall_clock_now().saturating_duration_since(since))
            }
            Pace::Times(factor) => {
                let ran = wall_clock_now().saturating_duration_since(self.started + self.paused());
                self.drive_start + nanos(ran.mul_f64(factor))
            }
        }
    }

    /// Time of the drive by which all is done whose answer has left.
    pub fn acknowledged_time(&self, shown: Nanos) -> Nanos {
        let Pace::Times(factor) = self.pace else { return shown };
        let earliest = Duration::from_nanos(self.max_compensation_ns.load(Ordering::Relaxed));
        self.drive_time(shown) + nanos(earliest.mul_f64(factor))
    }

    /// The drive had no power since a time until now.
    pub fn resume_after(&self, time: Instant) {
        let off = wall_clock_now().saturating_duration_since(time).as_nanos() as u64;
        self.paused.fetch_add(off, Ordering::Relaxed);
        self.begin_idle();
    }

    fn paused(&self) -> Duration {
        Duration::from_nanos(self.paused.load(Ordering::Relaxed))
    }

    /// When an answer leaves of what is done at `completed` on the drive's clock, where so many
    /// bytes come with it or its request; at once where nothing is paced.
    pub fn due(&self, completed: Nanos, bytes: u64) -> Option<Instant> {
        let Pace::Times(factor) = self.pace else { return None };
        let compensation = self.compensation().for_bytes(bytes);
        self.max_compensation_ns.fetch_max(compensation.as_nanos() as u64, Ordering::Relaxed);
        let after = completed.saturating_sub(self.drive_start).get();
        let after = Duration::from_nanos(after).div_f64(factor);
        Some(self.started + self.paused() + after.saturating_sub(compensation))
    }

    /// How long something takes by the wall's clock that takes the drive so long; no time where
    /// nothing is paced.
    pub fn wall_time(&self, took: Nanos) -> Duration {
        match self.pace {
            Pace::None => Duration::ZERO,
            Pace::Times(factor) => Duration::from_nanos(took.get()).div_f64(factor),
        }
    }

    /// What a request and its answer cost on their way.
    pub fn compensation(&self) -> LatencyCompensation {
        *self.compensation.lock().expect("no panic while locked")
    }

    /// Says what they cost: from now on answers leave earlier by that.
    pub fn set_compensation(&self, compensation: LatencyCompensation) {
        *self.compensation.lock().expect("no panic while locked") = compensation;
    }

    /// So long before its end a wait is spent looking at the clock.
    pub fn spin(&self) -> Duration {
        self.compensation().wake_up
    }

    /// Nothing is in flight from now on.
    pub fn begin_idle(&self) {
        *self.idle_since.lock().expect("no panic while locked") = wall_clock_now();
    }

    /// Notes that an answer left that was due.
    pub fn note_sent(&self, due: Instant) {
        let late = wall_clock_now().saturating_duration_since(due);
        let mut lateness = self.lateness.lock().expect("no panic while locked");
        lateness.replies += 1;
        lateness.late += u64::from(late > LATE);
        lateness.max = lateness.max.max(late);
    }

    /// How late answers left so far.
    pub fn reply_lateness(&self) -> ReplyLateness {
        *self.lateness.lock().expect("no panic while locked")
    }
}

/// The wall's clock.
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

    use super::{Clock, Pace};
    use crate::latency_compensation::LatencyCompensation;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A clock of a connection on which a byte takes an hour.
    fn slow_clock() -> Clock {
        let compensation = LatencyCompensation {
            ns_per_byte: HOUR.as_nanos() as f64,
            ..LatencyCompensation::default()
        };
        Clock::start(Pace::Times(1.0), compensation)
    }

    #[test]
    fn an_answer_leaves_earlier_by_what_its_bytes_take() {
        let (clock, done) = (slow_clock(), Nanos::from_secs(1_000_000));
        let short = clock.due(done, 4096).unwrap();
        assert_eq!(short - clock.due(done, 4096 + 3).unwrap(), 3 * HOUR);
    }

    #[test]
    fn what_a_long_answer_tells_is_done_when_the_power_is_cut_after_it_left() {
        let clock = slow_clock();
        let before = clock.acknowledged_time(Nanos::ZERO);
        clock.due(Nanos::ZERO, 4096 + 2);
        clock.due(Nanos::ZERO, 512);
        assert!(clock.acknowledged_time(Nanos::ZERO) >= before + Nanos::from_secs(2 * 3600));
        clock.set_compensation(LatencyCompensation::default());
        let heard = clock.acknowledged_time(Nanos::ZERO);
        assert!(
            heard >= before + Nanos::from_secs(2 * 3600),
            "it left when the compensation was long"
        );
    }
}
