//! Checks whether a device can run a job.

use std::fmt::Display;

use ssdlab_device::{Device, Op};

use crate::trace::Replay;
use crate::{Arrival, HintKind, Job, ListedRequest, PatternKind, Sync};

/// A job that the device cannot run, because a field is out of range.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {given}; may be {allowed}")]
pub struct JobError {
    /// The name of the job's field.
    pub field: &'static str,
    /// Its value.
    pub given: String,
    /// The values that are allowed.
    pub allowed: String,
}

type CheckResult = Result<(), JobError>;

// Rates and times outside these ranges count as typing errors.
const RATE_MAX: f64 = 1e9;
const SECONDS_MAX: f64 = 1e9;
const SPEED_MIN: f64 = 1e-6;
const SPEED_MAX: f64 = 1e6;
const THREADS_MAX: usize = 256;

impl Job {
    /// Checks the job against a device; the error is the first field that is out of range, with the
    /// allowed values.
    pub fn check(&self, device: &impl Device) -> CheckResult {
        self.check_loop(device)?;
        if let Some(replay) = &self.replay {
            return self.check_replay(replay, device);
        }
        self.check_hint()?;
        if self.op == Op::Flush {
            let no_share = self.read_share == 0.0 && self.trim_share == 0.0;
            let allowed = "read, write or trim if read_share or trim_share is above 0";
            require(no_share, "op", "flush", allowed)?;
            return require(self.threads == 1, "threads", self.threads, "1 for a flush");
        }
        self.check_shares()?;
        self.check_sizes(device)?;
        self.check_region(device)?;
        self.check_pattern(device.sector_bytes())?;
        self.check_threads()?;
        let ends = self.amount_bytes > 0 || self.seconds.is_some();
        require(ends, "amount_bytes", 0, "one block or more, or 0 if seconds is given")
    }

    fn check_loop(&self, device: &impl Device) -> CheckResult {
        let depth = self.queue_depth;
        require((1..=1024).contains(&depth), "queue_depth", depth, "1 to 1024")?;
        require(self.interval_us > 0, "interval_us", 0, "1 or more")?;
        if let Some(seconds) = self.seconds {
            let allowed = format_args!("above 0, up to {SECONDS_MAX}");
            require(seconds > 0.0 && seconds <= SECONDS_MAX, "seconds", seconds, allowed)?;
        }
        if let Arrival::Rate { per_s, .. } = self.arrival {
            let allowed = format_args!("above 0, up to {RATE_MAX}");
            require(per_s > 0.0 && per_s <= RATE_MAX, "arrival.rate.per_s", per_s, allowed)?;
        }
        if let Sync::Flush { every } = self.sync {
            require(every > 0, "sync.flush.every", 0, "1 or more")?;
            let most = device.queue_depth();
            let allowed = format_args!("1 to {most}, the device's own, if sync adds flushes");
            require(depth <= most, "queue_depth", depth, allowed)?;
        }
        Ok(())
    }

    fn check_replay(&self, replay: &Replay, device: &impl Device) -> CheckResult {
        if let Some(speed) = replay.speed {
            let allowed = format_args!("{SPEED_MIN} to {SPEED_MAX}");
            require((SPEED_MIN..=SPEED_MAX).contains(&speed), "replay.speed", speed, allowed)?;
        }
        require(self.threads == 1, "threads", self.threads, "1 for a trace")?;
        let (sector, capacity) = (device.sector_bytes(), device.capacity_bytes());
        let (offset, length) = (self.offset_bytes, self.length_bytes);
        let allowed = format_args!("a multiple of the sector, {sector} bytes, below {capacity}");
        let fits = offset.is_multiple_of(sector) && offset < capacity;
        require(fits, "offset_bytes", offset, allowed)?;
        let room = capacity - offset;
        let allowed = format_args!("a multiple of the sector, {sector} bytes, up to {room}");
        require(is_whole(length, sector) && length <= room, "length_bytes", length, allowed)
    }

    fn check_hint(&self) -> CheckResult {
        if let HintKind::Stream { number } = self.hint {
            require(u8::try_from(number).is_ok(), "hint.stream.number", number, "0 to 255")?;
        }
        let fits = self.hint == HintKind::None || self.op == Op::Write;
        require(fits, "hint", "given", "none unless op is write")
    }

    fn check_shares(&self) -> CheckResult {
        for (name, share) in [("read_share", self.read_share), ("trim_share", self.trim_share)] {
            require((0.0..=1.0).contains(&share), name, share, "0 to 1")?;
        }
        let rest = 1.0 - self.read_share;
        let allowed = format_args!("0 to {rest}, because read_share takes the rest");
        let fits = self.read_share + self.trim_share <= 1.0;
        require(fits, "trim_share", self.trim_share, allowed)
    }

