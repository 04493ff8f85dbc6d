//! `Thermometer`: the temperature of a drive, and its slower clock while it throttles.

use ssdlab_time::Nanos;

use crate::config::Thermal;
use crate::counters::Counters;

/// Ticks in a time constant. The temperature is off by less than half a tick: 0.2 % of its rise.
const TICKS: u64 = 256;

/// The most ticks that are computed for a period: after these a drive has the idle temperature.
const TICKS_MAX: u64 = 64 * TICKS;

/// The temperature of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature {
    /// In degrees Celsius.
    pub celsius: f64,
    /// From which temperature on the drive throttles; `None`: never.
    pub limit: Option<f64>,
}

/// The thermal model of a drive.
///
/// Modelled: one temperature for the whole drive. Data that the host reads and pages that are
/// programmed for any cause warm it; the difference to the idle temperature decays exponentially
/// (Newton's law of cooling). From the temperature of each throttling step on, the whole drive is
/// slower by a factor, as if all its clocks were. Every 256th of the time constant the controller
/// reads the temperature and sets the step.
///
/// Source: throttling steps of NVM Express, *Host Controlled Thermal Management* (light and heavy
/// throttling at two temperatures); the numbers are those of each profile.
///
/// Not modelled: sensors in several places, air flow, hysteresis, heat of erases and of the idle
/// power states, flash that wears or errs more when hot, a shutdown.
///
/// Differs from hardware: a request in flight when the step changes completes at the old speed; the
/// link is slower, too.
#[derive(Clone, Debug)]
pub struct Thermometer {
    thermal: Thermal,
    tick: Nanos,
    /// When the temperature is computed next, by the host's clock.
    next_tick: Nanos,
    /// Kelvin above the idle temperature.
    excess: f64,
    /// Bytes read and programmed that have warmed the drive.
    counted: [u64; 2],
    /// The number of throttling steps that the temperature has reached.
    reached: usize,
    /// The current speed as a share of full speed, since a time.
    speed: f64,
    speed_since: Nanos,
    /// How far the drive's clock was behind the host's at that time.
    lag: Nanos,
}

impl Thermometer {
    pub fn new(thermal: &Thermal) -> Self {
        let tick = Nanos::new(thermal.time_constant.get() / TICKS);
        let mut thermometer = Self {
            thermal: thermal.clone(),
            tick,
            next_tick: tick,
            excess: 0.0,
            counted: [0; 2],
            reached: 0,
            speed: 1.0,
            speed_since: Nanos::ZERO,
            lag: Nanos::ZERO,
        };
        thermometer.set_speed(Nanos::ZERO);
        thermometer
    }

    /// Brings the temperature up to date.
    #[inline]
    pub fn advance(&mut self, now: Nanos, counters: &Counters) {
        if now >= self.next_tick {
            self.compute(now, counters);
        }
    }

    #[cold]
    fn compute(&mut self, now: Nanos, counters: &Counters) {
        self.excess += self.heat(counters);
        for _ in 0..TICKS_MAX {
            self.excess *= 1.0 - 1.0 / TICKS as f64;
            self.set_speed(self.next_tick);
            self.next_tick += self.tick;
            if self.next_tick > now {
                return;
            }
        }
        self.next_tick = now + self.tick;
    }

    /// Kelvin by the work since the last time.
    fn heat(&mut self, counters: &Counters) -> f64 {
        let bytes = [counters.host_reads, counters.nand_writes()].map(|n| n * counters.unit_bytes);
        let [read, programmed] = [0, 1].map(|index| (bytes[index] - self.counted[index]) as f64);
        self.counted = bytes;
        read * self.thermal.read_heat + programmed * self.thermal.program_heat
    }

    /// Sets the speed that the temperature demands.
    fn set_speed(&mut self, at: Nanos) {
        let (celsius, steps) = (self.celsius(), &self.thermal.steps);
        let reached = steps.partition_point(|step| step.celsius <= celsius);
        if reached != self.reached {
            let last = reached.checked_sub(1).map(|index| steps[index]);
            self.lag = at - self.drive_time(at);
            self.speed = last.map_or(1.0, |step| step.speed);
            (self.reached, self.speed_since) = (reached, at);
        }
    }

    fn celsius(&self) -> f64 {
        self.thermal.idle + self.excess
    }

    pub fn temperature(&self) -> Temperature {
        let limit = self.thermal.steps.first().map(|step| step.celsius);
        Temperature { celsius: self.celsius(), limit }
    }

    /// The drive's clock at a time of the host's: slower while it throttles.
    pub fn drive_time(&self, now: Nanos) -> Nanos {
        let elapsed = now - self.speed_since;
        let lost = Nanos::new((elapsed.get() as f64 * (1.0 - self.speed)) as u64);
        now - self.lag - lost
    }

    /// The time on the host's clock of a time on the drive's, at the current speed.
    pub fn host_time(&self, now: Nanos, drive_time: Nanos) -> Nanos {
        let ahead = (drive_time - self.drive_time(now)).get();
        now + if self.speed < 1.0 {
            Nanos::new((ahead as f64 / self.speed).round() as u64)
        } else {
            Nanos::new(ahead)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Thermometer;
    use crate::config::{Thermal, ThrottleStep};
    use crate::counters::Counters;
    use ssdlab_time::Nanos;

    #[test]
    fn the_clock_of_a_drive_goes_at_its_speed_and_never_jumps() {
        let thermal = Thermal {
            idle: 40.0,
            read_heat: 1.0,
            program_heat: 0.0,
            time_constant: Nanos::from_millis(256),
            steps: vec![ThrottleStep { celsius: 50.0, speed: 0.5 }],
        };
        let mut thermometer = Thermometer::new(&thermal);
        let counters = Counters { unit_bytes: 1, host_reads: 100, ..Counters::default() };
        let step = Nanos::from_micros(100);
        let (mut now, mut before) = (Nanos::ZERO, Nanos::ZERO);
        while now < Nanos::from_secs(2) {
            now += step;
            thermometer.advance(now, &counters);
            let drive_time = thermometer.drive_time(now);
            let gone = drive_time - before;
            assert!(gone == step || gone == Nanos::new(step.get() / 2), "at {now}: {gone}");
            assert_eq!(thermometer.host_time(now, drive_time), now);
            before = drive_time;
        }
        // Of 100 K above the idle temperature, less than 10 K are left after 589 ticks of 1 ms:
        // (255 / 256)^589 < 0.1. The first tick finds the drive hot.
        let lost = now - thermometer.drive_time(now);
        assert_eq!(lost, Nanos::from_millis((589 - 1) / 2));
    }
}
