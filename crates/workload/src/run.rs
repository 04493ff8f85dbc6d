//! The ONE loop: keeps requests outstanding on a device and records how long each took.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use hdrhistogram::Histogram;
use ssdlab_device::{
    Completion, Device, DeviceError, Interval, Lba, Op, Record, Region, Request, Wait,
};
use ssdlab_time::Nanos;

use crate::{Job, Pattern};

/// A rest is watched at least this often, so that it can be broken off.
const REST_STEP: Nanos = Nanos::from_millis(50);

/// How far a job or a rest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests done; for a rest, nanoseconds rested.
    pub done: u64,
    /// Requests of the whole job; for a rest, its nanoseconds.
    pub total: u64,
    /// The device's clock.
    pub now: Nanos,
}

/// Someone who is told of progress, and may break a job off.
pub trait Watch: FnMut(Progress) -> ControlFlow<()> {}
impl<F: FnMut(Progress) -> ControlFlow<()>> Watch for F {}

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    /// Times and counts.
    pub record: Record,
    /// Latencies in nanoseconds, three digits, from a request's arrival to its completion.
    pub latency: Histogram<u64>,
    /// Whether the watcher broke it off.
    pub stopped: bool,
}

/// Runs a job: `queue_depth` requests outstanding until all are done.
///
/// A request arrives when the one before it in its place is done. What the device's own queue has
/// no room for is held back, and its latency counted from its arrival. The first request that
/// fails ends the job, after those in flight; the outcome then counts errors.
///
/// # Errors
/// A device that is gone or refuses a request.
pub fn run<D: Device>(
    device: &mut D,
    job: &Job,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    let mut requests = Requests::new(job);
    let mut flight = Flight::new(job.queue_depth, device.queue_depth(), device.now());
    let mut recorder = Recorder::new(job, device.now());
    let mut done = Vec::with_capacity(job.queue_depth);
    let total = job.requests();
    loop {
        let go_on = !recorder.stopped && recorder.record.errors == 0;
        while go_on && requests.issued < total && flight.has_room() {
            let request = requests.next(flight.take(), device);
            device.submit(request)?;
        }
        if flight.is_empty() {
            return Ok(recorder.finish());
        }
        device.reap(Wait::One, &mut done)?;
        for completion in done.drain(..) {
            let arrival = flight.land(&completion);
            recorder.add(&completion, arrival);
        }
        let progress = Progress { done: recorder.record.requests, total, now: device.now() };
        recorder.stopped |= watch(progress).is_break();
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

/// How many requests ahead a device is told of.
const ANNOUNCED: usize = 4;

/// The job's requests, in order.
struct Requests {
    op: Op,
    pattern: Option<Pattern>,
    region: Region,
    blocks: u64,
    issued: u64,
    /// Drawn, but not issued: number `n` of the job has place `n % ANNOUNCED`.
    ahead: [Lba; ANNOUNCED],
}

impl Requests {
    fn new(job: &Job) -> Self {
        let (blocks, ahead) = (0, [Lba::new(0); ANNOUNCED]);
        if job.op == Op::Flush {
            let region = Region { start: Lba::new(0), blocks };
            return Self { op: Op::Flush, pattern: None, region, blocks, issued: 0, ahead };
        }
        let region = job.region();
        let blocks = Lba::from_bytes(job.block_bytes).get();
        let mut pattern = Pattern::new(job.pattern, region.blocks / blocks, job.seed);
        let ahead = ahead.map(|_| region.start.plus(pattern.next_block() * blocks));
        Self { op: job.op, pattern: Some(pattern), region, blocks, issued: 0, ahead }
    }

    #[inline]
    fn next(&mut self, id: u64, device: &mut impl Device) -> Request {
        let place = self.issued as usize % ANNOUNCED;
        self.issued += 1;
        let Some(pattern) = &mut self.pattern else { return Request::flush(id) };
        let drawn = self.region.start.plus(pattern.next_block() * self.blocks);
        device.announce(self.op, drawn);
        let lba = std::mem::replace(&mut self.ahead[place], drawn);
        Request { id, op: self.op, lba, blocks: self.blocks as u32 }
    }
}

/// The places that outstanding requests have, and the arrivals that wait for the device's queue.
struct Flight {
    /// Places, by id, that no request in the device has.
    free: Vec<u64>,
    /// For each place: when its request arrived, where it was held back.
    arrivals: Vec<Option<Nanos>>,
    /// Arrivals that the device had no room for, oldest first.
    held: VecDeque<Nanos>,
    /// Requests that may still arrive without one ending first.
    unborn: usize,
}

impl Flight {
    fn new(depth: usize, device_depth: usize, start: Nanos) -> Self {
        let places = depth.min(device_depth);
        Self {
            free: (0..places as u64).rev().collect(),
            arrivals: vec![None; places],
            held: std::iter::repeat_n(start, depth - places).collect(),
            unborn: places,
        }
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.arrivals.len()
    }

    fn take(&mut self) -> u64 {
        let id = self.free.pop().expect("has_room was asked");
        let arrival = if self.unborn > 0 {
            self.unborn -= 1;
            None
        } else {
            self.held.pop_front()
        };
        self.arrivals[id as usize] = arrival;
        id
    }

    /// Takes a request back; returns when it arrived.
    #[inline]
    fn land(&mut self, completion: &Completion) -> Nanos {
        self.free.push(completion.id);
        if self.held.is_empty() {
            self.unborn += 1;
        } else {
            self.held.push_back(completion.completed);
        }
        self.arrivals[completion.id as usize].unwrap_or(completion.submitted)
    }
}

struct Recorder {
    record: Record,
    latency: Histogram<u64>,
    interval: Nanos,
    interval_end: Nanos,
    stopped: bool,
    block_bytes: u64,
}

impl Recorder {
    fn new(job: &Job, start: Nanos) -> Self {
        Self {
            record: Record { start, end: start, ..Record::default() },
            latency: Histogram::new(3).expect("three digits are allowed"),
            interval: job.interval(),
            interval_end: Nanos::ZERO,
            stopped: false,
            block_bytes: job.block_bytes,
        }
    }

    #[inline]
    fn add(&mut self, completion: &Completion, arrival: Nanos) {
        let latency = completion.completed.saturating_sub(arrival);
        let record = &mut self.record;
        record.requests += 1;
        record.end = record.end.max(completion.completed);
        let bytes = match completion.outcome {
            Ok(()) => self.block_bytes,
            Err(error) => {
                record.errors += 1;
                record.first_errno.get_or_insert(error.errno);
                return;
            }
        };
        record.bytes += bytes;
        self.latency.record(latency.get().max(1)).expect("the histogram grows");
        if completion.completed >= self.interval_end {
            let since = completion.completed.saturating_sub(record.start).get();
            let start = record.start + self.interval * (since / self.interval.get());
            self.interval_end = start + self.interval;
            record.intervals.push(Interval { start, ..Interval::default() });
        }
        let last = record.intervals.last_mut().expect("one was pushed");
        last.requests += 1;
        last.bytes += bytes;
        last.latency_max = last.latency_max.max(latency);
    }

    fn finish(self) -> Outcome {
        Outcome { record: self.record, latency: self.latency, stopped: self.stopped }
    }
}
