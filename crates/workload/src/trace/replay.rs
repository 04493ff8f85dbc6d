//! Replays a trace as a job: maps its volumes to the device and its times to the job's clock.

use std::path::PathBuf;

use serde::Deserialize;
use ssdlab_device::{DeviceError, LBA_BYTES, Lba, Op, Request};
use ssdlab_time::Nanos;

use super::{Entry, Format, ReadOptions, Trace, TraceError};

/// The trace to replay, and how it is mapped to a device.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The trace's file.
    pub path: PathBuf,
    /// The name of a `Format`; `None` to detect it.
    #[serde(default)]
    pub format: Option<String>,
    /// Only the entries of this volume.
    #[serde(default)]
    pub volume: Option<u32>,
    /// Accepts entries in any order.
    #[serde(default)]
    pub any_order: bool,
    /// For each volume, ascending: the byte of the device at which it starts. Addresses beyond the
    /// device's end wrap to its start. A volume that is not listed starts at 0.
    #[serde(default)]
    pub volumes: Vec<(u32, u64)>,
    /// The number of requests, for progress.
    #[serde(default)]
    pub requests: u64,
    /// Speed relative to the trace's own; `None` is as fast as the queue allows.
    #[serde(default)]
    pub speed: Option<f64>,
}

impl Replay {
    /// Opens the trace.
    pub fn open(&self) -> Result<Trace, TraceError> {
        let unknown = || TraceError::Unknown { path: self.path.clone() };
        let format = match &self.format {
            Some(name) => Some(Format::from_name(name).ok_or_else(unknown)?),
            None => None,
        };
        let reading = ReadOptions { format, volume: self.volume, any_order: self.any_order };
        Trace::open(&self.path, reading)
    }
}

/// The requests of a trace, mapped to a part of a device.
pub struct TraceRequests {
    trace: Trace,
    replay: Replay,
    area: ReplayArea,
}

/// The part of a device to which a trace is mapped.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "each name ends in its unit")]
pub struct ReplayArea {
    /// First byte.
    pub offset_bytes: u64,
    /// Length in bytes, a multiple of the sector.
    pub length_bytes: u64,
    /// Sector size: requests are extended to whole sectors.
    pub sector_bytes: u64,
}

impl TraceRequests {
    pub fn new(replay: &Replay, area: ReplayArea) -> Result<Self, DeviceError> {
        let trace = replay.open().map_err(failed)?;
        Ok(Self { trace, replay: replay.clone(), area })
    }

    /// The next request, and when it is due relative to the start.
    ///
    /// # Errors
    /// An entry is invalid: the file has changed since it was checked.
    pub fn next(&mut self) -> Result<Option<(Request, Nanos)>, DeviceError> {
        let Some(entry) = self.trace.next().transpose().map_err(failed)? else { return Ok(None) };
        Ok(Some((self.area.place(&entry, self.volume_start(entry.volume)), self.due(entry.at))))
    }

    fn volume_start(&self, volume: u32) -> u64 {
        let volumes = &self.replay.volumes;
        let found = volumes.binary_search_by_key(&volume, |(number, _)| *number);
        found.map_or(0, |index| volumes[index].1)
    }

    fn due(&self, at: Nanos) -> Nanos {
        match self.replay.speed {
            None => Nanos::ZERO,
            Some(1.0) => at,
            Some(speed) => Nanos::new((at.get() as f64 / speed) as u64),
        }
    }
}

impl ReplayArea {
    /// An entry as a request, extended to whole sectors within the area.
    fn place(&self, entry: &Entry, volume_start: u64) -> Request {
        if entry.op == Op::Flush {
            return Request::flush(0);
        }
        let first = volume_start + entry.offset_bytes;
        let low = first / self.sector_bytes * self.sector_bytes;
        let length = (first + entry.length_bytes - low).next_multiple_of(self.sector_bytes);
        let length = length.min(self.length_bytes);
        // A request that would cross the end is moved before it.
        let low = (low % self.length_bytes).min(self.length_bytes - length);
        let lba = Lba::new((self.offset_bytes + low) / LBA_BYTES);
        let request = Request::new(0, entry.op, lba, (length / LBA_BYTES) as u32);
        Request { durable: entry.durable, ..request }
    }
}

fn failed(error: TraceError) -> DeviceError {
    DeviceError::System { what: "reading the trace", source: std::io::Error::other(error) }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{Lba, Op, Request};
    use ssdlab_time::Nanos;

    use super::{Entry, ReplayArea};

    const AREA: ReplayArea =
        ReplayArea { offset_bytes: 1 << 20, length_bytes: 1 << 20, sector_bytes: 4096 };

    fn placed(offset_bytes: u64, length_bytes: u64, volume_start: u64) -> (u64, u64) {
        let entry = Entry::new(Nanos::ZERO, Op::Read, offset_bytes, length_bytes);
        let Request { lba, blocks, .. } = AREA.place(&entry, volume_start);
        (lba.bytes() - (1 << 20), u64::from(blocks) * 512)
    }

    #[test]
    fn requests_are_extended_to_sectors_and_stay_within_the_area() {
        assert_eq!(placed(8192, 4096, 0), (8192, 4096));
        assert_eq!(placed(8704, 512, 0), (8192, 4096));
        assert_eq!(placed(8704, 4096, 0), (8192, 8192));
        assert_eq!(
            placed((1 << 20) + 4096, 4096, 0),
            (4096, 4096),
            "addresses beyond the end wrap"
        );
        assert_eq!(placed((1 << 20) - 4096, 8192, 0), ((1 << 20) - 8192, 8192));
        assert_eq!(placed(0, 8 << 20, 0), (0, 1 << 20));
        assert_eq!(placed(4096, 4096, 65536), (69632, 4096), "volumes have a start");
    }

    #[test]
    fn a_flush_has_no_address() {
        let entry = Entry::new(Nanos::ZERO, Op::Flush, 0, 0);
        assert_eq!(AREA.place(&entry, 0), Request::flush(0));
        assert_eq!(Lba::new(0), Request::flush(0).lba);
    }
}
