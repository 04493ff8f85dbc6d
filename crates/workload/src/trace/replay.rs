//! A trace as a job's requests: where its volumes lie on the device, and when each request is due.

use std::path::PathBuf;

use serde::Deserialize;
use ssdlab_device::{DeviceError, LBA_BYTES, Lba, Op, Request};
use ssdlab_time::Nanos;

use super::{Entry, Format, Reading, Trace, TraceError};

/// Which trace, and how it is laid onto a device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The file.
    pub path: PathBuf,
    /// A name of `Format`; known by its beginning where none is given.
    #[serde(default)]
    pub format: Option<String>,
    /// Only the entries of this volume.
    #[serde(default)]
    pub volume: Option<u32>,
    /// Entries may come at any time before others.
    #[serde(default)]
    pub any_order: bool,
    /// Of each volume, ascending: on which byte of the device it begins. Beyond the device's end
    /// addresses go on from its beginning. A volume that is not named begins at 0.
    #[serde(default)]
    pub volumes: Vec<(u32, u64)>,
    /// How many requests it has: what progress is counted by.
    #[serde(default)]
    pub requests: u64,
    /// Times the trace's own pace; as fast as the queue allows where none is given.
    #[serde(default)]
    pub speed: Option<f64>,
}

impl Replay {
    /// Opens the trace.
    ///
    /// # Errors
    /// As of `Trace::open`, and for a format that has no such name.
    pub fn open(&self) -> Result<Trace, TraceError> {
        let unknown = || TraceError::Unknown { path: self.path.clone() };
        let format = match &self.format {
            Some(name) => Some(Format::named(name).ok_or_else(unknown)?),
            None => None,
        };
        let reading = Reading { format, volume: self.volume, any_order: self.any_order };
        Trace::open(&self.path, reading)
    }
}

/// The requests of a trace, laid onto a part of a device.
pub struct Replayed {
    trace: Trace,
    replay: Replay,
    ground: Ground,
}

/// The part of a device that a trace is laid onto.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "each name ends in its unit")]
pub struct Ground {
    /// Its first byte.
    pub offset_bytes: u64,
    /// Its length in bytes, whole sectors.
    pub length_bytes: u64,
    /// What addresses and lengths are rounded out to.
    pub sector_bytes: u64,
}

impl Replayed {
    /// A replay from its first entry on.
    ///
    /// # Errors
    /// A trace that cannot be opened.
    pub fn new(replay: &Replay, ground: Ground) -> Result<Self, DeviceError> {
        let trace = replay.open().map_err(failed)?;
        Ok(Self { trace, replay: replay.clone(), ground })
    }

    /// The next request and when it is due after the start, if there is one more.
    ///
    /// # Errors
    /// An entry that is wrong: the file is another than the one that was looked at before.
    pub fn next(&mut self) -> Result<Option<(Request, Nanos)>, DeviceError> {
        let Some(entry) = self.trace.next().transpose().map_err(failed)? else { return Ok(None) };
        Ok(Some((self.ground.place(&entry, self.begins(entry.volume)), self.due(entry.at))))
    }

    fn begins(&self, volume: u32) -> u64 {
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

impl Ground {
    /// An entry as a request: rounded out to sectors, and not beyond the end.
    fn place(&self, entry: &Entry, begins: u64) -> Request {
        if entry.op == Op::Flush {
            return Request::flush(0);
        }
        let first = begins + entry.offset_bytes;
        let low = first / self.sector_bytes * self.sector_bytes;
        let length = (first + entry.length_bytes - low).next_multiple_of(self.sector_bytes);
        let length = length.min(self.length_bytes);
        // What would cross the end lies before it.
        let low = (low % self.length_bytes).min(self.length_bytes - length);
        let lba = Lba::new((self.offset_bytes + low) / LBA_BYTES);
        let request = Request::new(0, entry.op, lba, (length / LBA_BYTES) as u32);
        Request { durable: entry.durable, ..request }
    }
}

fn failed(error: TraceError) -> DeviceError {
    DeviceError::System { what: "the trace", source: std::io::Error::other(error) }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{Lba, Op, Request};
    use ssdlab_time::Nanos;

    use super::{Entry, Ground};

    const GROUND: Ground =
        Ground { offset_bytes: 1 << 20, length_bytes: 1 << 20, sector_bytes: 4096 };

    fn placed(offset_bytes: u64, length_bytes: u64, begins: u64) -> (u64, u64) {
        let entry = Entry::new(Nanos::ZERO, Op::Read, offset_bytes, length_bytes);
        let Request { lba, blocks, .. } = GROUND.place(&entry, begins);
        (lba.bytes() - (1 << 20), u64::from(blocks) * 512)
    }

    #[test]
    fn requests_are_rounded_out_to_sectors_and_stay_within_the_ground() {
        assert_eq!(placed(8192, 4096, 0), (8192, 4096));
        assert_eq!(placed(8704, 512, 0), (8192, 4096));
        assert_eq!(placed(8704, 4096, 0), (8192, 8192));
        assert_eq!(placed((1 << 20) + 4096, 4096, 0), (4096, 4096), "beyond the end it goes on");
        assert_eq!(placed((1 << 20) - 4096, 8192, 0), ((1 << 20) - 8192, 8192));
        assert_eq!(placed(0, 8 << 20, 0), (0, 1 << 20));
        assert_eq!(placed(4096, 4096, 65536), (69632, 4096), "a volume has its place");
    }

    #[test]
    fn a_flush_has_no_address() {
        let entry = Entry::new(Nanos::ZERO, Op::Flush, 0, 0);
        assert_eq!(GROUND.place(&entry, 0), Request::flush(0));
        assert_eq!(Lba::new(0), Request::flush(0).lba);
    }
}
