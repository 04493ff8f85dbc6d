//! `FakeDrive`: fixed latency, and each write is volatile until a flush or FUA.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_device::{Completion, Device, DeviceError, Hint, LBA_BYTES, Op, Request, Wait};
use ssdlab_engine::{
    Clock, Counter, Drive, DriveParameters, Engine, Geometry, Health, Inside, LatencyCompensation,
    LostWrites, Pace, PowerCutLoss, Store,
};
use ssdlab_time::Nanos;

/// Bytes of a mapping unit.
pub const UNIT: u64 = 4096;
/// Capacity in bytes.
pub const CAPACITY: u64 = 8 << 20;
/// Maximum transfer in bytes by default.
pub const MAX_TRANSFER: u64 = 16 << 10;

/// The behaviour of a fake drive.
#[derive(Clone, Copy)]
pub struct DriveOptions {
    /// Latency of each request.
    pub latency: Nanos,
    /// Whether a power cut loses nothing.
    pub power_loss_protection: bool,
    /// Whether a flush makes data durable.
    pub honours_flush: bool,
    /// Whether trimmed units read as zeros.
    pub trims_to_zeros: bool,
    /// Requests in flight at most.
    pub queue_depth: usize,
    /// The drive becomes read-only after this number of writes.
    pub endurance_writes: u64,
    /// Number of streams, in superblocks of 64 KiB.
    pub streams: u32,
    /// Longer requests are split; a unit at a split is written twice.
    pub max_transfer: u64,
    /// The health of the drive; `mapped_units` is ignored.
    pub health: Health,
}

impl Default for DriveOptions {
    fn default() -> Self {
        Self {
            latency: Nanos::from_micros(50),
            power_loss_protection: false,
            honours_flush: true,
            trims_to_zeros: true,
            queue_depth: 64,
            endurance_writes: u64::MAX,
            streams: 0,
            max_transfer: MAX_TRANSFER,
            health: Health { spare_percent: 100.0, ..Health::default() },
        }
    }
}

/// A drive that loses unflushed data in a power cut. Unit n is on die n % 4, and its block
/// was erased n times.
#[derive(Clone, Default)]
pub struct FakeDrive {
    options: DriveOptions,
    now: Nanos,
    in_flight: Vec<Completion>,
    /// Writes to each unit since the last flush.
    volatile: BTreeMap<u64, u32>,
    mapped: BTreeSet<u64>,
    requests: BTreeMap<&'static str, u64>,
}

impl FakeDrive {
    /// An empty drive.
    pub fn new(options: DriveOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn count(&mut self, request: &Request) {
        let name = match request.op {
            Op::Read => "reads",
            Op::Write => "writes",
            Op::Trim => "trims",
            Op::Flush => "flushes",
        };
        *self.requests.entry(name).or_default() += 1;
        let hinted = match request.hint {
            Hint::None => "unhinted",
            Hint::Stream(0) => "stream 0",
            Hint::Stream(_) => "other streams",
            Hint::AppendAfter(_) => "appends",
            Hint::Overwrite => "overwrites",
        };
        *self.requests.entry(hinted).or_default() += 1;
        let (start, end) = (request.lba.bytes(), request.lba.bytes() + request.bytes());
        match request.op {
            Op::Write => {
                for piece in self.parameters().pieces(start, end) {
                    for unit in piece.start / UNIT..piece.end.div_ceil(UNIT) {
                        self.mapped.insert(unit);
                        *self.volatile.entry(unit).or_default() += 1;
                    }
                }
                if request.durable && self.options.honours_flush {
                    self.volatile.clear();
                }
            }
            Op::Trim => {
                for unit in start.div_ceil(UNIT)..end / UNIT {
                    self.mapped.remove(&unit);
                    self.volatile.remove(&unit);
                }
            }
            Op::Flush if self.options.honours_flush => self.volatile.clear(),
            Op::Read | Op::Flush => {}
        }
    }
}

impl Device for FakeDrive {
    fn capacity_bytes(&self) -> u64 {
        CAPACITY
    }

    fn sector_bytes(&self) -> u64 {
        LBA_BYTES
    }

