//! `ReadPlan`: the pages that a read command senses, each once, in the order in which they are
//! ready.

use ssdlab_time::{Nanos, Span};

use crate::nand::{Array, Place};

/// The senses that one read command needs, each page once.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    pub senses: Vec<Sense>,
    /// For each die: the index of its last sense in this command, or `usize::MAX`.
    last_of_die: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct Sense {
    pub place: Place,
    /// The number of its units that are read.
    pub units: u32,
    /// The number of bytes of them that the host reads.
    pub bytes: u64,
    /// The index of the previous sense of this die in this command, or `usize::MAX`.
    previous: usize,
    /// When its data is in the die's register.
    pub ready: Nanos,
    /// When its data is transferred, if the die senses nothing else before that.
    pub moved: Option<Span>,
}

impl ReadPlan {
    pub fn new(dies: usize) -> Self {
        Self { senses: Vec::new(), last_of_die: vec![usize::MAX; dies] }
    }

    pub fn clear(&mut self) {
        for sense in self.senses.drain(..) {
            self.last_of_die[sense.place.die as usize] = usize::MAX;
        }
    }

    /// Adds a unit of which `bytes` bytes are read.
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

    /// Senses each page, then sorts the senses by when their data is ready.
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
