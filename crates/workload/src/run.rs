//! The loop that runs a job on a device: keeps requests in flight and records their latencies.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ssdlab_device::{Completion, Device, DeviceError, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::arrival::Arrivals;
use crate::flash_writes::FlashWrites;
use crate::in_flight::InFlight;
use crate::recorder::{Outcome, Recorder};
use crate::requests::Requests;
use crate::{Job, Sync};

/// Period of progress reports during a rest or a wait for an arrival, which can then be stopped.
pub const REST_STEP: Nanos = Nanos::from_millis(50);

/// Progress of a job or a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests completed, without the flushes of `sync`; for a rest, nanoseconds elapsed.
    pub done: u64,
    /// Requests of the whole job, estimated if lengths are mixed or `seconds` is the limit; for a
    /// rest, its nanoseconds.
    pub total: u64,
    /// The device's clock.
    pub now: Nanos,
}

/// A callback that receives the progress of a job and may stop it.
pub trait Watch: FnMut(Progress) -> ControlFlow<()> {}
impl<F: FnMut(Progress) -> ControlFlow<()>> Watch for F {}

/// Runs a checked job on one queue; `run_threads` runs it on several.
///
/// In a closed loop a request arrives when another one completes, in an open loop at its own time.
/// A request for which `queue_depth` or the device's queue has no room waits, and its latency
/// counts from its arrival. The first request that fails ends the job after those in flight have
/// completed; the outcome then counts errors. A device that is gone also ends it: the outcome has
/// what was measured, and the failure.
///
/// # Errors
/// The device is gone or refused a request before anything was measured.
pub fn run<D: Device>(
    device: &mut D,
    job: &Job,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    let start = device.now();
    run_from(device, job, start, watch)
}

/// Like `run`, with intervals and arrivals relative to `start`.
pub fn run_from<D: Device>(
    device: &mut D,
    job: &Job,
    start: Nanos,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    let mut run = SingleRun::new(device, job, start)?;
    while run.turn(device, watch).is_continue() {}
    run.finish(device)
}

/// A job in progress on one queue.
pub struct SingleRun {
    pub driver: Driver,
    /// Empty between two turns.
    done: Vec<Completion>,
    last: Progress,
    flash_writes: FlashWrites,
}

impl SingleRun {
    pub fn new<D: Device>(device: &D, job: &Job, start: Nanos) -> Result<Self, DeviceError> {
        Ok(Self {
            driver: Driver::new(job, device, start)?,
            done: Vec::with_capacity(job.queue_depth),
            last: Progress { done: 0, total: 0, now: start },
            flash_writes: FlashWrites::new(device),
        })
    }

    /// One turn of the loop: submits what can be, waits for the next completions and counts them.
    /// Breaks when the job has ended.
    #[inline]
    pub fn turn<D: Device>(&mut self, device: &mut D, watch: &mut impl Watch) -> ControlFlow<()> {
        let driver = &mut self.driver;
        let next = driver.issue(device);
        if driver.in_flight.is_empty() && next.is_none() {
            if driver.estimated && driver.running && self.last.done != self.last.total {
                let _ = watch(Progress { total: self.last.done, ..self.last });
            }
            return ControlFlow::Break(());
        }
        let wait = next.map_or(Wait::One, |time| Wait::Until(time.min(device.now() + REST_STEP)));
        if let Err(error) = device.reap(wait, &mut self.done) {
            driver.fail(error);
            return ControlFlow::Break(());
        }
        // By reference: copying in wider words than were written stalls the CPU.
        for completion in &self.done {
            driver.complete(completion);
        }
        self.flash_writes.attribute(device, &mut driver.recorder);
        // Completions have the time: reading the clock costs as much as the rest of the loop.
        let now = if self.done.is_empty() { device.now() } else { driver.recorder.record.end };
        self.done.clear();
        self.last = driver.progress(now);
        if watch(self.last).is_break() {
            (driver.recorder.stopped, driver.running) = (true, false);
        }
        ControlFlow::Continue(())
    }

    pub fn finish(mut self, device: &impl Device) -> Result<Outcome, DeviceError> {
        self.driver.finish(device, &mut self.flash_writes)
    }

    /// As `Driver::try_clone`.
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self {
            driver: self.driver.try_clone()?,
            done: Vec::with_capacity(self.done.capacity()),
            last: self.last,
            flash_writes: self.flash_writes.clone(),
        })
    }
}

/// One queue of a job: its requests, those in flight, and its records.
pub struct Driver {
    requests: Requests,
    /// For an open loop.
    arrivals: Option<Arrivals>,
    pub in_flight: InFlight,
    pub recorder: Recorder,
    failure: Option<DeviceError>,
    /// False once the job was stopped or a request failed.
    pub running: bool,
    /// No request starts at or after this time.
    deadline: Nanos,
    /// Requests of the job's amount.
    amount: u64,
    /// `amount`, or fewer if the deadline comes first at the rate so far.
    total: u64,
    /// Whether `total` is an estimate.
    estimated: bool,
    /// When to estimate `total` again.
    estimate_at: Nanos,
    /// Number of writes after which a flush is due.
    flush_every: Option<u64>,
    writes_unflushed: u64,
    /// Arrival times of flushes not issued yet.
    flushes_due: VecDeque<Nanos>,
    flushes_done: u64,
}

