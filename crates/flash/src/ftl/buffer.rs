//! `WriteBuffer`: how long a write waits for a place in the controller's memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_time::Nanos;

/// Places for mapping units between host and flash.
///
/// A unit takes a place when it is admitted and gives it back when its page has been programmed.
///
/// Modelled: early completion, a size, waiting for the soonest place when it is full. Not modelled:
/// merging of writes to one unit; places for reads or for what collection moves. Differs from
/// hardware: a place is free when its program was due to end, also where a read pushed that back.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    capacity: u64,
    held: u64,
    /// Places to be given back, soonest first.
    releases: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl WriteBuffer {
    /// An empty buffer for this many units.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, held: 0, releases: BinaryHeap::new() }
    }

    /// Takes a place at `at` or as soon as there is one; returns when.
    ///
    /// # Panics
    /// When it is full and nothing will be released: the pages being filled outgrow it.
    pub fn admit(&mut self, at: Nanos) -> Nanos {
        self.release_until(at);
        let mut admitted = at;
        while self.held >= self.capacity {
            let Reverse((end, _)) = *self.releases.peek().expect("a full buffer drains");
            admitted = end;
            self.release_until(end);
        }
        self.held += 1;
        admitted
    }

    /// Gives `units` places back at `end`.
    pub fn release_at(&mut self, end: Nanos, units: u32) {
        self.releases.push(Reverse((end, units)));
    }

    /// Gives all places back: the power was cut.
    pub fn clear(&mut self) {
        self.held = 0;
        self.releases.clear();
    }

    fn release_until(&mut self, time: Nanos) {
        while let Some(Reverse((end, units))) = self.releases.peek().copied()
            && end <= time
        {
            self.releases.pop();
            self.held -= u64::from(units);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WriteBuffer;
    use ssdlab_time::Nanos;

    #[test]
    fn a_full_buffer_admits_when_a_page_has_been_programmed() {
        let mut buffer = WriteBuffer::new(2);
        assert_eq!(buffer.admit(Nanos::new(1)), Nanos::new(1));
        assert_eq!(buffer.admit(Nanos::new(2)), Nanos::new(2));
        buffer.release_at(Nanos::new(50), 2);
        assert_eq!(buffer.admit(Nanos::new(3)), Nanos::new(50));
        assert_eq!(buffer.admit(Nanos::new(60)), Nanos::new(60));
    }
}
