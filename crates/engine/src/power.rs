//! `Power`: cuts a drive's power, at once or during a planned write.

use std::time::Instant;

use ssdlab_time::Nanos;

use crate::command::{Accepted, Command};
use crate::drive::PowerCutLoss;
use crate::layer::Layer;

/// A power cut during a future write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerCutPlan {
    /// Which write from now on; 1 is the next.
    pub after_writes: u64,
    /// The share of the write's latency after which the power fails, from 0 to 1.
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
    #[default]
    On,
    /// A cut has begun: the drive takes no commands and no connections until it is finished.
    Failing { then_on: bool },
    /// The power is off since this time.
    Off(Instant),
}

#[derive(Debug, Default)]
pub struct Power {
    pub state: State,
    epoch: Epoch,
    /// The next cut.
    pub plan: Option<PowerCutPlan>,
    cuts: u64,
    last: Option<PowerCutLoss>,
}

/// The state of a drive's power.
#[derive(Clone, Debug)]
pub struct PowerStatus {
    /// Whether it has power.
    pub is_on: bool,
    /// Number of power cuts.
    pub cuts: u64,
    /// The planned cut; `after_writes` counts down with each write.
    pub plan: Option<PowerCutPlan>,
    /// What the last cut lost.
    pub last: Option<PowerCutLoss>,
}

impl Layer for Power {
    /// Counts writes, also failed ones, and begins the planned cut.
    fn after(&mut self, command: &Command, accepted: &Accepted, now: Nanos) -> Option<Nanos> {
        let plan = self.plan.as_mut().filter(|_| command.writes())?;
        plan.after_writes -= 1;
        if plan.after_writes > 0 {
            return None;
        }
        let PowerCutPlan { share, then_on, .. } = *plan;
        self.plan = None;
        self.state = State::Failing { then_on };
        let latency = accepted.completed.saturating_sub(now).get() as f64;
        Some(now + Nanos::new((latency * share) as u64))
    }
}

impl Power {
    /// The epoch, while the drive takes commands.
    pub fn epoch(&self) -> Option<Epoch> {
        (self.state == State::On).then_some(self.epoch)
    }

    pub fn status(&self) -> PowerStatus {
        let is_on = !matches!(self.state, State::Off(_));
        PowerStatus { is_on, cuts: self.cuts, plan: self.plan, last: self.last.clone() }
    }

    /// Begins a cut. Returns false, and does nothing, unless the power is on.
    pub fn begin_cut(&mut self, then_on: bool) -> bool {
        let is_on = self.state == State::On;
        if is_on {
            self.state = State::Failing { then_on };
        }
        is_on
    }

    /// Records a finished cut: a new epoch begins, and no cut is planned.
    pub fn finish_cut(&mut self, state: State, loss: PowerCutLoss) {
        self.state = state;
        self.epoch.0 += 1;
        self.plan = None;
        self.cuts += 1;
        self.last = Some(loss);
    }

    /// Turns the power on; returns since when it was off, or `None` if it was not.
    pub fn turn_on(&mut self) -> Option<Instant> {
        let State::Off(since) = self.state else { return None };
        self.state = State::On;
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_time::Nanos;

    use super::{Power, PowerCutPlan, State};
    use crate::command::{Accepted, Command, Operation};
    use crate::drive::PowerCutLoss;
    use crate::layer::Layer;

    fn record(power: &mut Power, operation: Operation) -> Option<Nanos> {
        let completed = Nanos::new(150);
        let accepted = Accepted { result: Ok(()), completed, due: None, corruption: None };
        power.after(&Command::new(operation, 0, 512), &accepted, Nanos::new(50))
    }

    #[test]
    fn the_planned_write_is_cut_at_its_share_of_the_latency_and_reads_do_not_count() {
        let plan = Some(PowerCutPlan { after_writes: 2, share: 0.25, then_on: true });
        let mut power = Power { plan, ..Power::default() };
        assert_eq!(record(&mut power, Operation::Write), None);
        assert_eq!(record(&mut power, Operation::Read), None);
        assert_eq!(power.status().plan.unwrap().after_writes, 1);
        assert_eq!(record(&mut power, Operation::Zero { may_trim: false }), Some(Nanos::new(75)));
        assert_eq!(power.state, State::Failing { then_on: true });
        assert_eq!(power.epoch(), None);
        assert!(!power.begin_cut(false), "a cut has begun already");
    }

    #[test]
    fn each_cut_begins_a_new_epoch_and_drops_the_plan() {
        let mut power = Power::default();
        let first = power.epoch();
        power.plan = Some(PowerCutPlan { after_writes: 9, share: 0.5, then_on: true });
        assert!(power.begin_cut(true));
        power.finish_cut(State::On, PowerCutLoss::default());
        assert_ne!(power.epoch(), first);
        assert_eq!((power.status().cuts, power.status().plan), (1, None));
        assert_eq!(power.turn_on(), None, "it is on");
    }
}
