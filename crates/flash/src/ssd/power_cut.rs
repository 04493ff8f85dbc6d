//! `PowerCut`: the effects of a power failure on a twin.

use ssdlab_device::{Completion, Device, Wait};
use ssdlab_time::Nanos;

use super::Ssd;
use super::controller::Controller;
use crate::ftl::LostUnit;

/// The effects of a power cut.
#[derive(Clone, Debug)]
pub struct PowerCut {
    /// Requests that completed before it.
    pub completed: Vec<Completion>,
    /// Ids of requests that never complete, in the order in which they would have. Each unit of a
    /// write among them may or may not be stored.
    pub unanswered: Vec<u64>,
    /// Units that lost writes, by number. All others are kept. A write is *torn* if only some of
    /// its units are lost.
    pub lost: Vec<LostUnit>,
}

impl Ssd {
    /// Cuts the power at `at` and restores it.
    ///
    /// # Panics
    /// If that time is in the past.
    pub fn power_cut(&mut self, at: Nanos) -> PowerCut {
        let mut completed = Vec::new();
        while self.now < at {
            self.reap(Wait::Until(at), &mut completed).expect("a twin never goes away");
        }
        assert!(self.now == at, "the power cannot be cut in the past");
        self.reap(Wait::Poll, &mut completed).expect("a twin never goes away");
        if self.in_flight.len() == 0 {
            self.collect_idle(at);
        }
        let lost = self.controller.power_cut(at);
        self.idle_since = at;
        PowerCut { completed, unanswered: self.in_flight.abandon(), lost }
    }
}

impl Controller {
    /// Cuts the power at `at` and restores it; returns the lost units.
    fn power_cut(&mut self, at: Nanos) -> Vec<LostUnit> {
        let protected = self.buffer.power_loss_protection;
        self.array.power_cut();
        let lost = self.ftl.power_cut(protected, at, &mut self.array);
        if protected {
            // What the capacitors wrote out was done long before the power came back.
            self.array.power_cut();
        }
        self.host.power_cut();
        self.read_ahead.clear();
        lost
    }
}
