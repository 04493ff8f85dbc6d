//! `Statistics`: counts of a trace, from one pass that also checks every entry.

use std::collections::BTreeMap;

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::sample::Sample;
use super::{Entry, Replay, TraceError};

/// Units of 4 KiB for footprints: a host's page, a drive's mapping unit.
const UNIT_SHIFT: u32 = 12;

/// Counts over all entries of a trace.
#[derive(Debug, Default)]
pub struct Statistics {
    /// The name of the format of the trace.
    pub format: &'static str,
    /// Requests by `Op::index`.
    pub requests: [u64; 4],
    /// Bytes by `Op::index`.
    pub bytes: [u64; 4],
    /// Number of reads and of writes by their size in bytes.
    pub sizes: [BTreeMap<u64, u64>; 2],
    /// For each volume, the byte after the last one accessed.
    pub volume_ends: BTreeMap<u32, u64>,
    /// Bytes of the distinct units of 4 KiB that are read, written or trimmed: exact up to 512 MiB,
    /// above that estimated from a sample with a standard error of at most 0.4 %.
    pub footprint_bytes: u64,
    /// The same for units that are written.
    pub written_footprint_bytes: u64,
    /// Units of 4 KiB written, counting each write.
    pub unit_writes: u64,
    /// The share of accesses that go to the most accessed fifth of the units; 0.2 if accesses are
    /// uniform.
    pub hottest_fifth: f64,
    /// Requests whose first byte and length are multiples of 4 KiB.
    pub aligned: u64,
    /// Requests that start where the previous one of the same operation and volume ended.
    pub sequential: u64,
    /// Time from the first to the last entry.
    pub span: Nanos,
    /// Entries with an earlier time than the entry before.
    pub out_of_order: u64,
    /// Entries of length 0, which are skipped.
    pub empty: u64,
}

/// State between entries.
#[derive(Default)]
struct Pass {
    units: Sample,
    ends: BTreeMap<(u32, usize), u64>,
}

impl Statistics {
    /// Reads a whole trace.
    ///
    /// # Errors
    /// The first invalid entry, or a trace without requests.
    pub fn collect(replay: &Replay) -> Result<Self, TraceError> {
        let mut trace = replay.open()?;
        let mut found = Self { format: trace.format().name(), ..Self::default() };
        let mut pass = Pass::default();
        for entry in trace.by_ref() {
            found.add(&entry?, &mut pass);
        }
        (found.out_of_order, found.empty) = (trace.out_of_order, trace.empty);
        if found.requests.iter().sum::<u64>() == 0 {
            let what = match replay.volume {
                Some(volume) => format!("it has no requests for volume {volume}"),
                None => "it has no requests".to_owned(),
            };
            return Err(TraceError::File { path: replay.path.clone(), what });
        }
        found.footprint_bytes = pass.units.count() << UNIT_SHIFT;
        found.written_footprint_bytes = pass.units.count_written() << UNIT_SHIFT;
        found.hottest_fifth = pass.units.hottest_fifth();
        Ok(found)
    }

    fn add(&mut self, entry: &Entry, pass: &mut Pass) {
        let kind = entry.op.index();
        self.requests[kind] += 1;
        self.bytes[kind] += entry.length_bytes;
        self.span = entry.at;
        if entry.op == Op::Flush {
            return;
        }
        if let Some(sizes) = self.sizes.get_mut(kind) {
            *sizes.entry(entry.length_bytes).or_default() += 1;
        }
        let end = self.volume_ends.entry(entry.volume).or_default();
        *end = (*end).max(entry.end_bytes());
        let unit = (1_u64 << UNIT_SHIFT) - 1;
        self.aligned += u64::from((entry.offset_bytes | entry.length_bytes) & unit == 0);
        let last = pass.ends.insert((entry.volume, kind), entry.end_bytes());
        self.sequential += u64::from(last == Some(entry.offset_bytes));
        let units = entry.offset_bytes >> UNIT_SHIFT..=(entry.end_bytes() - 1) >> UNIT_SHIFT;
        if entry.op == Op::Write {
            self.unit_writes += units.end() - units.start() + 1;
        }
        pass.units.record(entry.volume, units, entry.op == Op::Write);
    }

    /// The median size of reads (0) or writes (1) in bytes, if there are any.
    pub fn median_bytes(&self, kind: usize) -> Option<u64> {
        let (sizes, half) = (&self.sizes[kind], self.requests[kind].div_ceil(2));
        let mut seen = 0;
        sizes.iter().find_map(|(size, count)| {
            seen += count;
            (seen >= half && half > 0).then_some(*size)
        })
    }
}
