//! `JobRun`: a job on a twin that can be stopped after any turn of its loop, copied and continued.

use std::ops::ControlFlow;

use ssdlab_device::{Device, DeviceError, Interval};

use crate::queues::QueuesRun;
use crate::recorder::{Bucket, Outcome};
use crate::run::{Driver, SingleRun, Watch};
use crate::{Job, JobError};

/// A checked job in progress on a device that exists only once: a twin in virtual time.
///
/// `turn` until it breaks, then `finish`: exactly what `run`, or for a job of several threads
/// `run_queues`, does.
pub struct JobRun(Queues);

enum Queues {
    One(Box<SingleRun>),
    Many(QueuesRun),
}

/// What one queue has recorded so far: the intervals that have ended, and their latencies in the
/// order of intervals.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'run> {
    /// The intervals.
    pub intervals: &'run [Interval],
    /// Their latencies.
    pub buckets: &'run [Bucket],
}

impl Job {
    /// Checks that a twin has a queue for each thread of the job.
    pub fn check_queues(&self, device: &impl Device) -> Result<(), JobError> {
        let most = device.queue_depth();
        if self.threads <= most {
            return Ok(());
        }
        let (field, given) = ("threads", self.threads.to_string());
        Err(JobError {
            field,
            given,
            allowed: format!("1 to {most}, the queue depth of this twin"),
        })
    }
}

impl JobRun {
    /// Begins a checked job.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn new<D: Device>(device: &mut D, job: &Job) -> Result<Self, DeviceError> {
        if job.threads == 1 {
            let start = device.now();
            return Ok(Self(Queues::One(Box::new(SingleRun::new(device, job, start)?))));
        }
        Ok(Self(Queues::Many(QueuesRun::new(device, job)?)))
    }

    /// One turn of the loop: submits what can be, waits for the next completions and counts them.
    /// Breaks when the job has ended.
    #[inline]
    pub fn turn<D: Device>(&mut self, device: &mut D, watch: &mut impl Watch) -> ControlFlow<()> {
        match &mut self.0 {
            Queues::One(run) => run.turn(device, watch),
            Queues::Many(run) => run.turn(device, watch),
        }
    }

    /// The outcome of the turns so far; requests in flight are not in it.
    ///
    /// # Errors
    /// The device is gone or refused a request before anything was measured.
    pub fn finish(self, device: &impl Device) -> Result<Outcome, DeviceError> {
        match self.0 {
            Queues::One(run) => run.finish(device),
            Queues::Many(run) => run.finish(device),
        }
    }

    /// A run that continues as this one does; `None` for the replay of a trace, whose file is read
    /// only once, and after an error.
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self(match &self.0 {
            Queues::One(run) => Queues::One(Box::new(run.try_clone()?)),
            Queues::Many(run) => Queues::Many(run.try_clone()?),
        }))
    }

    /// Requests completed so far, with the flushes of `sync`.
    pub fn requests(&self) -> u64 {
        self.drivers().iter().map(|driver| driver.recorder.record.requests).sum()
    }

    /// What each queue has recorded.
    pub fn recorded(&self) -> impl ExactSizeIterator<Item = Recorded<'_>> {
        self.drivers().iter().map(|driver| Recorded {
            intervals: &driver.recorder.record.intervals,
            buckets: driver.recorder.buckets(),
        })
    }

    fn drivers(&self) -> &[Driver] {
        match &self.0 {
            Queues::One(run) => std::slice::from_ref(&run.driver),
            Queues::Many(run) => &run.queues,
        }
    }
}
