//! `PowerControl`: cuts and restores the power of a served drive.

use super::Engine;
use crate::drive::PowerCutLoss;
use crate::pacing::wall_clock_now;
use crate::power::{Epoch, PowerCutPlan, PowerStatus, State};

/// The power of a served drive.
#[derive(Clone, Copy)]
pub struct PowerControl<'a>(pub(super) &'a Engine);

impl PowerControl<'_> {
    /// State and statistics.
    pub fn status(self) -> PowerStatus {
        self.0.inspect(|state| state.layers.power.status())
    }

    /// The epoch that commands must carry; `None` while the drive takes no commands.
    pub fn epoch(self) -> Option<Epoch> {
        self.0.inspect(|state| state.layers.power.epoch())
    }

    /// Plans a power cut and drops an earlier plan.
    ///
    /// # Panics
    /// If `after_writes` is 0.
    pub fn plan_cut(self, plan: Option<PowerCutPlan>) {
        assert!(plan.is_none_or(|plan| plan.after_writes > 0), "the next write is number 1");
        self.0.lock().layers.power.plan = plan;
    }

    /// Begins a cut: the drive takes no commands and no connections until `finish_cut`. A planned
    /// cut begins in the same way. Returns false, and does nothing, unless the power is on.
    pub fn begin_cut(self, then_on: bool) -> bool {
        self.0.lock().layers.power.begin_cut(then_on)
    }

    /// Whether a cut has begun and is not finished.
    pub fn is_failing(self) -> bool {
        self.0.inspect(|state| matches!(state.layers.power.state, State::Failing { .. }))
    }

    /// Finishes a cut that has begun: rolls back what was not in flash, and ends the epoch. `None`
    /// if no cut has begun.
    ///
    /// # Panics
    /// If the content's file or the write log cannot be written: a cut must not end half way.
    pub fn finish_cut(self) -> Option<PowerCutLoss> {
        let engine = self.0;
        let _exclusive = engine.gate.write().expect("no panic while locked");
        let mut state = engine.lock();
        let State::Failing { then_on } = state.layers.power.state else { return None };
        // A reply may have left since the cut began: its command completed before the cut.
        let now = engine.clock.acknowledged_time(state.drive.now());
        state.advance(now);
        let loss = state.drive.power_cut();
        state.in_flight = 0;
        engine.content.roll_back(&loss).expect("the content and the log can be written");
        let next = if then_on { State::On } else { State::Off(wall_clock_now()) };
        state.layers.power.finish_cut(next, loss.clone());
        engine.clock.begin_idle();
        Some(loss)
    }

    /// Turns the power on; false if it was on. The drive's clock stood still while it was off.
    pub fn turn_on(self) -> bool {
        let mut state = self.0.lock();
        let Some(off_since) = state.layers.power.turn_on() else { return false };
        self.0.clock.resume_after(off_since);
        true
    }
}
