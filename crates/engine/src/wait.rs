//! Waiting until a time, or for a descriptor.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::failpoints::{self, Point};
use crate::pacing::wall_clock_now;

/// A shorter wait that is to end sharply is spent awake: of those who sleep meanwhile one in a
/// hundred is woken too late, and others have had the processor's caches.
const NAP: Duration = Duration::from_micros(100);

/// Waits until a time, whatever comes in; it may end late by what the system's timers are late.
///
/// # Errors
/// The system's.
pub fn sleep_until(time: Instant) -> io::Result<()> {
    wait(&mut [], time, Duration::ZERO).map(drop)
}

/// Waits until a time, whatever comes in. The last part of it, `spin`, is spent looking at the
/// clock: so late the system may wake who sleeps. A short wait is spent so as a whole.
///
/// # Errors
/// The system's.
pub fn wait_precisely(time: Instant, spin: Duration) -> io::Result<()> {
    wait(&mut [], time, spin).map(drop)
}

/// Waits for one of `asked` or until a time; returns whether one of them is ready.
pub fn wait(asked: &mut [PollFd<'_>], time: Instant, spin: Duration) -> io::Result<bool> {
    loop {
        if let Err(error) = failpoints::check(Point::Wait)
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Err(error);
        }
        let left = time.saturating_duration_since(wall_clock_now());
        let is_nap = !spin.is_zero() && left <= NAP;
        let sleep = if is_nap { Duration::ZERO } else { left.saturating_sub(spin) };
        let timeout = Timespec {
            tv_sec: sleep.as_secs().cast_signed(),
            tv_nsec: i64::from(sleep.subsec_nanos()),
        };
        match poll(asked, Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(false),
            // A client on the same processor goes on meanwhile.
            Ok(0) | Err(Errno::INTR) => std::thread::yield_now(),
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::wait_precisely;
    use crate::pacing::wall_clock_now;

    /// How often this thread has gone to sleep.
    fn sleeps() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().split_whitespace().last().unwrap().parse().unwrap()
    }

    #[test]
    fn a_short_sharp_wait_is_spent_awake_and_a_long_one_is_not() {
        let slept = |micros| {
            let before = sleeps();
            for _ in 0..50 {
                let due = wall_clock_now() + Duration::from_micros(micros);
                wait_precisely(due, Duration::from_micros(20)).unwrap();
                assert!(wall_clock_now() >= due);
            }
            sleeps() - before
        };
        assert!(slept(90) < 10);
        assert!(slept(10_000) > 10);
    }
}
