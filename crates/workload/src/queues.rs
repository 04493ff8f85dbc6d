//! `run_queues`: one job on several queues of one device, all driven by this thread.

use std::ops::ControlFlow;

use ssdlab_device::{Completion, Device, DeviceError, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::Job;
use crate::flash_writes::FlashWrites;
use crate::recorder::Outcome;
use crate::run::{Driver, Progress, REST_STEP, Watch};

/// The queue of a request is in the upper half of its id.
const QUEUE_SHIFT: u32 = 32;

/// Runs a checked job on a device that exists only once: a twin in virtual time.
///
/// Each of the job's threads has a queue of its own, as in `run_threads`, and an equal share of the
/// device's queue. A request that fails ends the job on all queues. Otherwise as `run`; the
/// outcomes of all queues are merged.
///
/// # Errors
/// The device is gone or refused a request before anything was measured.
pub fn run_queues<D: Device>(
    device: &mut D,
    job: &Job,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    let mut run = QueuesRun::new(device, job)?;
    while run.turn(device, watch).is_continue() {}
    run.finish(device)
}

/// A job in progress on several queues.
pub struct QueuesRun {
    pub queues: Vec<Driver>,
    /// Empty between two turns.
    done: Vec<Completion>,
    flash_writes: FlashWrites,
}

impl QueuesRun {
    pub fn new<D: Device>(device: &mut D, job: &Job) -> Result<Self, DeviceError> {
        let (start, count) = (device.now(), job.threads);
        let queues = (0..count)
            .map(|number| Driver::new(&job.part(number), &Queue::new(device, count, number), start))
            .collect::<Result<_, _>>()?;
        Ok(Self { queues, done: Vec::new(), flash_writes: FlashWrites::new(device) })
    }

    /// As `SingleRun::turn`, for all queues.
    pub fn turn<D: Device>(&mut self, device: &mut D, watch: &mut impl Watch) -> ControlFlow<()> {
        let count = self.queues.len();
        let queues = &mut self.queues;
        let mut next: Option<Nanos> = None;
        for (number, queue) in queues.iter_mut().enumerate() {
            let due = queue.issue(&mut Queue::new(device, count, number));
            next = [next, due].into_iter().flatten().min();
        }
        if next.is_none() && queues.iter().all(|queue| queue.in_flight.is_empty()) {
            return ControlFlow::Break(());
        }
        let wait = next.map_or(Wait::One, |time| Wait::Until(time.min(device.now() + REST_STEP)));
        if let Err(error) = device.reap(wait, &mut self.done) {
            queues[0].fail(error);
            return ControlFlow::Break(());
        }
        for completion in self.done.drain(..) {
            let queue = &mut queues[(completion.id >> QUEUE_SHIFT) as usize];
            let id = completion.id & ((1 << QUEUE_SHIFT) - 1);
            queue.complete(&Completion { id, ..completion });
            self.flash_writes.attribute(device, &mut queue.recorder);
        }
        let stopped = watch(progress(queues, device.now())).is_break();
        if stopped || queues.iter().any(|queue| !queue.running) {
            for queue in queues {
                queue.recorder.stopped |= stopped;
                queue.running = false;
            }
        }
        ControlFlow::Continue(())
    }

    pub fn finish(mut self, device: &impl Device) -> Result<Outcome, DeviceError> {
        let flash_writes = &mut self.flash_writes;
        Outcome::merge_parts(
            self.queues.into_iter().map(|queue| queue.finish(device, flash_writes)).collect(),
        )
    }

    /// As `Driver::try_clone`.
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self {
            queues: self.queues.iter().map(Driver::try_clone).collect::<Option<_>>()?,
            done: Vec::new(),
            flash_writes: self.flash_writes.clone(),
        })
    }
}

fn progress(queues: &mut [Driver], now: Nanos) -> Progress {
    let (mut done, mut total) = (0, 0);
    for queue in queues {
        let each = queue.progress(now);
        (done, total) = (done + each.done, total + each.total);
    }
    Progress { done, total, now }
}

/// A device as one of several queues sees it: with a share of its queue, and ids of its own.
struct Queue<'device, D> {
    device: &'device mut D,
    depth: usize,
    tag: u64,
}

impl<'device, D: Device> Queue<'device, D> {
    fn new(device: &'device mut D, count: usize, number: usize) -> Self {
        let depth = (device.queue_depth() / count).max(1);
        Self { device, depth, tag: (number as u64) << QUEUE_SHIFT }
    }
}

impl<D: Device> Device for Queue<'_, D> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.device.sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.depth
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn announce(&mut self, op: Op, lba: Lba) {
        self.device.announce(op, lba);
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.device.submit(Request { id: request.id | self.tag, ..request })
    }

    fn reap(&mut self, _wait: Wait, _done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        unreachable!("the completions of all queues are reaped from the device")
    }
}
