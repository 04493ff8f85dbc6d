//! `Ssd`: the twin behind the `Device` contract: the command queue and the virtual clock.

mod controller;
mod host_link;
mod inspect;
mod read;
mod rows;
mod thermal;
mod write_merging;

use ssdlab_device::{Completion, Device, DeviceError, IoError, LBA_BYTES, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

pub use inspect::{Space, UnitLocation};
pub use rows::{die_rows, superblock_rows};
pub use thermal::Temperature;

use crate::config::{Interface, PowerState, Profile};
use crate::ftl::{LostUnit, Lpn};
use crate::in_flight::InFlight;
use controller::Controller;
use thermal::Thermometer;

/// The error of a write to a read-only drive: EIO, as the kernel reports it.
const READ_ONLY: IoError = IoError { errno: 5 };

/// A drive in virtual time.
///
/// Modelled: requests longer than the link's largest transfer are split; part of a command's
/// latency may occupy the controller's single processor; units of one command that share a page
/// cost one sense; dies work in parallel, channels and link transfer what is ready; a partial write
/// of a unit reads the unit first; an idle drive enters power states by itself, as `NVMe` drives do
/// with autonomous power state transitions, and commands wait until it has left them.
///
/// Not modelled: the host's own time between requests; data that compresses but is not zeros; power
/// states that a host selects; background work that keeps the drive in full power.
///
/// Differs from hardware: trims wait for each other and for nothing else; a durable write waits for
/// all buffered data, as a flush does, and not only for its own pages.
#[derive(Clone, Debug)]
pub struct Ssd {
    capacity: u64,
    endurance: Option<u32>,
    queue_depth: usize,
    now: Nanos,
    in_flight: InFlight,
    /// When the last request in flight completed, by the drive's clock.
    idle_since: Nanos,
    power_states: Vec<PowerState>,
    /// When the drive has left its last power state: no command begins earlier.
    awake: Nanos,
    /// Makes the drive's clock slower than the host's while it throttles.
    thermometer: Option<Box<Thermometer>>,
    controller: Controller,
}

/// The effects of a power cut.
#[derive(Clone, Debug)]
pub struct PowerCut {
    /// Requests that completed before it.
    pub completed: Vec<Completion>,
    /// Ids of requests that never complete, in the order in which they would have. Each unit of a
    /// write among them may or may not be stored.
    pub unanswered: Vec<u64>,
    /// Units that lost writes, by number. All others are kept. A write is *torn* if only some of
    /// its units are lost.
    pub lost: Vec<LostUnit>,
}

impl Ssd {
    /// A new, empty drive of this profile. The seed determines all random choices.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Self {
            capacity: profile.capacity,
            endurance: profile.endurance,
            // NCQ has 32 tags; an NVMe queue is as deep as any job requires.
            queue_depth: if profile.link.interface == Interface::Sata { 32 } else { 1024 },
            now: Nanos::ZERO,
            in_flight: InFlight::default(),
            idle_since: Nanos::ZERO,
            power_states: profile.power_states.clone(),
            awake: Nanos::ZERO,
            thermometer: profile.thermal.as_ref().map(|it| Box::new(Thermometer::new(it))),
            controller: Controller::new(profile, seed),
        }
    }

    /// Submits a request that is inside the drive; returns its completion at once.
    ///
    /// # Panics
    /// As `submit`, and if the request extends beyond the drive.
    #[inline]
    pub fn submit_timed(&mut self, request: Request) -> Completion {
        assert!(self.in_flight.len() < self.queue_depth, "more in flight than the queue holds");
        let now = self.advance_clock();
        if self.in_flight.len() == 0 && now > self.idle_since {
            self.end_idle(now);
        }
        let begin = now.max(self.awake);
        let changes = matches!(request.op, Op::Write | Op::Trim);
        let (completed, outcome) = if changes && self.service().read_only {
            (self.controller.reject(begin), Err(READ_ONLY))
        } else {
            (self.controller.execute(begin, &request), Ok(()))
        };
        let completed = self.host_time(completed);
        let completion = Completion { id: request.id, submitted: self.now, completed, outcome };
        self.in_flight.submit(completion);
        completion
    }

    /// Continues a stream in another superblock, if the drive separates streams; false if the open
    /// one is unused or full.
    pub fn renew_stream(&mut self, stream: u32) -> bool {
        let now = self.advance_clock();
        if self.in_flight.len() == 0 && now > self.idle_since {
            self.end_idle(now);
            self.idle_since = now;
        }
        self.controller.renew_stream(now.max(self.awake), stream)
    }

    /// Brings the temperature up to date; returns the time by the drive's clock.
    #[inline]
    fn advance_clock(&mut self) -> Nanos {
        let Some(thermometer) = &mut self.thermometer else { return self.now };
        thermometer.advance(self.now, &self.controller.ftl.store.counters);
        thermometer.drive_time(self.now)
    }

    /// The time by the drive's clock, which is the host's unless the drive throttles.
    #[inline]
    pub fn drive_now(&self) -> Nanos {
        self.thermometer.as_ref().map_or(self.now, |it| it.drive_time(self.now))
    }

    /// The time by the host's clock of a later time by the drive's.
    #[inline]
    fn host_time(&self, drive_time: Nanos) -> Nanos {
        self.thermometer.as_ref().map_or(drive_time, |it| it.host_time(self.now, drive_time))
    }

    /// Ends the idle time since the last request completed.
    #[inline(never)]
    fn end_idle(&mut self, now: Nanos) {
        self.collect_idle(now);
        let idle = now - self.idle_since;
        let deepest = self.power_states.iter().rev().find(|state| state.idle_time <= idle);
        if let Some(state) = deepest {
            self.awake = now + state.exit_latency;
        }
    }

    /// Collects in the time since the last request completed.
    #[inline(never)]
    fn collect_idle(&mut self, until: Nanos) {
        let Controller { ftl, array, .. } = &mut self.controller;
        ftl.collector.collect_idle(&mut ftl.store, self.idle_since, until, array);
    }

    /// Cuts the power at `at` and restores it.
    pub fn power_cut(&mut self, at: Nanos) -> PowerCut {
        let mut completed = Vec::new();
        while self.now < at {
            self.reap(Wait::Until(at), &mut completed).expect("a twin never goes away");
        }
        assert!(self.now == at, "the power cannot be cut in the past");
        self.reap(Wait::Poll, &mut completed).expect("a twin never goes away");
        let now = self.advance_clock();
        if self.in_flight.len() == 0 {
            self.collect_idle(now);
        }
        let lost = self.controller.power_cut(now);
        self.idle_since = now;
        PowerCut { completed, unanswered: self.in_flight.abandon(), lost }
    }

    /// Sets whether all data that the host writes from now on is zeros. The twin stores no data, so
    /// the server must say.
    pub fn set_writes_zeros(&mut self, zeros: bool) {
        self.controller.writes_zeros = zeros;
    }
}

impl Device for Ssd {
    fn capacity_bytes(&self) -> u64 {
        self.capacity
    }

    fn sector_bytes(&self) -> u64 {
        LBA_BYTES
    }

    fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    fn flash_write_bytes(&self) -> Option<u64> {
        let counters = self.counters();
        Some(counters.nand_writes() * counters.unit_bytes)
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn announce(&mut self, op: Op, lba: Lba) {
        let byte = lba.get().saturating_mul(LBA_BYTES);
        if byte < self.capacity {
            let lpn = Lpn((byte >> self.controller.unit_shift) as u32);
            self.controller.ftl.announce(lpn, op == Op::Write);
        }
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        DeviceError::check(&request, self.capacity, LBA_BYTES)?;
        self.submit_timed(request);
        Ok(())
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.now = self.in_flight.end_of(wait, self.now);
        let before = done.len();
        self.in_flight.complete(self.now, done);
        if done.len() > before {
            self.idle_since = self.advance_clock();
        }
        Ok(())
    }
}
