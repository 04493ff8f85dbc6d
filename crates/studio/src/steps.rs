//! `Step`: what a twin is to do, one after the other, as JSON text.

use serde::Deserialize;
use ssdlab_time::Nanos;
use ssdlab_workload::Job;

use crate::spec::{Overrides, Spec};

/// The longest rest in seconds; more counts as a typing error.
const REST_MAX: f64 = 1e9;

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A job.
    Job(Box<JobStep>),
    /// The drive is idle for a time.
    Rest(Nanos),
    /// The power is cut and restored.
    PowerCut,
    /// A new, empty drive replaces this one.
    NewDrive(Box<NewDrive>),
}

/// A job, and what is special about it.
#[derive(Clone, Debug)]
pub struct JobStep {
    pub job: Job,
    /// Whether its writes have only zeros as data.
    pub zeros: bool,
    /// The power is cut when this number of its requests has completed.
    pub power_cut_after: Option<u64>,
}

/// The parts of a specification in which a new drive differs from the twin's first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewDrive {
    profile: Option<String>,
    overrides: Option<Overrides>,
    capacity_bytes: Option<u64>,
    seed: Option<u64>,
}

impl NewDrive {
    /// The whole specification.
    pub fn spec(&self, first: &Spec) -> Spec {
        let Self { profile, overrides, capacity_bytes, seed } = self.clone();
        Spec {
            profile: profile.unwrap_or_else(|| first.profile.clone()),
            overrides: overrides.unwrap_or_else(|| first.overrides.clone()),
            capacity_bytes: capacity_bytes.or(first.capacity_bytes),
            seed: seed.unwrap_or(first.seed),
            ..first.clone()
        }
    }
}

/// A step as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    job: Option<Job>,
    #[serde(default)]
    zeros: bool,
    power_cut_after: Option<u64>,
    rest: Option<f64>,
    power_cut: Option<bool>,
    new_drive: Option<NewDrive>,
}

/// Parses a JSON array of steps.
pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    let written: Vec<Written> =
        serde_json::from_str(text).map_err(|error| format!("the steps: {error}"))?;
    let number = |(index, step): (usize, Written)| {
        step.check().map_err(|what| format!("step {} of these: {what}", index + 1))
    };
    written.into_iter().enumerate().map(number).collect()
}

impl Written {
    fn check(self) -> Result<Step, String> {
        let Self { job, zeros, power_cut_after, rest, power_cut, new_drive } = self;
        if job.is_none() && (zeros || power_cut_after.is_some()) {
            return Err("zeros and power_cut_after are for a job only".to_owned());
        }
        match (job, rest, power_cut, new_drive) {
            (Some(job), None, None, None) if job.replay.is_some() => {
                Err("a job with replay reads a trace from a file, which a page cannot".to_owned())
            }
            (Some(job), None, None, None) => {
                Ok(Step::Job(Box::new(JobStep { job, zeros, power_cut_after })))
            }
            (None, Some(seconds), None, None) if (0.0..=REST_MAX).contains(&seconds) => {
                Ok(Step::Rest(Nanos::new((seconds * 1e9) as u64)))
            }
            (None, Some(seconds), None, None) => {
                Err(format!("rest is {seconds}; may be 0 to {REST_MAX} seconds"))
            }
            (None, None, Some(true), None) => Ok(Step::PowerCut),
            (None, None, None, Some(new_drive)) => Ok(Step::NewDrive(Box::new(new_drive))),
            _ => {
                Err("it must have exactly one of job, rest, power_cut (true) and new_drive"
                    .to_owned())
            }
        }
    }
}
