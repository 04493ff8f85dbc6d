//! `Flight`: the requests that a twin has taken and not yet answered, soonest completion first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_device::{Completion, IoError};
use ssdlab_time::Nanos;

/// Bits of a key that name a slot; those above it, up to the time, count submissions.
const SLOT_BITS: u32 = 24;

/// Requests in flight. Of equal completion times the first submitted comes first.
#[derive(Debug, Default)]
pub struct Flight {
    /// Completion time, order of submission and slot in one number: one comparison a step.
    keys: BinaryHeap<Reverse<u128>>,
    /// Id, time of submission and outcome, by slot.
    slots: Vec<(u64, Nanos, Result<(), IoError>)>,
    free: Vec<u32>,
    submissions: u64,
}

impl Flight {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Takes a request whose completion time is known already.
    pub fn take(
        &mut self,
        id: u64,
        submitted: Nanos,
        completed: Nanos,
        outcome: Result<(), IoError>,
    ) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, Nanos::ZERO, Ok(())));
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = (id, submitted, outcome);
        let order = self.submissions << SLOT_BITS | u64::from(slot);
        self.keys.push(Reverse(u128::from(completed.get()) << 64 | u128::from(order)));
        self.submissions += 1;
    }

    /// Takes all of them out; returns their ids in order of submission.
    pub fn abandon(&mut self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.keys.drain().map(|Reverse(key)| key as u64).collect();
        keys.sort_unstable();
        let slot = |key: u64| key as u32 & ((1 << SLOT_BITS) - 1);
        self.free.extend(keys.iter().map(|key| slot(*key)));
        keys.into_iter().map(|key| self.slots[slot(key) as usize].0).collect()
    }

    /// When the next one completes.
    pub fn next(&self) -> Option<Nanos> {
        self.keys.peek().map(|Reverse(key)| Nanos::new((key >> 64) as u64))
    }

    /// Lands the next one.
    ///
    /// # Panics
    /// When there is none.
    pub fn land(&mut self) -> Completion {
        let Reverse(key) = self.keys.pop().expect("a request is in flight");
        let slot = key as u32 & ((1 << SLOT_BITS) - 1);
        self.free.push(slot);
        let (id, submitted, outcome) = self.slots[slot as usize];
        let completed = Nanos::new((key >> 64) as u64);
        Completion { id, submitted, completed, outcome }
    }
}
