//! `Drive`: a device in virtual time that can lose power.

use std::io;
use std::ops::Range;

use ssdlab_device::{Completion, Device, LBA_BYTES, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

/// The parameters of a drive, which never change.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriveParameters {
    /// Capacity in bytes.
    pub capacity: u64,
    /// Bytes of a mapping unit, the unit of mapping, of trims and of loss at a power cut.
    pub unit_bytes: u64,
    /// Maximum bytes of a request to the drive. Longer commands are split; each part counts as one
    /// write to the units that it touches.
    pub max_transfer: u64,
    /// Whether trimmed units read as zeros; if not, they keep their data.
    pub trims_to_zeros: bool,
    /// Maximum requests in flight.
    pub queue_depth: usize,
    /// Maximum number of units that are buffered and not in flash, which is how many writes a
    /// power cut can undo. 0 if it never undoes any.
    pub volatile_units: u64,
}

impl DriveParameters {
    /// Splits a range at the maximum transfer size.
    pub fn pieces(&self, start: u64, end: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let step = self.max_transfer;
        (start..end).step_by(step as usize).map(move |from| from..end.min(from + step))
    }

    /// The whole units of a range of bytes, in bytes; an empty range if it covers none.
    pub fn whole_units(&self, range: Range<u64>) -> Range<u64> {
        range.start.next_multiple_of(self.unit_bytes)..range.end / self.unit_bytes * self.unit_bytes
    }
}

/// A unit that lost writes in a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWrites {
    /// Number of the unit.
    pub unit: u64,
    /// How many of the newest writes to it are lost.
    pub writes: u32,
}

/// What a power cut lost.
#[derive(Clone, Debug, Default)]
pub struct PowerCutLoss {
    /// Units that lost writes; all others are unchanged.
    pub lost: Vec<LostWrites>,
    /// Number of requests that were in flight and never complete.
    pub unanswered: usize,
}

/// The name and the value of a counter; `None` if the value cannot be known yet.
pub type Counter = (&'static str, Option<f64>);

/// The geometry of a drive, as far as hosts can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Optimal write size in bytes: one stripe over all dies.
    pub stripe_bytes: u64,
    /// Bytes of flash that are erased together.
    pub superblock_bytes: u64,
    /// Number of streams, each of which has superblocks of its own; 0 without streams.
    pub streams: u32,
    /// Whether garbage collection keeps the data of each stream apart.
    pub persistently_isolated: bool,
}

/// What the health log of a drive reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Bytes written by hosts.
    pub written_bytes: u64,
    /// Bytes programmed for any reason.
    pub programmed_bytes: u64,
    /// Bytes erased.
    pub erased_bytes: u64,
    /// Wear in percent of the rated endurance; `None` if the profile has no rating.
    pub percentage_used: Option<f64>,
    /// Spare blocks left to replace bad blocks, in percent.
    pub spare_percent: f64,
    /// Number of units that hold data of hosts.
    pub mapped_units: u64,
    /// Temperature in degrees Celsius; `None` if the drive has no sensor.
    pub celsius: Option<f64>,
}

/// The inside of a simulated drive at one moment, which a real drive does not report: numbers by
/// name, and rows that the drive's own crate describes.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The drive's name.
    pub model: String,
    /// Hidden flash / all flash.
    pub spare: f64,
    /// What never changes.
    pub dimensions: Vec<(&'static str, u64)>,
    /// The drive's clock, and what its parts hold now.
    pub state: Vec<(&'static str, u64)>,
    /// Counts since the drive was new.
    pub counters: Vec<(&'static str, u64)>,
    /// A row for each superblock.
    pub superblocks: Vec<[u32; 4]>,
    /// A row for each die.
    pub dies: Vec<[f64; 4]>,
}

/// A drive to serve: a `Device` with a virtual clock. It has no content: that is in the `Store`.
pub trait Drive: Device + Send {
    /// Its parameters.
    fn parameters(&self) -> DriveParameters;

    /// Whether a unit is mapped.
    fn is_mapped(&self, unit: u64) -> bool;

    /// The die that holds a unit; `None` if it is not in flash.
    fn die_of(&self, unit: u64) -> Option<u32>;

    /// Erase count of the block that holds a unit; `None` if it is not in flash.
    fn erase_count_of(&self, unit: u64) -> Option<u32>;

    /// Whether it has worn out and refuses writes and trims.
    fn is_read_only(&self) -> bool;

    /// Its geometry.
    fn geometry(&self) -> Geometry;

    /// Its health.
    fn health(&self) -> Health;

    /// Bytes that a stream's open superblock still takes.
    fn stream_room(&self, stream: u32) -> u64;

    /// Moves a stream to another superblock; false, and nothing happens, if the open one is empty
    /// or full.
    fn renew_stream(&mut self, stream: u32) -> bool;

    /// An independent clone in the same state.
    fn boxed_clone(&self) -> Box<dyn Drive>;

    /// As `Device::submit`, for a request that is known to be valid. Returns its completion at
    /// once.
    fn submit_timed(&mut self, request: Request) -> Completion;

    /// When the next request in flight completes.
    fn next_completion(&self) -> Option<Nanos>;

    /// Cuts the power now and turns it on again; requests in flight never complete.
    fn power_cut(&mut self) -> PowerCutLoss;

    /// The counters of the drive, as a SMART log would report them.
    fn counters(&self) -> Vec<Counter>;

    /// Its inside; `None` if it does not report that.
    fn inside(&self) -> Option<Inside>;
}

/// Bytes of each write of `restore`.
const REQUEST_BYTES: u64 = 128 << 10;

/// Restores the map of a new drive whose content comes from a file: writes the allocated ranges,
/// which are whole units, to the drive in order, and flushes. The map is then right; wear and
/// placement are those of a new drive that was filled sequentially.
///
/// Returns whether everything is in flash, which is not the case if the drive ignores flushes.
pub fn restore(
    drive: &mut dyn Drive,
    allocated: impl Iterator<Item = io::Result<Range<u64>>>,
) -> io::Result<bool> {
    let step = REQUEST_BYTES.next_multiple_of(drive.parameters().unit_bytes);
    for range in allocated {
        let range = range?;
        for from in (range.start..range.end).step_by(step as usize) {
            let bytes = range.end.min(from + step) - from;
            let blocks = (bytes / LBA_BYTES) as u32;
            execute(drive, Request::new(0, Op::Write, Lba::from_bytes(from), blocks));
        }
    }
    execute(drive, Request::flush(0));
    Ok(drive.boxed_clone().power_cut().lost.is_empty())
}

/// Executes one request at a time: only the order matters here, not the time.
fn execute(drive: &mut dyn Drive, request: Request) {
    drive.submit_timed(request);
    let reaped = drive.reap(Wait::One, &mut Vec::new());
    reaped.expect("a simulated drive has no I/O errors");
}
