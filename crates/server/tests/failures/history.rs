//! The values that each unit may hold after writes, acknowledgements, flushes and power cuts.

use std::ops::Range;

/// The values that a unit may hold.
#[derive(Clone, Debug)]
struct Unit {
    /// Values that the last flush may have made durable.
    durable: Vec<u8>,
    /// Values that were written since, or may have been; the last acknowledged value is the first.
    since: Vec<u8>,
    is_acknowledged: bool,
}

/// All units. Each write fills its units with one value.
pub struct History {
    units: Vec<Unit>,
    unit_bytes: u64,
    last: u8,
}

impl History {
    pub fn new(capacity: u64, unit_bytes: u64) -> Self {
        let unit = Unit { durable: vec![0], since: Vec::new(), is_acknowledged: false };
        Self { units: vec![unit; (capacity / unit_bytes) as usize], unit_bytes, last: 0 }
    }

    pub fn next_value(&mut self) -> u8 {
        self.last += 1;
        self.last
    }

    /// A write is sent; from now on it may take effect.
    pub fn write_sent(&mut self, range: &Range<u64>, value: u8) {
        for unit in self.units(range) {
            unit.since.push(value);
        }
    }

    /// A write was acknowledged; the data that it replaced is no longer readable.
    pub fn write_acknowledged(&mut self, range: &Range<u64>, value: u8) {
        for unit in self.units(range) {
            // A power cut may bring it back, unless the write is flushed.
            unit.durable.append(&mut unit.since);
            unit.since = vec![value];
            unit.is_acknowledged = true;
        }
    }

    /// A flush was acknowledged.
    pub fn flush_acknowledged(&mut self) {
        for unit in self.units.iter_mut().filter(|unit| unit.is_acknowledged) {
            unit.durable = vec![unit.since[0]];
        }
    }

    /// The power was cut; writes that were not flushed may be lost.
    pub fn power_cut(&mut self) {
        for unit in &mut self.units {
            unit.is_acknowledged = false;
        }
    }

    /// Checks data that was read.
    pub fn check(&self, offset: u64, bytes: &[u8]) {
        let units = self.units[(offset / self.unit_bytes) as usize..].iter();
        for (number, (unit, bytes)) in units.zip(bytes.chunks(self.unit_bytes as usize)).enumerate()
        {
            let durable = if unit.is_acknowledged { &[][..] } else { &unit.durable };
            let mut allowed = durable.iter().chain(&unit.since);
            let is_allowed = allowed.any(|value| bytes.iter().all(|byte| byte == value));
            assert!(is_allowed, "unit {number} from {offset} has {}, of {unit:?}", bytes[0]);
        }
    }

    fn units(&mut self, range: &Range<u64>) -> impl Iterator<Item = &mut Unit> {
        let unit = self.unit_bytes;
        self.units[(range.start / unit) as usize..(range.end / unit) as usize].iter_mut()
    }
}
