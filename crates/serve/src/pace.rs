//! Real time and a drive's time: the only place of this crate that looks at a clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ssdlab_time::Nanos;

use crate::transport::Lead;

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
    began: Nanos,
    /// What a request and its answer cost on their way: answers leave earlier by that.
    lead: Lead,
    /// How long the drive had no power: its clock stood still.
    stood_still: AtomicU64,
    /// Unpaced: since when nothing was in flight.
    idle_since: Mutex<Instant>,
    lag: Mutex<Lag>,
}

/// How late answers left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Answers that left.
    pub answers: u64,
    /// Of these, more than 20 us after their time.
    pub late: u64,
    /// The latest.
    pub most: Duration,
}

/// From here on an answer is called late: the kernel's wake-ups alone scatter by about this.
const LATE: Duration = Duration::from_micros(20);

impl Clock {
    /// A drive's time zero is now.
    pub fn start(pace: Pace, lead: Lead) -> Self {
        let now = wall();
        let (idle_since, lag) = (Mutex::new(now), Mutex::default());
        let stood_still = AtomicU64::new(0);
        Self { pace, started: now, began: Nanos::ZERO, lead, stood_still, idle_since, lag }
    }

    /// A clock that began when the drive's showed `shown`.
    #[must_use]
    pub fn from(self, shown: Nanos) -> Self {
        Self { began: shown, ..self }
    }

    /// The clock of a drive that was the same until now, and had no power since a time.
    #[must_use]
    pub fn fork(&self, off_since: Option<Instant>) -> Self {
        let idle_since = *self.idle_since.lock().expect("no panic while locked");
        let clock = Self {
            pace: self.pace,
            started: self.started,
            began: self.began,
            lead: self.lead,
            stood_still: AtomicU64::new(self.stood_still.load(Ordering::Relaxed)),
            idle_since: Mutex::new(idle_since),
            lag: Mutex::default(),
        };
        if let Some(since) = off_since {
            clock.stand_still_since(since);
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
                shown + nanos(wall().saturating_duration_since(since))
            }
            Pace::Times(factor) => {
                let ran = wall().saturating_duration_since(self.started + self.stood_still());
                self.began + nanos(ran.mul_f64(factor))
            }
        }
    }

    /// Time of the drive by which all is done whose answer has left.
    pub fn heard_time(&self, shown: Nanos) -> Nanos {
        let Pace::Times(factor) = self.pace else { return shown };
        self.drive_time(shown) + nanos(self.lead.transport.mul_f64(factor))
    }

    /// The drive had no power since a time until now.
    pub fn stand_still_since(&self, time: Instant) {
        let off = wall().saturating_duration_since(time).as_nanos() as u64;
        self.stood_still.fetch_add(off, Ordering::Relaxed);
        self.begin_idle();
    }

    fn stood_still(&self) -> Duration {
        Duration::from_nanos(self.stood_still.load(Ordering::Relaxed))
    }

    /// When an answer leaves of what is done at `completed` on the drive's clock; at once where
    /// nothing is paced.
    pub fn due(&self, completed: Nanos) -> Option<Instant> {
        let Pace::Times(factor) = self.pace else { return None };
        let after = completed.saturating_sub(self.began).get();
        let after = Duration::from_nanos(after).div_f64(factor);
        Some(self.started + self.stood_still() + after.saturating_sub(self.lead.transport))
    }

    /// So long before its end a wait is spent looking at the clock.
    pub fn spin(&self) -> Duration {
        self.lead.waking
    }

    /// Nothing is in flight from now on.
    pub fn begin_idle(&self) {
        *self.idle_since.lock().expect("no panic while locked") = wall();
    }

    /// Notes that an answer left that was due.
    pub fn note_sent(&self, due: Instant) {
        let late = wall().saturating_duration_since(due);
        let mut lag = self.lag.lock().expect("no panic while locked");
        lag.answers += 1;
        lag.late += u64::from(late > LATE);
        lag.most = lag.most.max(late);
    }

    /// How late answers left so far.
    pub fn lag(&self) -> Lag {
        *self.lag.lock().expect("no panic while locked")
    }
}

/// The wall's clock.
#[expect(clippy::disallowed_methods, reason = "the server's pacing is measured in real time")]
pub fn wall() -> Instant {
    Instant::now()
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::new(duration.as_nanos() as u64)
}
