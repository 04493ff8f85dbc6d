//! `PowerState`: the section `[power]` of a profile.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;

/// A power state that an idle drive enters by itself, and in which it executes no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerState {
    /// Idle time prior to the transition to it (ITPT).
    pub idle_time: Nanos,
    /// Time to leave it (EXLAT).
    pub exit_latency: Nanos,
}

impl PowerState {
    pub(super) const KEYS: &[&str] = &[
        // Idle time prior to the transition to each power state (ITPT); left out: the drive stays
        // in full power.
        "idle_time",
        // Exit latency of each power state (EXLAT): the first command takes that much longer.
        "exit_latency",
    ];

    /// Reads the states in order of their idle times.
    pub(super) fn read(mut section: Section) -> Result<Vec<Self>, ConfigError> {
        let idle_times = section.times("idle_time")?;
        let exit_latencies = section.times("exit_latency")?;
        let (idle_times, exit_latencies) = match (idle_times, exit_latencies) {
            (None, None) => return Ok(Vec::new()),
            (None, Some(_)) => return Err(ConfigError::missing("power.idle_time")),
            (Some(_), None) => return Err(ConfigError::missing("power.exit_latency")),
            (Some(idle_times), Some(exit_latencies)) => (idle_times, exit_latencies),
        };
        let count = idle_times.len();
        let given = exit_latencies.len();
        let allowed = format!("{count}, as many as power.idle_time");
        let one_each = count == given;
        ConfigError::unless(one_each, "power.exit_latency", format!("{given} times"), allowed)?;
        let ascend = idle_times.windows(2).all(|pair| pair[0] < pair[1]);
        let allowed = "times that ascend".to_owned();
        ConfigError::unless(ascend, "power.idle_time", format!("{count} times"), allowed)?;
        let states = idle_times.into_iter().zip(exit_latencies);
        Ok(states.map(|(idle_time, exit_latency)| Self { idle_time, exit_latency }).collect())
    }
}
