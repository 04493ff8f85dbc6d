//! `Clock`: real time since a device was opened, from the processor's counter where that is steady.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ssdlab_time::Nanos;

/// How long the counter is held against the system's clock, once a process. Two readings that are
/// 50 ns off in 20 ms make an error of 2.5 parts in a million.
const CALIBRATION: Duration = Duration::from_millis(20);

/// How late a sleeper may wake: the kernel's timer slack of 50 us and a little more. So long before
/// its time a wait stops sleeping and looks at the clock instead.
pub const SPIN: Nanos = Nanos::from_micros(60);

/// Real time since a device was opened.
///
/// Each request is stamped twice, and the kernel's clock costs 20 to 25 ns here, as much as all the
/// rest of the loop. The time stamp counter costs 8. It is used where Linux itself trusts it as its
/// clock source: it then has one rate and one value on all cores.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    counter: Option<Counter>,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    start: u64,
    /// Nanoseconds a tick, less than one, in units of 2^-64.
    nanos_per_tick: u64,
}

impl Clock {
    /// Begins at zero now.
    pub fn start() -> Self {
        let counter = nanos_per_tick()
            .map(|nanos_per_tick| Counter { start: ticks().unwrap_or_default(), nanos_per_tick });
        Self { start: instant(), counter }
    }

    /// The time since.
    #[inline]
    pub fn now(&self) -> Nanos {
        if let (Some(counter), Some(ticks)) = (&self.counter, ticks()) {
            let passed = u128::from(ticks.saturating_sub(counter.start));
            return Nanos::new(((passed * u128::from(counter.nanos_per_tick)) >> 64) as u64);
        }
        Nanos::new(self.start.elapsed().as_nanos() as u64)
    }

    /// Rests until a time, to the microsecond.
    #[expect(clippy::disallowed_methods, reason = "this is what Wait::Until ends in on hardware")]
    pub fn sleep_until(&self, time: Nanos) {
        while let left @ 1.. = time.saturating_sub(self.now()).get() {
            match Nanos::new(left).saturating_sub(SPIN) {
                Nanos::ZERO => std::hint::spin_loop(),
                left => std::thread::sleep(Duration::from_nanos(left.get())),
            }
        }
    }
}

/// The processor's counter; `None` on processors that are not x86-64.
#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(clippy::unnecessary_wraps, reason = "other processors have no such counter")
)]
fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    return Some(unsafe { core::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[expect(clippy::disallowed_methods, reason = "the lab's one measuring clock")]
fn instant() -> Instant {
    Instant::now()
}

/// The counter's rate, measured once; `None` where Linux does not trust it, or below 1 GHz.
fn nanos_per_tick() -> Option<u64> {
    static RATE: OnceLock<Option<u64>> = OnceLock::new();
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    *RATE.get_or_init(|| {
        let trusted = fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc");
        if trusted { calibrate() } else { None }
    })
}

fn calibrate() -> Option<u64> {
    let (from, start) = both()?;
    while start.elapsed() < CALIBRATION {}
    let (to, end) = both()?;
    let rate = (end.duration_since(start).as_nanos() << 64) / u128::from(to - from).max(1);
    u64::try_from(rate).ok().filter(|rate| *rate > 0)
}

/// The counter and the system's clock at one moment: of some tries the one that took the least, in
/// which this thread was not interrupted.
fn both() -> Option<(u64, Instant)> {
    let one = |_| {
        let (before, time, after) = (ticks()?, instant(), ticks()?);
        Some((after - before, before + (after - before) / 2, time))
    };
    let (_, counter, time) = (0..32).filter_map(one).min_by_key(|tried| tried.0)?;
    Some((counter, time))
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn both_clocks_run_at_one_rate() {
        let clock = Clock::start();
        let plain = Clock { counter: None, ..clock };
        let before = plain.now();
        let counted = clock.now();
        clock.sleep_until(counted + super::Nanos::from_millis(50));
        let (after, end) = (clock.now(), plain.now());
        // The plain clock was read before and after both: the other's span is not longer, but for
        // an error of calibration of less than one in a thousand.
        assert!((after - counted).get() <= (end - before).get() * 1001 / 1000 + 10_000);
        assert!(after >= counted + super::Nanos::from_millis(50));
    }
}
