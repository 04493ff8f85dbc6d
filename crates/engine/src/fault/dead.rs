//! `Dead`: the units that a failed die took with it.

use crate::command::{Command, DriveParameters, Operation};
use crate::drive::Drive;
use crate::errno::EIO;

/// A bit for each unit whose content lay on the die and was not written since.
///
/// Not modelled: the spare that such a die costs, and a power cut that takes what was written
/// since: what it brings back can be read.
#[derive(Debug)]
pub struct Dead {
    bits: Vec<u64>,
}

impl Dead {
    /// All that lies on a die now; what is in the drive's buffer lies on none.
    pub fn new(drive: &dyn Drive, die: u32) -> Self {
        let units = drive.capacity_bytes() / drive.unit_bytes();
        let mut bits = vec![0; units.div_ceil(64) as usize];
        for unit in (0..units).filter(|unit| drive.die_of(*unit) == Some(die)) {
            bits[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        Self { bits }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Whether a command needs what is gone; whole units that are written or trimmed need nothing,
    /// and are there again.
    pub fn meet(&mut self, command: &Command, shape: &DriveParameters) -> Result<(), i32> {
        if command.operation == Operation::Flush {
            return Ok(());
        }
        let (start, end) = (command.offset, command.end());
        let (first, last) = (start / shape.unit_bytes, end.div_ceil(shape.unit_bytes));
        if matches!(command.operation, Operation::Read | Operation::Cache) {
            return if (first..last).any(|unit| self.has(unit)) { Err(EIO) } else { Ok(()) };
        }
        let needs_rest =
            |unit: u64| start > unit * shape.unit_bytes || end < (unit + 1) * shape.unit_bytes;
        if command.operation != Operation::Trim
            && [first, last - 1].into_iter().any(|unit| needs_rest(unit) && self.has(unit))
        {
            return Err(EIO);
        }
        for unit in (first..last).filter(|unit| !needs_rest(*unit)) {
            self.bits[(unit / 64) as usize] &= !(1 << (unit % 64));
        }
        Ok(())
    }

    /// Whether a unit is gone.
    pub fn has(&self, unit: u64) -> bool {
        self.bits[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }
}
