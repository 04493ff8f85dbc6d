//! `Power`: whether a drive has it, what is to take it, and what it took.

use std::time::Instant;

use crate::drive::PowerCutLoss;

/// When the power is to fail: while a write is on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerCutPlan {
    /// Which write from now on; 1 is the next.
    pub after_writes: u64,
    /// How much of its way it has gone in the drive, from 0 to 1.
    pub share: f64,
    /// Whether the power comes back at once.
    pub then_on: bool,
}

/// The time between two power cuts of a drive, as a number that rises with each cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(u64);

/// Whether a drive takes commands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum State {
    /// It does.
    #[default]
    On,
    /// A cut has begun: no command and no connection is taken until it is finished.
    Failing { then_on: bool },
    /// The power is off since this time.
    Off(Instant),
}

/// The power of a drive.
#[derive(Debug, Default)]
pub struct Power {
    pub state: State,
    epoch: Epoch,
    plan: Option<PowerCutPlan>,
    cuts: u64,
    last: Option<PowerCutLoss>,
}

/// What a drive's power is like.
#[derive(Clone, Debug)]
pub struct PowerStatus {
    /// Whether it has power.
    pub is_on: bool,
    /// How many cuts there were.
    pub cuts: u64,
    /// The next one; its count goes down as writes come in.
    pub plan: Option<PowerCutPlan>,
    /// What the last one did.
    pub last: Option<PowerCutLoss>,
}

impl Power {
    /// Plans the next cut, in place of an earlier plan.
    pub fn plan(&mut self, plan: Option<PowerCutPlan>) {
        self.plan = plan;
    }

    /// Counts a write; returns how much of its way it goes if it is the one that was planned for.
    pub fn meets_plan(&mut self) -> Option<f64> {
        let plan = self.plan.as_mut()?;
        plan.after_writes -= 1;
        if plan.after_writes > 0 {
            return None;
        }
        let PowerCutPlan { share, then_on, .. } = *plan;
        self.plan = None;
        self.state = State::Failing { then_on };
        Some(share)
    }

    /// The epoch, while the drive takes commands.
    pub fn epoch(&self) -> Option<Epoch> {
        (self.state == State::On).then_some(self.epoch)
    }

    /// The power was cut, and came back or not: a new epoch.
    pub fn was_cut(&mut self, state: State, cut: PowerCutLoss) {
        self.state = state;
        self.epoch.0 += 1;
        self.plan = None;
        self.cuts += 1;
        self.last = Some(cut);
    }

    /// What it is like.
    pub fn status(&self) -> PowerStatus {
        let is_on = !matches!(self.state, State::Off(_));
        PowerStatus { is_on, cuts: self.cuts, plan: self.plan, last: self.last.clone() }
    }
}
