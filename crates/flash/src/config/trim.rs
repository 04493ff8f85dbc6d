//! `Trim`: the latency of trims, and what reads of trimmed addresses return.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;

/// What reads of trimmed addresses return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsBack {
    /// Zeros, as most drives guarantee.
    Zeros,
    /// The old data: the drive need not keep it, but has not removed it.
    OldData,
}

/// The trims of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Latency of each trim in addition to the command's overhead.
    pub time: Nanos,
    /// Additional latency per GiB that it covers, for the map.
    pub time_per_gib: Nanos,
    /// What reads return. The twin stores no data, so the server must implement this.
    pub reads_back: ReadsBack,
}

impl Trim {
    pub(super) const KEYS: &[&str] = &[
        // Latency of each trim in addition to the command's overhead.
        "time",
        // Additional latency for each GiB that it covers.
        "time_per_gib",
        // What reads of trimmed addresses return.
        "reads_back",
    ];

    pub(super) fn read(mut section: Section) -> Result<Self, ConfigError> {
        Ok(Self {
            time: section.time("time")?.unwrap_or(Nanos::ZERO),
            time_per_gib: section.time("time_per_gib")?.unwrap_or(Nanos::ZERO),
            reads_back: match section.word("reads_back", &["zeros", "old data"])?.unwrap_or("zeros")
            {
                "old data" => ReadsBack::OldData,
                _ => ReadsBack::Zeros,
            },
        })
    }

    /// The latency of a trim of `bytes` bytes.
    pub fn time_of(&self, bytes: u64) -> Nanos {
        let per_gib = (u128::from(self.time_per_gib.get()) * u128::from(bytes)) >> 30;
        self.time + Nanos::new(per_gib as u64)
    }
}
