//! `Job`: what to ask of a device, checked against it before the first request.

use serde::Deserialize;
use ssdlab_device::{Device, LBA_BYTES, Op, Region};
use ssdlab_time::Nanos;

/// One job: requests of one kind and length, a fixed number of them outstanding.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What each request does. A flush is one request; the fields on addresses are then ignored.
    pub op: Op,
    /// In which order blocks are visited.
    #[serde(default)]
    pub pattern: PatternKind,
    /// First byte of the part of the device that is used.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Its length in bytes.
    #[serde(default)]
    pub length_bytes: u64,
    /// Bytes of each request.
    #[serde(default)]
    pub block_bytes: u64,
    /// Bytes of all requests together, rounded up to whole blocks.
    #[serde(default)]
    pub amount_bytes: u64,
    /// Requests outstanding at any time.
    #[serde(default = "one")]
    pub queue_depth: usize,
    /// Decides the random order.
    #[serde(default)]
    pub seed: u64,
    /// The length of the intervals in which counts are kept, in milliseconds.
    #[serde(default = "tenth_of_a_second")]
    pub interval_ms: u64,
}

/// The order in which a job visits its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// One after the other, again from the start after the last.
    #[default]
    Sequential,
    /// Each drawn from all blocks.
    Random,
    /// A random order in which no block comes twice before all came once.
    RandomOnce,
}

fn one() -> usize {
    1
}

fn tenth_of_a_second() -> u64 {
    100
}

/// A job that no device, or not this one, can run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is out of range.
    #[error("{field} is {given}; may be {allowed}")]
    Field {
        /// The job's field.
        field: &'static str,
        /// What it says.
        given: u64,
        /// What it may say.
        allowed: String,
    },
}

impl Job {
    /// Checks the job against a device.
    ///
    /// # Errors
    /// The first field that does not fit, with what it may be.
    pub fn check(&self, device: &impl Device) -> Result<(), JobError> {
        if !(1..=1024).contains(&self.queue_depth) {
            return field("queue_depth", self.queue_depth as u64, "1 to 1024");
        }
        if self.interval_ms == 0 {
            return field("interval_ms", 0, "1 or more");
        }
        if self.op == Op::Flush {
            return Ok(());
        }
        let sector = device.sector_bytes();
        let block_max = u64::from(u32::MAX) * LBA_BYTES;
        let fits = |bytes: u64| bytes > 0 && bytes.is_multiple_of(sector);
        if !fits(self.block_bytes) || self.block_bytes > block_max {
            let allowed = format!("a multiple of the sector, {sector} bytes, up to {block_max}");
            return field("block_bytes", self.block_bytes, &allowed);
        }
        if !self.offset_bytes.is_multiple_of(sector) {
            let allowed = format!("a multiple of the sector, {sector} bytes");
            return field("offset_bytes", self.offset_bytes, &allowed);
        }
        let room = device.capacity_bytes().saturating_sub(self.offset_bytes);
        if self.length_bytes < self.block_bytes || self.length_bytes > room {
            let allowed = format!(
                "from one block, {} bytes, to the {room} bytes that the device has from the offset",
                self.block_bytes
            );
            return field("length_bytes", self.length_bytes, &allowed);
        }
        if self.amount_bytes == 0 {
            return field("amount_bytes", 0, "one block or more");
        }
        Ok(())
    }

    /// How many requests the job has.
    pub fn requests(&self) -> u64 {
        if self.op == Op::Flush { 1 } else { self.amount_bytes.div_ceil(self.block_bytes) }
    }

    /// The blocks that it visits.
    pub fn region(&self) -> Region {
        let whole = self.length_bytes / self.block_bytes * self.block_bytes;
        Region::from_bytes(self.offset_bytes, whole)
    }

    /// The length of an interval.
    pub fn interval(&self) -> Nanos {
        Nanos::from_millis(self.interval_ms)
    }
}

fn field(field: &'static str, given: u64, allowed: &str) -> Result<(), JobError> {
    Err(JobError::Field { field, given, allowed: allowed.to_owned() })
}
