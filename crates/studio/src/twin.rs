//! `Twin`: a drive in virtual time with its steps, run in slices and taken back to any moment.

use serde_json::Value;
use ssdlab_device::Device;
use ssdlab_time::Nanos;

use crate::describe;
use crate::frame::{Frame, History};
use crate::player::{Planned, Player};
use crate::position::{Position, SeekBy};
use crate::results::StepResult;
use crate::series::COLUMNS;
use crate::snapshots::Snapshots;
use crate::spec::Spec;
use crate::state::State;
use crate::steps::{self, Step};

/// A twin and its steps.
///
/// A *tick* is the smallest slice: one turn of the job loop, at most 50 ms of a rest, a power cut,
/// or a new drive. All ticks are the same however the twin is stopped in between and wherever it is
/// taken back to.
pub struct Twin {
    player: Player,
    snapshots: Snapshots,
    /// The furthest moment so far.
    furthest: Position,
    frame: Frame,
}

impl Twin {
    /// A new twin without steps.
    ///
    /// # Errors
    /// The profile is not valid, or too large.
    pub fn new(spec: Spec) -> Result<Self, String> {
        let player = Player::new(spec)?;
        let snapshots = Snapshots::new(&player.state, &player.spec);
        Ok(Self { player, snapshots, furthest: Position::default(), frame: Frame::default() })
    }

    /// Appends steps: a JSON array.
    ///
    /// # Errors
    /// A step is not valid, or a job does not fit the drive; then none is appended.
    pub fn add_steps(&mut self, text: &str) -> Result<(), String> {
        let new = steps::parse(text)?;
        let is_new_drive = |step: &Step| matches!(step, Step::NewDrive(_));
        let pending =
            self.player.steps[self.player.state.step..].iter().map(|planned| &planned.step);
        // A job after a new drive is checked when it begins.
        if !pending.chain(&new).any(is_new_drive) {
            for (index, step) in new.iter().enumerate() {
                if let Step::Job(job) = step {
                    self.player
                        .check(&job.job)
                        .map_err(|what| format!("step {} of these: {what}", index + 1))?;
                }
            }
        }
        self.player.steps.extend(new.into_iter().map(Planned::from));
        Ok(())
    }

    /// Forgets what has not run yet: all later steps, and the rest of the current one. Requests in
    /// flight still complete.
    pub fn clear_steps(&mut self) {
        let (tick, in_progress) = (self.player.state.tick, self.player.state.current.is_some());
        self.player.steps.truncate(self.player.state.step + usize::from(in_progress));
        if in_progress && let Some(planned) = self.player.steps.last_mut() {
            planned.stopped_at.get_or_insert(tick);
        }
        self.forget_future();
    }

    /// Cuts the power as the next tick.
    pub fn power_cut(&mut self) {
        let step = self.player.state.step;
        if self.player.state.current.is_some() {
            self.player.steps[step].cut_at = Some(self.player.state.tick);
        } else {
            self.player.steps.insert(step, Step::PowerCut.into());
        }
        self.forget_future();
    }

    fn forget_future(&mut self) {
        self.furthest = self.player.state.position();
        self.player.results.truncate(self.player.state.step);
        self.player.series.truncate(self.player.state.rows);
        self.snapshots.forget_after(self.furthest);
    }

    /// Starts or ends the lists of commands, operations and moves.
    pub fn observe(&mut self, on: bool) {
        self.player.observe(on);
    }

    /// The moment that it has reached.
    pub fn position(&self) -> Position {
        self.player.state.position()
    }

    /// The results of the steps that have run.
    pub fn results(&self) -> &[StepResult] {
        &self.player.results[..self.player.state.step]
    }

    /// The rows of the series, in the order of `COLUMNS`.
    pub fn series_rows(&self) -> &[[f64; COLUMNS.len()]] {
        &self.player.series.rows()[..self.player.state.rows]
    }

    /// Its state now, as arrays.
    pub fn frame(&mut self) -> &Frame {
        let Self { player, snapshots, furthest, frame } = self;
        let (snapshots, bytes) = (snapshots.count(), snapshots.bytes());
        frame.fill(player, &History { furthest: *furthest, snapshots, bytes });
        frame
    }

    /// Where units are now, in order from `first` on: see `Frame::units`. Fewer than `count` at the
    /// drive's end.
    pub fn units(&mut self, first: u64, count: u64) -> &[[u32; 2]] {
        self.frame.fill_units(&self.player.state, first, count);
        &self.frame.units
    }

    /// The dimensions of the drive, and the names of counters and columns.
    pub fn describe(&self) -> Value {
        describe::drive(&self.player.state)
    }

    /// The counters by name, as Python's `Drive.counters` has them.
    pub fn counters(&self) -> Value {
        describe::counters(&self.player.state)
    }

    /// What `frame` filled last.
    pub fn last_frame(&self) -> &Frame {
        &self.frame
    }

    /// The twin's drive.
    pub fn ssd(&self) -> &ssdlab_flash::Ssd {
        &self.player.state.ssd
    }

    /// Runs until that many more requests have completed, the time is reached, or all steps have
    /// run; returns whether all steps have run.
    ///
    /// # Errors
    /// A step could not be run; it counts as run.
    pub fn advance(&mut self, requests: u64, until: Nanos) -> Result<bool, String> {
        let target = self.player.state.requests.saturating_add(requests);
        while !self.player.is_done() {
            let state = &self.player.state;
            if state.requests >= target || state.epoch + state.ssd.now() >= until {
                return Ok(false);
            }
            self.tick()?;
        }
        Ok(true)
    }

    /// Goes to the first tick at which a number is at least `value`, back or forward; to the end of
    /// all steps if none is.
    pub fn seek(&mut self, by: SeekBy, value: u64) {
        let position = self.player.state.position();
        let is_ahead = position.is_before(by, value);
        let snapshot = self.snapshots.last_before(by, value);
        let nearer = snapshot.filter(|state| !is_ahead || state.tick > position.tick);
        let observed = self.player.lists.is_some();
        if let Some(state) = nearer {
            self.player.state = state;
        } else if !is_ahead {
            self.player.state = State::new(&self.player.spec).expect("it was made of this once");
        }
        self.observe(false);
        while !self.player.is_done() && self.position().by(by) < value {
            // A step that fails does so again; its result says why.
            let _ = self.tick();
        }
        self.observe(observed);
    }

    fn tick(&mut self) -> Result<(), String> {
        self.snapshots.offer(&self.player.state);
        let done = self.player.tick();
        if self.player.state.tick > self.furthest.tick {
            self.furthest = self.player.state.position();
        }
        done
    }
}
