//! `WriteBuffer`: how long a write waits for space in the controller's memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_time::Nanos;

/// Space for mapping units on their way from host to flash.
///
/// A unit takes space when it is admitted and releases it when its page has been programmed.
///
/// Modelled: early completion, a size, waiting for the next release when it is full. Not modelled:
/// merging of writes to one unit; space for reads or for relocated units. Differs from hardware:
/// space is released when the program was first expected to end, even if a read delayed it.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    capacity: u64,
    held: u64,
    /// Units to be released, soonest first.
    releases: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The time of the last release that has been scheduled.
    pub empty_at: Nanos,
    /// When the last unit that waited for space was admitted.
    waited_until: Nanos,
}

impl WriteBuffer {
    /// An empty buffer for `capacity` units.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            held: 0,
            releases: BinaryHeap::new(),
            empty_at: Nanos::ZERO,
            waited_until: Nanos::ZERO,
        }
    }

    /// Admits a unit at `at` or as soon as there is space; returns when. Units are admitted in the
    /// order of the calls: none overtakes one that waited for space.
    ///
    /// # Panics
    /// If it is full and no release is scheduled: the partly filled pages are larger than it.
    pub fn admit(&mut self, at: Nanos) -> Nanos {
        let mut admitted = at.max(self.waited_until);
        self.release_until(admitted);
        while self.held >= self.capacity {
            let Reverse((end, _)) = *self.releases.peek().expect("a full buffer drains");
            admitted = end;
            self.waited_until = end;
            self.release_until(end);
        }
        self.held += 1;
        admitted
    }

    /// Schedules the release of `units` units at `end`.
    pub fn release_at(&mut self, end: Nanos, units: u32) {
        self.releases.push(Reverse((end, units)));
        self.empty_at = self.empty_at.max(end);
    }

    /// Empties it: the power was cut at `now`.
    pub fn clear(&mut self, now: Nanos) {
        self.held = 0;
        self.releases.clear();
        self.empty_at = now;
        self.waited_until = now;
    }

    /// Units that it holds at `now`, and those that wait for space.
    pub fn held_at(&self, now: Nanos) -> u64 {
        let released = self.releases.iter().filter(|Reverse((end, _))| *end <= now);
        self.held - released.map(|Reverse((_, units))| u64::from(*units)).sum::<u64>()
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
        assert_eq!((buffer.held_at(Nanos::new(49)), buffer.held_at(Nanos::new(50))), (2, 0));
        assert_eq!(buffer.admit(Nanos::new(3)), Nanos::new(50));
        assert_eq!(buffer.admit(Nanos::new(60)), Nanos::new(60));
    }

    #[test]
    fn no_unit_takes_space_before_it_is_released() {
        let mut buffer = WriteBuffer::new(2);
        buffer.admit(Nanos::new(1));
        buffer.admit(Nanos::new(2));
        buffer.release_at(Nanos::new(50), 2);
        assert_eq!(buffer.admit(Nanos::new(3)), Nanos::new(50));
        assert_eq!(buffer.admit(Nanos::new(4)), Nanos::new(50), "both units leave at 50");
    }
}