    fn queue_depth(&self) -> usize {
        self.options.queue_depth
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        DeviceError::check(&request, CAPACITY, LBA_BYTES)?;
        self.submit_timed(request);
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let next = self.next_completion();
        let until = match wait {
            Wait::Poll => self.now,
            Wait::One => next.unwrap_or(self.now),
            Wait::Until(time) => next.map_or(time, |next| next.min(time)),
        };
        self.now = self.now.max(until);
        let now = self.now;
        done.extend(self.in_flight.extract_if(.., |each| each.completed <= now));
        Ok(())
    }
}

impl Drive for FakeDrive {
    fn parameters(&self) -> DriveParameters {
        let DriveOptions { max_transfer, trims_to_zeros, queue_depth, .. } = self.options;
        let is_volatile = !self.options.power_loss_protection;
        DriveParameters {
            capacity: CAPACITY,
            unit_bytes: UNIT,
            max_transfer,
            trims_to_zeros,
            queue_depth,
            volatile_units: if is_volatile { CAPACITY / UNIT * 4 } else { 0 },
        }
    }

    fn is_mapped(&self, unit: u64) -> bool {
        self.mapped.contains(&unit)
    }

    fn die_of(&self, unit: u64) -> Option<u32> {
        self.is_mapped(unit).then_some((unit % 4) as u32)
    }

    fn erase_count_of(&self, unit: u64) -> Option<u32> {
        self.is_mapped(unit).then_some(unit as u32)
    }

    fn is_read_only(&self) -> bool {
        self.requests.get("writes").is_some_and(|writes| *writes >= self.options.endurance_writes)
    }

    fn boxed_clone(&self) -> Box<dyn Drive> {
        Box::new(self.clone())
    }

    fn geometry(&self) -> Geometry {
        let streams = self.options.streams;
        Geometry {
            streams,
            superblock_bytes: 64 << 10,
            stripe_bytes: 32 << 10,
            persistently_isolated: false,
        }
    }

    fn health(&self) -> Health {
        Health { mapped_units: self.mapped.len() as u64, ..self.options.health }
    }

    fn stream_room(&self, stream: u32) -> u64 {
        u64::from(stream + 1) * UNIT
    }

    /// The open superblocks of even streams are in use.
    fn renew_stream(&mut self, stream: u32) -> bool {
        *self.requests.entry("renewals").or_default() += 1;
        stream.is_multiple_of(2)
    }

    fn submit_timed(&mut self, request: Request) -> Completion {
        assert!(self.in_flight.len() < self.options.queue_depth, "the queue is full");
        self.count(&request);
        let completion = Completion {
            id: request.id,
            submitted: self.now,
            completed: self.now + self.options.latency,
            outcome: Ok(()),
        };
        self.in_flight.push(completion);
        completion
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.in_flight.iter().map(|each| each.completed).min()
    }

    fn power_cut(&mut self) -> PowerCutLoss {
        let unanswered = self.in_flight.len();
        self.in_flight.clear();
        let volatile = std::mem::take(&mut self.volatile);
        let lost = volatile.into_iter().map(|(unit, writes)| LostWrites { unit, writes });
        let lost = if self.options.power_loss_protection { Vec::new() } else { lost.collect() };
        PowerCutLoss { lost, unanswered }
    }

    fn counters(&self) -> Vec<Counter> {
        self.requests.iter().map(|(name, count)| (*name, Some(*count as f64))).collect()
    }

    fn inside(&self) -> Option<Inside> {
        None
    }
}

/// An engine with a fake drive, whose data is in memory.
pub fn engine(options: DriveOptions, pace: Pace) -> Engine {
    let drive = FakeDrive::new(options);
    let store = Store::in_memory(&drive.parameters());
    Engine::new(Box::new(drive), store, Clock::start(pace, LatencyCompensation::default()))
}

/// A counter of an engine's drive; 0 if nothing was counted yet.
pub fn counter(engine: &Engine, name: &str) -> u64 {
    let found = engine.counters().into_iter().find(|(each, _)| *each == name);
    found.and_then(|(_, value)| value).unwrap_or(0.0) as u64
}
