//! `Player`: runs the steps of a twin, one tick at a time.

use std::ops::ControlFlow;

use ssdlab_device::{Device, Wait};
use ssdlab_flash::PowerCut;
use ssdlab_time::Nanos;
use ssdlab_workload::{Job, JobRun, Progress, REST_STEP, Recorded};

use crate::lists::{Lists, Watched};
use crate::results::StepResult;
use crate::series::{RowPlace, Seen, Series};
use crate::spec::Spec;
use crate::state::{Current, CurrentJob, State};
use crate::steps::Step;

/// A twin's steps, its state, and what has come out so far.
pub struct Player {
    pub spec: Spec,
    pub steps: Vec<Planned>,
    pub state: State,
    /// The results of the steps before `state.step`, and of those that ran before going back.
    pub results: Vec<StepResult>,
    /// The rows up to `state.rows`, and those from before going back.
    pub series: Series,
    /// `None` unless it is observed.
    pub lists: Option<Lists>,
}

/// A step, and when it was stopped or the power was cut.
#[derive(Debug)]
pub struct Planned {
    pub step: Step,
    /// The tick at which its job was stopped, or its rest ended.
    pub stopped_at: Option<u64>,
    /// The tick that is a power cut.
    pub cut_at: Option<u64>,
}

impl From<Step> for Planned {
    fn from(step: Step) -> Self {
        Self { step, stopped_at: None, cut_at: None }
    }
}

impl Player {
    /// Before the first step.
    pub fn new(spec: Spec) -> Result<Self, String> {
        Ok(Self {
            state: State::new(&spec)?,
            spec,
            steps: Vec::new(),
            results: Vec::new(),
            series: Series::default(),
            lists: None,
        })
    }

    /// Starts or ends the lists of commands, operations and moves.
    pub fn observe(&mut self, on: bool) {
        self.state.ssd.observe(on);
        self.lists = on.then(Lists::default);
    }

