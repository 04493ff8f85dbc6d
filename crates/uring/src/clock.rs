//! `Clock`: real time since a device was opened, from the CPU's time stamp counter if possible.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ssdlab_time::Nanos;

/// Duration of the calibration against the system clock, once per process. Readings that are off by
/// 50 ns in 20 ms make an error of 2.5 ppm.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Wake-up latency of a sleeping thread: the kernel's timer slack of 50 us and a margin. For this
/// last part of a wait the thread polls the clock instead of sleeping.
pub const SPIN: Nanos = Nanos::from_micros(60);

/// Real time since a device was opened.
///
/// The clock is read twice per request. The kernel's clock takes 20 to 25 ns, as much as the rest
/// of the loop; the time stamp counter takes 8 ns. It is used if it is Linux's clock source,
/// because it then has a constant rate and the same value on all cores.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    counter: Option<Counter>,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    start: u64,
    /// Nanoseconds per tick, in units of 2^-64; less than one nanosecond.
    nanos_per_tick: u64,
}

impl Clock {
    /// Starts a clock at zero.
    pub fn start() -> Self {
        let counter = nanos_per_tick()
            .map(|nanos_per_tick| Counter { start: ticks().unwrap_or_default(), nanos_per_tick });
        Self { start: instant(), counter }
    }

    #[inline]
    pub fn now(&self) -> Nanos {
        if let (Some(counter), Some(ticks)) = (&self.counter, ticks()) {
            let passed = u128::from(ticks.saturating_sub(counter.start));
            return Nanos::new(((passed * u128::from(counter.nanos_per_tick)) >> 64) as u64);
        }
        Nanos::new(self.start.elapsed().as_nanos() as u64)
    }

    /// Sleeps until a time, accurate to a microsecond.
    #[expect(clippy::disallowed_methods, reason = "Wait::Until on real devices")]
    pub fn sleep_until(&self, time: Nanos) {
        while let left @ 1.. = time.saturating_sub(self.now()).get() {
            match Nanos::new(left).saturating_sub(SPIN) {
                Nanos::ZERO => std::hint::spin_loop(),
                left => std::thread::sleep(Duration::from_nanos(left.get())),
            }
        }
    }
}

/// The time stamp counter; `None` on CPUs other than x86-64.
#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(clippy::unnecessary_wraps, reason = "other CPUs have no such counter")
)]
fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction, and Linux allows it in user mode.
    return Some(unsafe { core::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[expect(clippy::disallowed_methods, reason = "the lab's one measuring clock")]
fn instant() -> Instant {
    Instant::now()
}

/// The counter's rate, measured once; `None` if it is not Linux's clock source, or below 1 GHz.
fn nanos_per_tick() -> Option<u64> {
    static RATE: OnceLock<Option<u64>> = OnceLock::new();
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    *RATE.get_or_init(|| {
        let trusted = fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc");
        if trusted { calibrate() } else { None }
    })
}

fn calibrate() -> Option<u64> {
    let (from, start) = read_both()?;
    while start.elapsed() < CALIBRATION {}
    let (to, end) = read_both()?;
    let rate = (end.duration_since(start).as_nanos() << 64) / u128::from(to - from).max(1);
    u64::try_from(rate).ok().filter(|rate| *rate > 0)
}

/// Reads the counter and the system clock together: the fastest of 32 tries, during which the
/// thread was not interrupted.
fn read_both() -> Option<(u64, Instant)> {
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
        // The plain clock was read before and after both: the other's span is not longer, except
        // for a calibration error of less than one in a thousand.
        assert!((after - counted).get() <= (end - before).get() * 1001 / 1000 + 10_000);
        assert!(after >= counted + super::Nanos::from_millis(50));
    }
}
