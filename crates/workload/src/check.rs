//! Checks whether a device can run a job.

use std::fmt::Display;

use ssdlab_device::{Device, Op};

use crate::listed::ListedRequest;
use crate::trace::Replay;
use crate::{Arrival, HintKind, Job, PatternKind, Sync};

/// A job that the device cannot run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is out of range.
    #[error("{field} is {given}; may be {allowed}")]
    Field {
        /// The name of the job's field.
        field: &'static str,
        /// Its value.
        given: String,
        /// The values that are allowed.
        allowed: String,
    },
}

type CheckResult = Result<(), JobError>;

// Rates and times out of these ranges are taken for typing errors.
const RATE_MAX: f64 = 1e9;
const SECONDS_MAX: f64 = 1e9;
const SPEED_MIN: f64 = 1e-6;
const SPEED_MAX: f64 = 1e6;
const THREADS_MAX: usize = 256;

impl Job {
    /// Checks the job against a device.
    ///
    /// # Errors
    /// The first field that is out of range, with the allowed values.
    pub fn check(&self, device: &impl Device) -> CheckResult {
        self.check_loop(device)?;
        if let Some(replay) = &self.replay {
            return self.check_replay(replay, device);
        }
        self.check_hint()?;
        if self.op == Op::Flush {
            return self.check_flush();
        }
        self.check_shares()?;
        self.check_sizes(device)?;
        self.check_region(device)?;
        self.check_pattern(device.sector_bytes())?;
        self.check_threads()?;
        if self.amount_bytes == 0 && self.seconds.is_none() {
            return field("amount_bytes", 0, "one block or more, or 0 if seconds is given");
        }
        Ok(())
    }

    fn check_loop(&self, device: &impl Device) -> CheckResult {
        if !(1..=1024).contains(&self.queue_depth) {
            return field("queue_depth", self.queue_depth, "1 to 1024");
        }
        if self.interval_ms == 0 {
            return field("interval_ms", 0, "1 or more");
        }
        if let Some(seconds) = self.seconds
            && !(seconds > 0.0 && seconds <= SECONDS_MAX)
        {
            return field("seconds", seconds, &format!("above 0, up to {SECONDS_MAX}"));
        }
        if let Arrival::Rate { per_s, .. } = self.arrival
            && !(per_s > 0.0 && per_s <= RATE_MAX)
        {
            return field("arrival.rate.per_s", per_s, &format!("above 0, up to {RATE_MAX}"));
        }
        if let Sync::Flush { every } = self.sync {
            if every == 0 {
                return field("sync.flush.every", 0, "1 or more");
            }
            let depth = device.queue_depth();
            if self.queue_depth > depth {
                let allowed = format!("1 to {depth}, the device's own, if sync adds flushes");
                return field("queue_depth", self.queue_depth, &allowed);
            }
        }
        Ok(())
    }

    fn check_replay(&self, replay: &Replay, device: &impl Device) -> CheckResult {
        if let Some(speed) = replay.speed
            && !(SPEED_MIN..=SPEED_MAX).contains(&speed)
        {
            return field("replay.speed", speed, &format!("{SPEED_MIN} to {SPEED_MAX}"));
        }
        if self.threads != 1 {
            return field("threads", self.threads, "1 for a trace");
        }
        let (sector, capacity) = (device.sector_bytes(), device.capacity_bytes());
        let whole = |bytes: u64| bytes.is_multiple_of(sector);
        if !whole(self.offset_bytes) || self.offset_bytes >= capacity {
            let allowed = format!("a multiple of the sector, {sector} bytes, below {capacity}");
            return field("offset_bytes", self.offset_bytes, &allowed);
        }
        let room = capacity - self.offset_bytes;
        let length = self.length_bytes;
        if !whole(length) || length == 0 || length > room {
            let allowed = format!("a multiple of the sector, {sector} bytes, up to {room}");
            return field("length_bytes", length, &allowed);
        }
        Ok(())
    }

    fn check_hint(&self) -> CheckResult {
        if let HintKind::Stream { number } = self.hint
            && number > u32::from(u8::MAX)
        {
            return field("hint.stream.number", number, "0 to 255");
        }
        if self.hint != HintKind::None && self.op != Op::Write {
            return field("hint", "given", "none unless op is write");
        }
        Ok(())
    }

    fn check_flush(&self) -> CheckResult {
        if self.read_share != 0.0 || self.trim_share != 0.0 {
            return field(
                "op",
                "flush",
                "read, write or trim if read_share or trim_share is above 0",
            );
        }
        if self.threads != 1 {
            return field("threads", self.threads, "1 for a flush");
        }
        Ok(())
    }

    fn check_shares(&self) -> CheckResult {
        for (name, share) in [("read_share", self.read_share), ("trim_share", self.trim_share)] {
            if !(0.0..=1.0).contains(&share) {
                return field(name, share, "0 to 1");
            }
        }
        if self.read_share + self.trim_share > 1.0 {
            let allowed =
                format!("0 to {}, because read_share takes the rest", 1.0 - self.read_share);
            return field("trim_share", self.trim_share, &allowed);
        }
        Ok(())
    }

