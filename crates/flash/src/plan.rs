//! `ReadPlan`: which pages a read command must sense, each once, and in which order they are ready.

use std::ops::Deref;

use ssdlab_time::{Nanos, Span};

use crate::nand::{Array, Place};

/// The senses that one read command needs, each page once.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    senses: Vec<Sense>,
    /// For each die: the last of its senses in this command, if it is of this command.
    last_of_die: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct Sense {
    /// The page.
    pub place: Place,
    /// Units of it that are wanted.
    pub units: u32,
    /// Bytes of them that the host asked for.
    pub bytes: u64,
    /// An earlier sense of the same die in this command, or one that is not of this die.
    previous: usize,
    /// When its data stands in the die's register.
    pub ready: Nanos,
    /// When its data leaves, where the die senses nothing else before that.
    pub moved: Option<Span>,
}

impl ReadPlan {
    /// No senses, for a drive of this many dies.
    pub fn new(dies: usize) -> Self {
        Self { senses: Vec::new(), last_of_die: vec![usize::MAX; dies] }
    }

    /// Forgets the last command.
    pub fn clear(&mut self) {
        for sense in self.senses.drain(..) {
            self.last_of_die[sense.place.die as usize] = usize::MAX;
        }
    }

    /// Adds a unit of which `bytes` are wanted.
    pub fn add(&mut self, place: Place, bytes: u64) {
        let last = self.last_of_die[place.die as usize];
        let mut index = last;
        while let Some(sense) = self.senses.get_mut(index) {
            if sense.place.same_page(place) {
                sense.units += 1;
                sense.bytes += bytes;
                return;
            }
            index = sense.previous;
        }
        self.last_of_die[place.die as usize] = self.senses.len();
        let (ready, moved) = (Nanos::ZERO, None);
        self.senses.push(Sense { place, units: 1, bytes, previous: last, ready, moved });
    }

    /// Senses each page, then orders them by when their data is ready.
    pub fn sense_all(&mut self, array: &mut Array, at: Nanos) {
        for sense in &mut self.senses {
            sense.ready = array.sense(sense.place, at);
            if array.holds_dies() {
                sense.moved = Some(array.transfer_out(sense.place.die, sense.ready, sense.units));
            }
        }
        if !self.senses.is_sorted_by_key(|sense| sense.ready) {
            self.senses.sort_by_key(|sense| sense.ready);
        }
    }
}

impl Deref for ReadPlan {
    type Target = [Sense];

    fn deref(&self) -> &[Sense] {
        &self.senses
    }
}
