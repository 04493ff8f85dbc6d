//! What each unit of a drive may hold, by what was written, acknowledged and flushed.

use std::ops::Range;

/// The values that a unit may hold.
#[derive(Clone, Debug)]
struct Unit {
    /// What the last flush covers.
    durable: Vec<u8>,
    /// What was written since, or may have been; the last that was acknowledged first.
    since: Vec<u8>,
    is_acknowledged: bool,
}

/// All units; each is written with one value at a time.
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

    /// A write is sent: it may be done, whatever comes of it.
    pub fn tries(&mut self, range: &Range<u64>, value: u8) {
        for unit in self.of(range) {
            unit.since.push(value);
        }
    }

    /// A write was acknowledged: what it replaced is read no more.
    pub fn wrote(&mut self, range: &Range<u64>, value: u8) {
        for unit in self.of(range) {
            // After a power cut it may be there again, unless it is flushed.
            unit.durable.append(&mut unit.since);
            unit.since = vec![value];
            unit.is_acknowledged = true;
        }
    }

    /// A flush was acknowledged.
    pub fn flushed(&mut self) {
        for unit in self.units.iter_mut().filter(|unit| unit.is_acknowledged) {
            unit.durable = vec![unit.since[0]];
        }
    }

    /// The power was cut: what was not flushed may be gone.
    pub fn power_cut(&mut self) {
        for unit in &mut self.units {
            unit.is_acknowledged = false;
        }
    }

    /// Checks what was read.
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

    fn of(&mut self, range: &Range<u64>) -> impl Iterator<Item = &mut Unit> {
        let unit = self.unit_bytes;
        self.units[(range.start / unit) as usize..(range.end / unit) as usize].iter_mut()
    }
}