    fn check_sizes(&self, device: &impl Device) -> CheckResult {
        let (sector, longest) = (device.sector_bytes(), device.request_bytes_max());
        let fits = |bytes: u64| bytes > 0 && bytes.is_multiple_of(sector) && bytes <= longest;
        let allowed = format!("a multiple of the sector, {sector} bytes, up to {longest}");
        if self.block_mix.is_empty() {
            if !fits(self.block_bytes) {
                return field("block_bytes", self.block_bytes, &allowed);
            }
            return Ok(());
        }
        if self.block_bytes != 0 {
            return field("block_bytes", self.block_bytes, "0 if block_mix is given");
        }
        for &(bytes, weight) in &self.block_mix {
            if !fits(bytes) {
                return field("block_mix length", bytes, &allowed);
            }
            if !(weight > 0.0 && weight.is_finite()) {
                return field("block_mix weight", weight, "above 0");
            }
        }
        if self.pattern == PatternKind::RandomOnce {
            return field("block_mix", "given", "left out if pattern is random_once");
        }
        Ok(())
    }

    fn longest(&self) -> u64 {
        self.sizes().map(|(bytes, _)| bytes).max().expect("a job has a size")
    }

    fn check_region(&self, device: &impl Device) -> CheckResult {
        let sector = device.sector_bytes();
        if !self.offset_bytes.is_multiple_of(sector) {
            let allowed = format!("a multiple of the sector, {sector} bytes");
            return field("offset_bytes", self.offset_bytes, &allowed);
        }
        let room = device.capacity_bytes().saturating_sub(self.offset_bytes);
        let longest = self.longest();
        if self.length_bytes < longest || self.length_bytes > room {
            let allowed = format!(
                "from one block, {longest} bytes, to the {room} bytes that remain behind the offset"
            );
            return field("length_bytes", self.length_bytes, &allowed);
        }
        Ok(())
    }

    fn check_pattern(&self, sector: u64) -> CheckResult {
        let whole = |bytes: u64| bytes > 0 && bytes.is_multiple_of(sector);
        let sectors = format!("a multiple of the sector, {sector} bytes");
        match &self.pattern {
            PatternKind::Zipf { theta } if !(*theta > 0.0 && *theta <= 10.0) => {
                field("pattern.zipf.theta", theta, "above 0, up to 10")
            }
            PatternKind::Strided { stride_bytes, .. } if !whole(*stride_bytes) => {
                field("pattern.strided.stride_bytes", stride_bytes, &sectors)
            }
            PatternKind::Strided { alignment_bytes, .. }
                if !alignment_bytes.is_multiple_of(sector) =>
            {
                field("pattern.strided.alignment_bytes", alignment_bytes, &sectors)
            }
            PatternKind::Aligned { alignment_bytes } if !whole(*alignment_bytes) => {
                field("pattern.aligned.alignment_bytes", alignment_bytes, &sectors)
            }
            PatternKind::Extents { list, .. } => self.check_extents(list, sector),
            PatternKind::Listed { list } => self.check_listed(list, sector),
            _ => Ok(()),
        }
    }

    fn check_listed(&self, list: &[ListedRequest], sector: u64) -> CheckResult {
        if list.is_empty() {
            return field("pattern.listed.list", "empty", "one request or more");
        }
        if self.hint != HintKind::None || !self.block_mix.is_empty() {
            return field("pattern", "listed", "another pattern if hint or block_mix is given");
        }
        for &ListedRequest { offset_bytes: offset, length_bytes: length, .. } in list {
            if !self.contains(offset, length, sector) || length == 0 || length > self.block_bytes {
                let allowed = format!(
                    "multiples of the sector, {sector} bytes, from {} to {}, at most block_bytes, \
                     {}, long",
                    self.offset_bytes,
                    self.offset_bytes + self.length_bytes,
                    self.block_bytes
                );
                return field("pattern.listed.list", format!("[{offset}, {length}]"), &allowed);
            }
        }
        Ok(())
    }

    fn check_extents(&self, list: &[(u64, u64)], sector: u64) -> CheckResult {
        if list.is_empty() {
            return field("pattern.extents.list", "empty", "one extent or more");
        }
        let longest = self.longest();
        for &(offset, length) in list {
            if !self.contains(offset, length, sector) || length < longest {
                let allowed = format!(
                    "[offset, length] within bytes {} to {}, multiples of the sector, {sector} \
                     bytes, at least {longest} bytes long",
                    self.offset_bytes,
                    self.offset_bytes + self.length_bytes,
                );
                return field("pattern.extents.list", format!("[{offset}, {length}]"), &allowed);
            }
        }
        Ok(())
    }

    /// Whether a range consists of whole sectors within the job's region.
    fn contains(&self, offset: u64, length: u64, sector: u64) -> bool {
        let end = self.offset_bytes + self.length_bytes;
        offset >= self.offset_bytes
            && offset.checked_add(length).is_some_and(|range_end| range_end <= end)
            && offset.is_multiple_of(sector)
            && length.is_multiple_of(sector)
    }

    fn check_threads(&self) -> CheckResult {
        if !(1..=THREADS_MAX).contains(&self.threads) {
            return field("threads", self.threads, &format!("1 to {THREADS_MAX}"));
        }
        let part = self.length_bytes / self.threads as u64;
        if self.divides_region() && part < self.longest() {
            let allowed = format!("1 to {}, one block each", self.length_bytes / self.longest());
            return field("threads", self.threads, &allowed);
        }
        Ok(())
    }
}

fn field(field: &'static str, given: impl Display, allowed: &str) -> CheckResult {
    Err(JobError::Field { field, given: given.to_string(), allowed: allowed.to_owned() })
}
