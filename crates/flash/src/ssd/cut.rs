//! `PowerCut`: what a twin answers when its power fails.

use ssdlab_device::{Completion, Device, Wait};
use ssdlab_time::{Calendar, Nanos};

use super::Ssd;
use crate::ftl::LostUnit;

/// What a power cut did.
#[derive(Clone, Debug)]
pub struct PowerCut {
    /// Requests that were answered before it.
    pub answered: Vec<Completion>,
    /// Ids of those that never will be, by when they would have been. Of a write among them each
    /// unit may be there or not.
    pub unanswered: Vec<u64>,
    /// Units that lost writes, by number. All else is kept; a write is *torn* when only some of its
    /// units are lost.
    pub lost: Vec<LostUnit>,
}

impl Ssd {
    /// Cuts the power at `at`, not before now, and turns it on again.
    ///
    /// # Panics
    /// When that time is past.
    pub fn power_cut(&mut self, at: Nanos) -> PowerCut {
        let mut answered = Vec::new();
        while self.now < at {
            self.reap(Wait::Until(at), &mut answered).expect("a twin never goes away");
        }
        assert!(self.now == at, "the power cannot be cut in the past");
        self.reap(Wait::Poll, &mut answered).expect("a twin never goes away");
        if self.flight.len() == 0 {
            self.ftl.collect_idle(self.idle_since, at, &mut self.array);
        }
        let protected = self.buffer.power_loss_protection;
        self.array.power_cut();
        let lost = self.ftl.power_cut(protected, at, &mut self.array);
        if protected {
            // What the capacitors wrote out was done long before the power came back.
            self.array.power_cut();
        }
        self.to_host = Calendar::default();
        self.from_host = Calendar::default();
        self.processor = Calendar::default();
        self.ahead.clear();
        self.idle_since = at;
        PowerCut { answered, unanswered: self.flight.abandon(), lost }
    }
}
