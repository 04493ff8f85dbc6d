//! `State`: everything about a twin that changes while its steps run, and that a snapshot keeps.

use std::rc::Rc;

use ssdlab_device::Device;
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_workload::{JobRun, Progress};

use crate::position::Position;
use crate::series::Seen;
use crate::spec::{self, Spec};

/// The state between two ticks.
pub struct State {
    pub profile: Rc<Profile>,
    pub ssd: Ssd,
    /// The time of all drives before this one.
    pub epoch: Nanos,
    pub tick: u64,
    /// Requests completed in all steps.
    pub requests: u64,
    /// The step in progress, or the next one.
    pub step: usize,
    /// `None` between two steps.
    pub current: Option<Current>,
    pub power_cuts: u64,
    /// Rows of the series.
    pub rows: usize,
}

/// The step in progress.
pub enum Current {
    Job(Box<CurrentJob>),
    Rest { start: Nanos, end: Nanos },
}

pub struct CurrentJob {
    pub run: JobRun,
    pub progress: Progress,
    /// Requests completed in the steps before.
    pub before: u64,
    /// The length of its intervals.
    pub interval: Nanos,
    pub seen: Seen,
}

impl State {
    /// A new drive, before the first step.
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let profile = Rc::new(spec.profile()?);
        Ok(Self {
            ssd: Ssd::new(&profile, spec.seed),
            profile,
            epoch: Nanos::ZERO,
            tick: 0,
            requests: 0,
            step: 0,
            current: None,
            power_cuts: 0,
            rows: 0,
        })
    }

    /// The moment that it has reached.
    pub fn position(&self) -> Position {
        Position { tick: self.tick, requests: self.requests, time: self.epoch + self.ssd.now() }
    }

    /// A copy that continues as this one does; `None` after an error of the job in progress.
    pub fn try_clone(&self) -> Option<Self> {
        let current = match &self.current {
            None => None,
            Some(Current::Rest { start, end }) => Some(Current::Rest { start: *start, end: *end }),
            Some(Current::Job(job)) => {
                let run = job.run.try_clone()?;
                Some(Current::Job(Box::new(CurrentJob { run, ..**job })))
            }
        };
        Some(Self { profile: Rc::clone(&self.profile), ssd: self.ssd.clone(), current, ..*self })
    }

    /// About how much memory a copy takes.
    pub fn memory_bytes(&self) -> u64 {
        let recorded = match &self.current {
            Some(Current::Job(job)) => job
                .run
                .recorded()
                .map(|queue| {
                    size_of_val(queue.intervals) as u64 + size_of_val(queue.buckets) as u64
                })
                .sum(),
            _ => 0,
        };
        spec::memory_bytes(&self.profile) + recorded
    }
}
