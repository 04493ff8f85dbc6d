//! `Snapshots`: states at earlier ticks, to go back without running everything again.

use crate::position::{Position, SeekBy};
use crate::spec::Spec;
use crate::state::State;

/// Ticks between two snapshots at first. Copying a state takes about as long as a tick for each of
/// these bytes.
const SPACING: u64 = 16_384;
const BYTES_PER_TICK: u64 = 128;

/// States in the order of their ticks. When they take too much memory, every second one is dropped
/// and the distance between new ones doubles.
pub struct Snapshots {
    states: Vec<State>,
    spacing: u64,
    /// The tick from which on the next one is due.
    due: u64,
    limit_bytes: u64,
    bytes: u64,
}

impl Snapshots {
    /// For states like `first`, which is not kept: it can be made again.
    pub fn new(first: &State, spec: &Spec) -> Self {
        let cheap = SPACING.max(first.memory_bytes() / BYTES_PER_TICK);
        let (spacing, limit_bytes) = (spec.snapshot_ticks.unwrap_or(cheap), spec.snapshot_bytes);
        Self { states: Vec::new(), spacing, due: spacing, limit_bytes, bytes: 0 }
    }

    pub fn count(&self) -> usize {
        self.states.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a snapshot if one is due.
    #[inline]
    pub fn offer(&mut self, state: &State) {
        if state.tick >= self.due {
            self.take(state);
        }
    }

    #[cold]
    fn take(&mut self, state: &State) {
        self.due = state.tick + self.spacing;
        let bytes = state.memory_bytes();
        if bytes > self.limit_bytes {
            return;
        }
        while self.bytes + bytes > self.limit_bytes {
            self.drop_every_second();
        }
        if let Some(copy) = state.try_clone() {
            self.states.push(copy);
            self.bytes += bytes;
        }
    }

    fn drop_every_second(&mut self) {
        let mut number = 0;
        self.states.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        self.spacing *= 2;
        self.bytes = self.states.iter().map(State::memory_bytes).sum();
    }

    /// A copy of the last state before a position, or at it if the position is a tick.
    pub fn last_before(&self, by: SeekBy, value: u64) -> Option<State> {
        let is_before = |state: &State| state.position().is_before(by, value);
        let count = self.states.partition_point(is_before);
        self.states[..count].last().and_then(State::try_clone)
    }

    /// Forgets the states after a position, because what follows has changed.
    pub fn forget_after(&mut self, position: Position) {
        self.states.retain(|state| state.tick <= position.tick);
        self.bytes = self.states.iter().map(State::memory_bytes).sum();
        let last = self.states.last().map_or(0, |state| state.tick);
        self.due = last + self.spacing;
    }
}
