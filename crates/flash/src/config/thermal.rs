//! `Thermal`: the section `[thermal]` of a profile.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;

/// How a drive warms up, and when it throttles.
#[derive(Clone, Debug, PartialEq)]
pub struct Thermal {
    /// Temperature of the idle drive in degrees Celsius.
    pub idle: f64,
    /// How much a byte read by the host warms the drive, in kelvin.
    pub read_heat: f64,
    /// How much a byte programmed for any cause warms it, in kelvin.
    pub program_heat: f64,
    /// The time in which the difference to the idle temperature falls to 1/e.
    pub time_constant: Nanos,
    /// The throttling steps, by ascending temperature.
    pub steps: Vec<ThrottleStep>,
}

/// A throttling step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleStep {
    /// The temperature in degrees Celsius from which on the drive is slower.
    pub celsius: f64,
    /// Its speed then, as a share of its full speed.
    pub speed: f64,
}

impl Thermal {
    pub(super) const KEYS: &[&str] = &[
        // Temperature of the idle drive.
        "idle",
        // How much reads of the host warm the drive, for each amount of data.
        "read_heat",
        // How much programs for any cause warm the drive, for each amount of data.
        "program_heat",
        // Time in which the difference to the idle temperature falls to 1/e; required.
        "time_constant",
        // Temperatures from which on the drive throttles; left out: it does not.
        "throttle_at",
        // Speed from each of these temperatures on, as a share of full speed.
        "throttled_speed",
    ];

    /// Reads the section `[thermal]`; `None` if it is absent.
    pub(super) fn read(mut section: Section) -> Result<Option<Self>, ConfigError> {
        if section.is_absent() {
            return Ok(None);
        }
        let time_constant = section.time("time_constant")?;
        let thermal = Self {
            idle: section.temperature("idle")?.ok_or(ConfigError::missing("thermal.idle"))?,
            read_heat: section.heat("read_heat")?.unwrap_or(0.0),
            program_heat: section.heat("program_heat")?.unwrap_or(0.0),
            time_constant: time_constant.ok_or(ConfigError::missing("thermal.time_constant"))?,
            steps: Self::read_steps(&mut section)?,
        };
        let long_enough = thermal.time_constant >= Nanos::from_millis(1);
        let given = format!("{} ns", thermal.time_constant.get());
        let allowed = "1 ms or more".to_owned();
        ConfigError::unless(long_enough, "thermal.time_constant", given, allowed)?;
        Ok(Some(thermal))
    }

    fn read_steps(section: &mut Section) -> Result<Vec<ThrottleStep>, ConfigError> {
        let temperatures = section.temperatures("throttle_at")?.unwrap_or_default();
        let speeds = section.speeds("throttled_speed")?.unwrap_or_default();
        let (count, given) = (temperatures.len(), speeds.len());
        let allowed = format!("{count}, as many as thermal.throttle_at");
        let one_each = count == given;
        ConfigError::unless(one_each, "thermal.throttled_speed", given.to_string(), allowed)?;
        let ascend = temperatures.windows(2).all(|pair| pair[0] < pair[1]);
        let allowed = "temperatures that ascend".to_owned();
        ConfigError::unless(ascend, "thermal.throttle_at", format!("{temperatures:?}"), allowed)?;
        let steps = temperatures.into_iter().zip(speeds);
        Ok(steps.map(|(celsius, speed)| ThrottleStep { celsius, speed }).collect())
    }
}