    /// Whether all steps have run.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.state.step == self.steps.len()
    }

    /// Runs one tick; there must be one.
    ///
    /// # Errors
    /// A step could not be run; it counts as run.
    #[inline]
    pub fn tick(&mut self) -> Result<(), String> {
        let tick = self.state.tick;
        self.state.tick += 1;
        self.run_tick(tick)
    }

    fn run_tick(&mut self, tick: u64) -> Result<(), String> {
        if self.state.current.is_none() && self.begin_step()?.is_break() {
            return Ok(());
        }
        let planned = &self.steps[self.state.step];
        let stops = planned.stopped_at == Some(tick);
        if planned.cut_at == Some(tick) {
            self.cut_step();
            return Ok(());
        }
        match &mut self.state.current {
            Some(Current::Job(_)) => self.turn(stops),
            Some(Current::Rest { start, end }) => {
                if stops {
                    *end = self.state.ssd.now();
                }
                let (start, end) = (*start, *end);
                self.rest(start, end);
                Ok(())
            }
            None => unreachable!("a step has begun"),
        }
    }

    /// Begins the next step; breaks if the tick was used for it.
    fn begin_step(&mut self) -> Result<ControlFlow<()>, String> {
        match &self.steps[self.state.step].step {
            Step::Rest(duration) => {
                let start = self.state.ssd.now();
                self.state.current = Some(Current::Rest { start, end: start + *duration });
            }
            Step::PowerCut => {
                let cut = self.cut();
                self.end_step(StepResult::power_cut(&cut));
                return Ok(ControlFlow::Break(()));
            }
            Step::NewDrive(new) => {
                let spec = new.spec(&self.spec);
                self.replace_drive(&spec).or_else(|what| self.fail(what))?;
                return Ok(ControlFlow::Break(()));
            }
            Step::Job(step) => {
                let (job, zeros) = (step.job.clone(), step.zeros);
                self.begin_job(&job, zeros).or_else(|what| self.fail(what))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn begin_job(&mut self, job: &Job, zeros: bool) -> Result<(), String> {
        self.check(job)?;
        let state = &mut self.state;
        state.ssd.set_writes_zeros(zeros);
        let run = JobRun::new(&mut state.ssd, job).map_err(|error| error.to_string())?;
        let progress = Progress { done: 0, total: job.requests(), now: state.ssd.now() };
        let before = state.requests;
        let interval = Nanos::from_micros(job.interval_us);
        let job = CurrentJob { run, progress, before, interval, seen: Seen::default() };
        state.current = Some(Current::Job(Box::new(job)));
        Ok(())
    }

    /// Checks that a job fits the drive of now.
    pub fn check(&self, job: &Job) -> Result<(), String> {
        let ssd = &self.state.ssd;
        job.check(ssd).and_then(|()| job.check_queues(ssd)).map_err(|error| error.to_string())
    }

    fn replace_drive(&mut self, spec: &Spec) -> Result<(), String> {
        let State { profile, mut ssd, .. } = State::new(spec)?;
        ssd.observe(self.lists.is_some());
        let state = &mut self.state;
        state.epoch += state.ssd.now();
        (state.profile, state.ssd) = (profile, ssd);
        self.end_step(StepResult::new_drive());
        Ok(())
    }

    /// One turn of the job in progress.
    fn turn(&mut self, stops: bool) -> Result<(), String> {
        let State { ssd, current, requests, .. } = &mut self.state;
        let Some(Current::Job(job)) = current else { unreachable!("a job is in progress") };
        let mut last = job.progress;
        let mut watch = |progress| {
            last = progress;
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let turn = match &mut self.lists {
            None => job.run.turn(ssd, &mut watch),
            Some(lists) => {
                let completed = *requests;
                job.run.turn(&mut Watched { ssd, lists, completed }, &mut watch)
            }
        };
        job.progress = last;
        *requests = job.before + job.run.requests();
        let done = *requests - job.before;
        self.add_rows();
        if turn.is_break() {
            return self.end_job(None);
        }
        let Step::Job(step) = &self.steps[self.state.step].step else {
            unreachable!("a job is in progress")
        };
        if step.power_cut_after.is_some_and(|count| done >= count) {
            self.cut_step();
        }
        Ok(())
    }

    /// Adds the intervals of a job on one queue that have ended to the series.
    #[inline]
    fn add_rows(&mut self) {
        let Some(Current::Job(job)) = &self.state.current else { return };
        if job.run.recorded().len() == 1
            && job.run.recorded().any(|queue| queue.intervals.len() > job.seen.intervals)
        {
            self.add_ended_rows();
        }
    }

    #[cold]
    fn add_ended_rows(&mut self) {
        let State { ssd, current, epoch, step, rows, .. } = &mut self.state;
        let Some(Current::Job(job)) = current else { unreachable!("a job is in progress") };
        let place = RowPlace { step: *step, epoch: *epoch, length: job.interval, end: Nanos::MAX };
        let queue = job.run.recorded().next().expect("a job has a queue");
        *rows = self.series.put(*rows, &mut job.seen, queue, place, ssd);
    }

    /// Ends the job in progress, with the power cut that ended it, if one did.
    fn end_job(&mut self, cut: Option<&PowerCut>) -> Result<(), String> {
        let Some(Current::Job(job)) = self.state.current.take() else {
            unreachable!("a job is in progress")
        };
        let CurrentJob { run, interval, mut seen, .. } = *job;
        let outcome = match run.finish(&self.state.ssd) {
            Ok(outcome) => outcome,
            Err(error) => return self.fail(error.to_string()),
        };
        let State { ssd, epoch, step, rows, .. } = &mut self.state;
        let record = &outcome.record;
        let place = RowPlace { step: *step, epoch: *epoch, length: interval, end: record.end };
        let recorded = Recorded { intervals: &record.intervals, buckets: &outcome.buckets };
        *rows = self.series.put(*rows, &mut seen, recorded, place, ssd);
        self.end_step(StepResult::job(&outcome, cut));
        Ok(())
    }

    /// Rests for one step of a rest.
    fn rest(&mut self, start: Nanos, end: Nanos) {
        let ssd = &mut self.state.ssd;
        let until = end.min(ssd.now() + REST_STEP);
        if ssd.now() < until {
            let nothing = &mut Vec::new();
            ssd.reap(Wait::Until(until), nothing).expect("a twin never goes away");
        }
        if ssd.now() >= end {
            let now = ssd.now();
            self.end_step(StepResult::rest(start, now));
        }
    }

    /// Cuts the power during the step in progress, which ends with it.
    fn cut_step(&mut self) {
        let cut = self.cut();
        if let Some(Current::Rest { start, .. }) = self.state.current {
            let mut result = StepResult::rest(start, self.state.ssd.now());
            result.0["power_cut"] = StepResult::power_cut(&cut).0;
            self.end_step(result);
        } else {
            // An error of the job is in its result.
            let _ = self.end_job(Some(&cut));
        }
    }

    fn cut(&mut self) -> PowerCut {
        let ssd = &mut self.state.ssd;
        let cut = ssd.power_cut(ssd.now());
        if let Some(lists) = &mut self.lists {
            lists.take_rest(ssd);
        }
        self.state.power_cuts += 1;
        cut
    }

    fn fail(&mut self, message: String) -> Result<(), String> {
        self.end_step(StepResult::failed(&message));
        Err(message)
    }

    fn end_step(&mut self, result: StepResult) {
        self.state.current = None;
        // After going back, the step has its result already: the same one.
        if self.results.len() == self.state.step {
            self.results.push(result);
        }
        self.state.step += 1;
    }
}