    fn check_sizes(&self, device: &impl Device) -> CheckResult {
        let (sector, longest) = (device.sector_bytes(), device.request_bytes_max());
        let fits = |bytes: u64| is_whole(bytes, sector) && bytes <= longest;
        let allowed = format!("a multiple of the sector, {sector} bytes, up to {longest}");
        let block = self.block_bytes;
        if self.block_mix.is_empty() {
            return require(fits(block), "block_bytes", block, allowed);
        }
        require(block == 0, "block_bytes", block, "0 if block_mix is given")?;
        for &(bytes, weight) in &self.block_mix {
            require(fits(bytes), "block_mix length", bytes, &allowed)?;
            require(weight > 0.0 && weight.is_finite(), "block_mix weight", weight, "above 0")?;
        }
        let fits = self.pattern != PatternKind::RandomOnce;
        require(fits, "block_mix", "given", "left out if pattern is random_once")
    }

    fn check_region(&self, device: &impl Device) -> CheckResult {
        let (sector, offset) = (device.sector_bytes(), self.offset_bytes);
        let allowed = format_args!("a multiple of the sector, {sector} bytes");
        require(offset.is_multiple_of(sector), "offset_bytes", offset, allowed)?;
        let room = device.capacity_bytes().saturating_sub(offset);
        let longest = self.longest_bytes();
        let allowed = format_args!(
            "from one block, {longest} bytes, to the {room} bytes that remain behind the offset"
        );
        let fits = (longest..=room).contains(&self.length_bytes);
        require(fits, "length_bytes", self.length_bytes, allowed)
    }

    fn check_pattern(&self, sector: u64) -> CheckResult {
        let sectors = format!("a multiple of the sector, {sector} bytes");
        match &self.pattern {
            PatternKind::Zipf { theta } => {
                let fits = *theta > 0.0 && *theta <= 10.0;
                require(fits, "pattern.zipf.theta", theta, "above 0, up to 10")
            }
            PatternKind::Strided { stride_bytes: stride, alignment_bytes: alignment } => {
                let whole = is_whole(*stride, sector);
                require(whole, "pattern.strided.stride_bytes", stride, &sectors)?;
                let whole = alignment.is_multiple_of(sector);
                require(whole, "pattern.strided.alignment_bytes", alignment, &sectors)
            }
            PatternKind::Aligned { alignment_bytes: alignment } => {
                let whole = is_whole(*alignment, sector);
                require(whole, "pattern.aligned.alignment_bytes", alignment, &sectors)
            }
            PatternKind::Extents { list, .. } => self.check_extents(list, sector),
            PatternKind::Listed { list } => self.check_listed(list, sector),
            _ => Ok(()),
        }
    }

    fn check_listed(&self, list: &[ListedRequest], sector: u64) -> CheckResult {
        require(!list.is_empty(), "pattern.listed.list", "empty", "one request or more")?;
        let plain = self.hint == HintKind::None && self.block_mix.is_empty();
        require(plain, "pattern", "listed", "another pattern if hint or block_mix is given")?;
        let (start, end) = (self.offset_bytes, self.offset_bytes + self.length_bytes);
        let longest = self.block_bytes;
        for &ListedRequest { offset_bytes: offset, length_bytes: length, .. } in list {
            let fits = self.contains(offset, length, sector) && length > 0 && length <= longest;
            let allowed = format_args!(
                "multiples of the sector, {sector} bytes, from {start} to {end}, at most \
                 block_bytes, {longest}, long"
            );
            let given = format_args!("[{offset}, {length}]");
            require(fits, "pattern.listed.list", given, allowed)?;
        }
        Ok(())
    }

    fn check_extents(&self, list: &[(u64, u64)], sector: u64) -> CheckResult {
        require(!list.is_empty(), "pattern.extents.list", "empty", "one extent or more")?;
        let (start, end) = (self.offset_bytes, self.offset_bytes + self.length_bytes);
        let longest = self.longest_bytes();
        for &(offset, length) in list {
            let fits = self.contains(offset, length, sector) && length >= longest;
            let allowed = format_args!(
                "[offset, length] within bytes {start} to {end}, multiples of the sector, {sector} \
                 bytes, at least {longest} bytes long"
            );
            let given = format_args!("[{offset}, {length}]");
            require(fits, "pattern.extents.list", given, allowed)?;
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
        let threads = self.threads;
        let allowed = format_args!("1 to {THREADS_MAX}");
        require((1..=THREADS_MAX).contains(&threads), "threads", threads, allowed)?;
        let longest = self.longest_bytes();
        let fits = !self.divides_region() || self.length_bytes / threads as u64 >= longest;
        let allowed = format_args!("1 to {}, one block each", self.length_bytes / longest);
        require(fits, "threads", threads, allowed)
    }
}

/// Whether a length is one or more whole sectors.
fn is_whole(bytes: u64, sector: u64) -> bool {
    bytes > 0 && bytes.is_multiple_of(sector)
}

/// The error of a field, unless it fits.
fn require(
    fits: bool,
    field: &'static str,
    given: impl Display,
    allowed: impl Display,
) -> CheckResult {
    let error = || JobError { field, given: given.to_string(), allowed: allowed.to_string() };
    if fits { Ok(()) } else { Err(error()) }
}