impl Driver {
    pub fn new(job: &Job, device: &impl Device, start: Nanos) -> Result<Self, DeviceError> {
        let arrivals = Arrivals::new(job, start);
        let closed_since = arrivals.is_none().then_some(start);
        Ok(Self {
            requests: Requests::new(job, device.sector_bytes())?,
            arrivals,
            in_flight: InFlight::new(job.queue_depth, device.queue_depth(), closed_since),
            recorder: Recorder::new(job, start),
            failure: None,
            running: true,
            deadline: job.deadline(start),
            amount: job.requests(),
            total: job.requests(),
            estimated: job.seconds.is_some() || !job.block_mix.is_empty(),
            estimate_at: if job.seconds.is_some() { start } else { Nanos::MAX },
            flush_every: match job.sync {
                Sync::Flush { every } => Some(every),
                Sync::None | Sync::Durable => None,
            },
            writes_unflushed: 0,
            flushes_due: VecDeque::new(),
            flushes_done: 0,
        })
    }

    /// A driver that continues as this one does; `None` as for `Requests::try_clone`.
    pub fn try_clone(&self) -> Option<Self> {
        self.failure.is_none().then_some(())?;
        Some(Self {
            requests: self.requests.try_clone()?,
            arrivals: self.arrivals.clone(),
            in_flight: self.in_flight.clone(),
            recorder: self.recorder.clone(),
            failure: None,
            flushes_due: self.flushes_due.clone(),
            ..*self
        })
    }

    /// Submits all requests that can be; returns when the next one arrives, if that is in the
    /// future.
    pub fn issue(&mut self, device: &mut impl Device) -> Option<Nanos> {
        while self.running && self.in_flight.has_room() {
            if let Some(since) = self.flushes_due.pop_front() {
                let request = Request::flush(self.in_flight.next_id());
                self.submit(device, request, Some(since));
                continue;
            }
            if !self.requests.has_more() {
                if let Some(failure) = self.requests.take_failure() {
                    self.fail(failure);
                }
                return None;
            }
            let arrival = match &mut self.arrivals {
                None if self.recorder.record.end >= self.deadline => return None,
                None => None,
                Some(arrivals) => {
                    let (next, now) = (arrivals.next(&self.requests), device.now());
                    if next.max(now) >= self.deadline {
                        return None;
                    }
                    if next > now {
                        return Some(next);
                    }
                    arrivals.advance();
                    self.recorder.lag.add(now - next);
                    Some(next)
                }
            };
            let announce = |op, lba| device.announce(op, lba);
            let request = self.requests.next(self.in_flight.next_id(), announce);
            self.submit(device, request, arrival);
        }
        None
    }

    fn submit(&mut self, device: &mut impl Device, request: Request, arrival: Option<Nanos>) {
        match device.submit(request) {
            Ok(()) => self.in_flight.submit(&request, arrival),
            Err(error) => self.fail(error),
        }
    }

    #[cold]
    pub fn fail(&mut self, error: DeviceError) {
        (self.failure, self.running) = (Some(error), false);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called in one place, for each request")]
    pub fn complete(&mut self, completion: &Completion) {
        let pending = self.in_flight.complete(completion);
        match completion.outcome {
            Ok(()) => self.recorder.add(completion.completed, pending),
            Err(error) => {
                self.recorder.add_error(completion.completed, error);
                self.running = false;
            }
        }
        if let Some(every) = self.flush_every {
            self.count_for_flush(pending.op, every, completion.completed);
        }
    }

    /// Counts a completed request of a job that flushes after every `every` writes.
    fn count_for_flush(&mut self, op: Op, every: u64, completed: Nanos) {
        if op == Op::Flush {
            self.flushes_done += 1;
        } else if op == Op::Write {
            self.writes_unflushed += 1;
            if self.writes_unflushed == every {
                self.writes_unflushed = 0;
                self.flushes_due.push_back(completed);
            }
        }
    }

    #[inline]
    pub fn progress(&mut self, now: Nanos) -> Progress {
        let done = self.recorder.record.requests - self.flushes_done;
        if now >= self.estimate_at {
            self.estimate(done, now);
        }
        // An estimate may be too low: the total then stays above `done` until the job ends.
        let total = if self.estimated { self.total.max(done + 1) } else { self.total };
        Progress { done, total, now }
    }

    /// Estimates the number of requests of a job with a time limit, every thousandth of that time.
    fn estimate(&mut self, done: u64, now: Nanos) {
        let start = self.recorder.record.start;
        let limit = (self.deadline - start).get();
        let elapsed = now.saturating_sub(start).get().max(1);
        let by_rate = (done as f64 * limit as f64 / elapsed as f64) as u64;
        self.total = self.amount.min(by_rate);
        self.estimate_at = now + Nanos::new(limit / 1000);
    }

    pub fn finish(
        mut self,
        device: &impl Device,
        flash_writes: &mut FlashWrites,
    ) -> Result<Outcome, DeviceError> {
        self.recorder.end_interval();
        flash_writes.attribute(device, &mut self.recorder);
        let time_is_up = self.deadline < Nanos::MAX && self.running && self.requests.has_more();
        if let Some(arrivals) = &mut self.arrivals
            && time_is_up
        {
            self.recorder.record.unserved += arrivals.count_until(self.deadline);
        }
        match self.failure {
            Some(failure) if self.recorder.record.requests == 0 => Err(failure),
            failure => Ok(self.recorder.finish(failure)),
        }
    }
}

/// Leaves a device idle for a time on its own clock; false if the watcher stopped the rest.
pub fn rest<D: Device>(
    device: &mut D,
    duration: Nanos,
    watch: &mut impl Watch,
) -> Result<bool, DeviceError> {
    let (start, end) = (device.now(), device.now() + duration);
    let mut none = Vec::new();
    while device.now() < end {
        device.reap(Wait::Until(end.min(device.now() + REST_STEP)), &mut none)?;
        let rested = device.now().min(end) - start;
        let progress = Progress { done: rested.get(), total: duration.get(), now: device.now() };
        if watch(progress).is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}
