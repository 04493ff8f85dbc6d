//! `DeadDie`: the units whose content a failed die took with it.

use crate::command::{Command, Operation};
use crate::drive::{Drive, DriveParameters};
use crate::errno::EIO;

/// One bit for each unit that was on the die when it failed and was not written or trimmed since.
///
/// Not modelled: the spare area that such a die costs, and a power cut that takes later writes: the
/// old content that it restores can be read.
#[derive(Debug)]
pub struct DeadDie {
    bits: Vec<u64>,
}

impl DeadDie {
    /// All units on a die; units in the drive's buffer are on no die.
    pub fn new(drive: &dyn Drive, parameters: &DriveParameters, die: u32) -> Self {
        let units = parameters.capacity / parameters.unit_bytes;
        let mut bits = vec![0; units.div_ceil(64) as usize];
        for unit in (0..units).filter(|unit| drive.die_of(*unit) == Some(die)) {
            bits[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        Self { bits }
    }

    pub fn count(&self) -> u64 {
        self.bits.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Checks a command; it fails if it needs the content of a dead unit. Units that it writes or
    /// trims completely are no longer dead.
    pub fn check(&mut self, command: &Command, parameters: &DriveParameters) -> Result<(), i32> {
        if command.operation == Operation::Flush {
            return Ok(());
        }
        let (start, end, unit_bytes) = (command.offset, command.end(), parameters.unit_bytes);
        let (first, last) = (start / unit_bytes, end.div_ceil(unit_bytes));
        if matches!(command.operation, Operation::Read | Operation::Cache) {
            return if (first..last).any(|unit| self.has(unit)) { Err(EIO) } else { Ok(()) };
        }
        let is_partial = |unit: u64| start > unit * unit_bytes || end < (unit + 1) * unit_bytes;
        if command.operation != Operation::Trim
            && [first, last - 1].into_iter().any(|unit| is_partial(unit) && self.has(unit))
        {
            return Err(EIO);
        }
        for unit in (first..last).filter(|unit| !is_partial(*unit)) {
            self.bits[(unit / 64) as usize] &= !(1 << (unit % 64));
        }
        Ok(())
    }

    pub fn has(&self, unit: u64) -> bool {
        self.bits[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }
}
