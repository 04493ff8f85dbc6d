//! `Undo`: the old content of units whose newest writes a power cut may undo.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use ssdlab_time::Nanos;

use crate::buffer_pool::{BufferPart, BufferPool};
use crate::drive::LostWrites;

/// A write to a unit, and the content before it.
#[derive(Clone)]
struct UndoEntry {
    /// `None` once the unit was trimmed, because then nothing is restored.
    unit: Option<u64>,
    /// When the write completes on the drive's clock.
    completed: Nanos,
    /// `None` for zeros.
    old: Option<BufferPart>,
}

/// The newest writes in order. The oldest are dropped: they are in flash by then.
#[derive(Clone)]
pub struct Undo {
    /// The newest last.
    entries: VecDeque<UndoEntry>,
    limit: usize,
    /// Buffers of one unit each.
    pub pool: Arc<BufferPool>,
}

impl Undo {
    /// For a drive that buffers this number of units of `unit_bytes`. Twice as many writes are
    /// kept, because the server may record writes in another order than the drive executes them.
    pub fn new(volatile_units: u64, unit_bytes: u64) -> Self {
        let limit = 2 * volatile_units as usize + 64;
        Self { entries: VecDeque::new(), limit, pool: BufferPool::new(unit_bytes as usize) }
    }

    /// Records a write to a unit that completes at `completed`, and the old content; `None` for
    /// zeros.
    pub fn record(&mut self, unit: u64, completed: Nanos, old: Option<BufferPart>) {
        self.entries.push_back(UndoEntry { unit: Some(unit), completed, old });
    }

    /// Removes the writes that must be in flash by now: all completed writes but the newest.
    /// Returns their old content.
    pub fn take_durable(&mut self, now: Nanos) -> Vec<Option<BufferPart>> {
        let mut durable = Vec::new();
        while self.entries.len() > self.limit
            && self.entries.front().is_some_and(|oldest| oldest.completed <= now)
        {
            durable.extend(self.entries.pop_front().map(|oldest| oldest.old));
        }
        durable
    }

    /// Drops the old content of units that were trimmed.
    pub fn drop_units(&mut self, units: Range<u64>) {
        for each in &mut self.entries {
            if each.unit.is_some_and(|unit| units.contains(&unit)) {
                each.unit = None;
            }
        }
    }

    /// The content of units before the writes that they lost; panics if a unit lost more writes
    /// than are recorded. Drops everything else, because after a power cut all remaining content is
    /// in flash.
    pub fn take_old(&mut self, lost: &[LostWrites]) -> Vec<(u64, Option<BufferPart>)> {
        let mut left: BTreeMap<u64, u32> =
            lost.iter().map(|each| (each.unit, each.writes)).collect();
        let mut found = Vec::with_capacity(lost.len());
        for each in self.entries.drain(..).rev() {
            let Some(unit) = each.unit else { continue };
            let Some(writes) = left.get_mut(&unit) else { continue };
            *writes -= 1;
            if *writes == 0 {
                left.remove(&unit);
                found.push((unit, each.old));
            }
        }
        assert!(left.is_empty(), "units lost more writes than are kept: {left:?}");
        found
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_time::Nanos;

    use super::{LostWrites, Undo};
    use crate::buffer_pool::BufferPart;

    /// An undo list after writes to units with this old content.
    fn after(volatile_units: u64, writes: impl IntoIterator<Item = (u64, u8)>) -> Undo {
        let mut undo = Undo::new(volatile_units, 1);
        for (number, (unit, old)) in writes.into_iter().enumerate() {
            let old = BufferPart::copied(&[old], &undo.pool);
            undo.record(unit, Nanos::new(number as u64), Some(old));
        }
        undo
    }

    fn before(mut undo: Undo, unit: u64, writes: u32) -> u8 {
        let found = undo.take_old(&[LostWrites { unit, writes }]);
        assert_eq!(found[0].0, unit);
        found[0].1.as_ref().unwrap()[0]
    }

    #[test]
    fn a_unit_is_restored_to_its_content_before_its_newest_writes() {
        for (unit, writes, old) in [(7, 1, 3), (7, 3, 1), (8, 1, 9)] {
            let undo = after(4, [(7, 1), (8, 9), (7, 2), (7, 3)]);
            assert_eq!(before(undo, unit, writes), old);
        }
    }

    #[test]
    fn the_oldest_completed_writes_are_dropped_at_the_limit() {
        let mut undo = after(1, (0..70).map(|write| (5, write)));
        assert_eq!(undo.take_durable(Nanos::new(2)).len(), 3);
        assert_eq!(undo.entries.len(), 67, "one in flight is kept beyond the limit");
        assert_eq!(undo.take_durable(Nanos::new(70)).len(), 1);
        assert_eq!(before(undo, 5, 66), 4);
    }

    #[test]
    #[should_panic(expected = "more writes than are kept")]
    fn trimmed_units_are_not_restored() {
        let mut undo = after(4, [(5, 1)]);
        undo.drop_units(5..6);
        before(undo, 5, 1);
    }
}
