//! Which parts of a drive are mapped, or cannot be read.

use std::ops::Range;

use super::Engine;
use crate::drive::Drive;

/// The property of the ranges that `Engine::extents` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentQuery {
    /// The drive has mapped them.
    Mapped,
    /// A fault makes reads of them fail.
    Unreadable {
        /// Only the faults that have already hit a command.
        hit_only: bool,
    },
}

/// The block status of a unit of a drive.
pub type BlockStatusFn = fn(&dyn Drive, u64) -> u32;

impl Engine {
    /// Whether the drive has mapped all units of a range of bytes.
    pub fn is_mapped(&self, offset: u64, length: u64) -> bool {
        let unit_bytes = self.parameters.unit_bytes;
        let mut units = offset / unit_bytes..(offset + length).div_ceil(unit_bytes);
        self.inspect(|state| units.all(|unit| state.drive.is_mapped(unit)))
    }

    /// The parts of a range of bytes that match a query, rounded to units within the range: the
    /// first `limit` of them, and whether the list is complete.
    pub fn extents(
        &self,
        bytes: Range<u64>,
        limit: usize,
        query: ExtentQuery,
    ) -> (Vec<Range<u64>>, bool) {
        let unit_bytes = self.parameters.unit_bytes;
        let state = self.lock();
        let mut found: Vec<Range<u64>> = Vec::new();
        for unit in bytes.start / unit_bytes..bytes.end.div_ceil(unit_bytes) {
            let here = unit * unit_bytes..(unit + 1) * unit_bytes;
            let matches = match query {
                ExtentQuery::Mapped => state.drive.is_mapped(unit),
                ExtentQuery::Unreadable { hit_only } => {
                    state.layers.faults.fails_reads(&here, unit, hit_only)
                }
            };
            if !matches {
                continue;
            }
            let (start, end) = (here.start.max(bytes.start), here.end.min(bytes.end));
            let is_full = found.len() == limit;
            match found.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ if is_full => return (found, false),
                _ => found.push(start..end),
            }
        }
        (found, true)
    }

    /// The block status of a range of units, as runs of units with the same status: the number of
    /// units and their status. At most `limit` runs.
    pub fn block_status(
        &self,
        units: Range<u64>,
        limit: usize,
        status: BlockStatusFn,
    ) -> Vec<(u64, u32)> {
        let state = self.lock();
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for unit in units {
            let here = status(&*state.drive, unit);
            let is_full = runs.len() == limit;
            match runs.last_mut() {
                Some((units, same)) if *same == here => *units += 1,
                _ if is_full => break,
                _ => runs.push((1, here)),
            }
        }
        runs
    }
}
