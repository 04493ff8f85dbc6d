//! `Trim`: what a trim costs, and what a trimmed address reads as.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;

/// What a host reads where it trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsBack {
    /// Zeros: deterministic, and what most drives promise.
    Zeros,
    /// What stood there before: the drive dropped its duty to keep it, not the content.
    OldData,
}

/// How a drive trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Time that each trim takes beside the command's own overhead.
    pub time: Nanos,
    /// Time a GiB that it covers, for the map.
    pub time_per_gib: Nanos,
    /// What is read back. The twin holds no bytes: whoever serves it does as this says.
    pub reads_back: ReadsBack,
}

impl Trim {
    pub(super) const KEYS: &[&str] = &[
        // What each trim takes beside the command's own overhead.
        "time",
        // What it takes for each GiB that it covers.
        "time_per_gib",
        // What a trimmed address reads as.
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

    /// What a trim of so many bytes takes.
    pub fn time_of(&self, bytes: u64) -> Nanos {
        let per_gib = (u128::from(self.time_per_gib.get()) * u128::from(bytes)) >> 30;
        self.time + Nanos::new(per_gib as u64)
    }
}
