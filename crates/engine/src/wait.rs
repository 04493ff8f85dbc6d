//! Waits until a time, or for a file descriptor.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::failpoints::{self, Point};
use crate::pacing::wall_clock_now;

/// A precise wait shorter than this is a busy wait: one in a hundred short sleeps ends too late,
/// and other threads use the processor's caches in the meantime.
const BUSY_WAIT_MAX: Duration = Duration::from_micros(100);

/// Sleeps until a time. It may return late by the latency of the system's timers.
pub fn sleep_until(time: Instant) -> io::Result<()> {
    wait(&mut [], time, Duration::ZERO).map(drop)
}

/// Waits until a time. The last part, `spin`, is a busy wait, because a sleeping thread may be
/// woken that late. All of a short wait is a busy wait.
pub fn wait_precisely(time: Instant, spin: Duration) -> io::Result<()> {
    wait(&mut [], time, spin).map(drop)
}

/// Waits until one of the descriptors is ready or until a time; returns whether one is ready.
pub fn wait(descriptors: &mut [PollFd<'_>], time: Instant, spin: Duration) -> io::Result<bool> {
    loop {
        if let Err(error) = failpoints::check(Point::Wait)
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Err(error);
        }
        let left = time.saturating_duration_since(wall_clock_now());
        let is_busy_wait = !spin.is_zero() && left <= BUSY_WAIT_MAX;
        let sleep = if is_busy_wait { Duration::ZERO } else { left.saturating_sub(spin) };
        let timeout = Timespec {
            tv_sec: sleep.as_secs().cast_signed(),
            tv_nsec: i64::from(sleep.subsec_nanos()),
        };
        match poll(descriptors, Some(&timeout)) {
            Ok(0) if left.is_zero() => return Ok(false),
            // Lets a client on the same processor run.
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

    fn sleeps() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().split_whitespace().last().unwrap().parse().unwrap()
    }

    #[test]
    fn a_short_precise_wait_does_not_sleep_and_a_long_one_does() {
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
