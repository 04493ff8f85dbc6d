//! The ONE loop: keeps requests outstanding on a device and records how long each took.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ssdlab_device::{Completion, Device, DeviceError, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::arrival::Arrivals;
use crate::flight::Flight;
use crate::recorder::{Outcome, Recorder};
use crate::requests::Requests;
use crate::{Job, Sync};

/// A rest and a wait for an arrival are watched at least this often: they can be broken off.
const REST_STEP: Nanos = Nanos::from_millis(50);

/// How far a job or a rest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests done, without the flushes of `sync`; for a rest, nanoseconds rested.
    pub done: u64,
    /// Requests of the whole job, estimated where lengths are mixed or `seconds` is the limit; for
    /// a rest, its nanoseconds.
    pub total: u64,
    /// The device's clock.
    pub now: Nanos,
}

/// Someone who is told of progress, and may break a job off.
pub trait Watch: FnMut(Progress) -> ControlFlow<()> {}
impl<F: FnMut(Progress) -> ControlFlow<()>> Watch for F {}

/// Runs a job that was checked, on one queue; `run_threads` runs it on several.
///
/// In a closed loop a request arrives when the one before it in its place is done; in an open one
/// at its time. What the device's own queue, or `queue_depth`, has no room for is held back, and
/// its latency counted from its arrival. The first request that fails ends the job, after those in
/// flight; the outcome then counts errors. A device that is gone ends it too: the outcome has what
/// was measured, and the failure.
///
/// # Errors
/// A device that is gone, or refuses a request, before anything was measured.
pub fn run<D: Device>(
    device: &mut D,
    job: &Job,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    let start = device.now();
    run_from(device, job, start, watch)
}

/// `run` with intervals and arrivals that count from `start`.
pub fn run_from<D: Device>(
    device: &mut D,
    job: &Job,
    start: Nanos,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    let mut driver = Driver::new(job, device, start)?;
    let mut done = Vec::with_capacity(job.queue_depth);
    let mut told = Progress { done: 0, total: 0, now: start };
    loop {
        let next = driver.issue(device);
        if driver.flight.is_empty() && next.is_none() {
            if driver.estimated && driver.goes_on && told.done != told.total {
                let _ = watch(Progress { total: told.done, ..told });
            }
            return driver.finish();
        }
        let wait = next.map_or(Wait::One, |time| Wait::Until(time.min(device.now() + REST_STEP)));
        if let Err(error) = device.reap(wait, &mut done) {
            driver.fail(error);
            return driver.finish();
        }
        // By reference: a copy in wider words than it was written in stalls the processor.
        for completion in &done {
            driver.land(completion);
        }
        // Completions tell the time: to ask the clock costs as much as all the rest of the loop.
        let now = if done.is_empty() { device.now() } else { driver.recorder.record.end };
        done.clear();
        told = driver.progress(now);
        if watch(told).is_break() {
            (driver.recorder.stopped, driver.goes_on) = (true, false);
        }
    }
}

/// A job while it runs.
struct Driver {
    requests: Requests,
    /// Of an open loop.
    arrivals: Option<Arrivals>,
    flight: Flight,
    recorder: Recorder,
    failure: Option<DeviceError>,
    /// Not stopped, and nothing has failed.
    goes_on: bool,
    /// No request starts at or after it.
    deadline: Nanos,
    /// Requests of the job's amount.
    amount: u64,
    /// Those, or as many as it comes to at the rate so far until `deadline`.
    total: u64,
    /// Whether that may be wrong.
    estimated: bool,
    /// When the rate is looked at again.
    estimate_at: Nanos,
    /// A flush is due after so many writes.
    flush_every: Option<u64>,
    writes_unflushed: u64,
    /// When the flushes arrived that were not issued.
    flushes_due: VecDeque<Nanos>,
    flushes_done: u64,
}

impl Driver {
    fn new(job: &Job, device: &impl Device, start: Nanos) -> Result<Self, DeviceError> {
        let arrivals = Arrivals::new(job, start);
        let closed_since = arrivals.is_none().then_some(start);
        Ok(Self {
            requests: Requests::new(job, device.sector_bytes())?,
            arrivals,
            flight: Flight::new(job.queue_depth, device.queue_depth(), closed_since),
            recorder: Recorder::new(job, start),
            failure: None,
            goes_on: true,
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

    /// Hands over all that can be; returns when the next request arrives, where it must be awaited.
    fn issue(&mut self, device: &mut impl Device) -> Option<Nanos> {
        while self.goes_on && self.flight.has_room() {
            if let Some(since) = self.flushes_due.pop_front() {
                let request = Request::flush(self.flight.next_place());
                self.submit(device, request, Some(since));
                continue;
            }
            if !self.requests.more() {
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
            let request = self.requests.next(self.flight.next_place(), device);
            self.submit(device, request, arrival);
        }
        None
    }

    fn submit(&mut self, device: &mut impl Device, request: Request, arrival: Option<Nanos>) {
        match device.submit(request) {
            Ok(()) => self.flight.board(&request, arrival),
            Err(error) => self.fail(error),
        }
    }

    #[cold]
    fn fail(&mut self, error: DeviceError) {
        (self.failure, self.goes_on) = (Some(error), false);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called in one place, for each request")]
    fn land(&mut self, completion: &Completion) {
        let passenger = self.flight.land(completion);
        match completion.outcome {
            Ok(()) => self.recorder.add(completion.completed, passenger),
            Err(error) => {
                self.recorder.add_error(completion.completed, error);
                self.goes_on = false;
            }
        }
        if let Some(every) = self.flush_every {
            self.owe_flush(passenger.op, every, completion.completed);
        }
    }

    /// Notes that a request is done in a job that flushes after so many writes.
    fn owe_flush(&mut self, op: Op, every: u64, completed: Nanos) {
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
    fn progress(&mut self, now: Nanos) -> Progress {
        let done = self.recorder.record.requests - self.flushes_done;
        if now >= self.estimate_at {
            self.estimate(done, now);
        }
        // An estimate may fall short: the job goes on, and its watcher is told of the end.
        let total = if self.estimated { self.total.max(done + 1) } else { self.total };
        Progress { done, total, now }
    }

    /// Estimates the requests of a job that ends with its time: now and a thousandth of it later.
    fn estimate(&mut self, done: u64, now: Nanos) {
        let start = self.recorder.record.start;
        let limit = (self.deadline - start).get();
        let passed = now.saturating_sub(start).get().max(1);
        let by_rate = (done as f64 * limit as f64 / passed as f64) as u64;
        self.total = self.amount.min(by_rate);
        self.estimate_at = now + Nanos::new(limit / 1000);
    }

    fn finish(mut self) -> Result<Outcome, DeviceError> {
        let time_is_up = self.deadline < Nanos::MAX && self.goes_on && self.requests.more();
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

/// Leaves a device alone for a while on its own clock.
///
/// Returns false where the watcher broke the rest off.
///
/// # Errors
/// A device that is gone.
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
