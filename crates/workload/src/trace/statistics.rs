//! `Statistics`: what a trace asks for, learnt in one pass in which every entry is checked.

use std::collections::BTreeMap;

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::sample::Sample;
use super::{Entry, Format, Replay, TraceError};

/// Units in which addresses are counted: a host's page, a drive's mapping unit.
const UNIT_SHIFT: u32 = 12;

/// What one pass over a trace found.
#[derive(Debug)]
pub struct Statistics {
    /// Its format.
    pub format: Format,
    /// Requests by kind, as `Op::ALL` orders them.
    pub requests: [u64; 4],
    /// Their bytes.
    pub bytes: [u64; 4],
    /// Sizes in bytes of reads and of writes, and how many have each.
    pub sizes: [BTreeMap<u64, u64>; 2],
    /// Of each volume, the byte behind the last that is asked for.
    pub ends_bytes: BTreeMap<u32, u64>,
    /// Different units of 4 KiB that are read, written or trimmed, in bytes: exact up to 512 MiB,
    /// beyond that estimated from a sample, with a standard error of at most 0.4 %.
    pub footprint_bytes: u64,
    /// Those that are written.
    pub written_footprint_bytes: u64,
    /// Units of 4 KiB written, each as often as it was.
    pub unit_writes: u64,
    /// The share of all accesses that the most accessed fifth of those units gets; a fifth where
    /// all are alike.
    pub hottest_fifth: f64,
    /// Requests whose first byte and length are multiples of 4 KiB.
    pub aligned: u64,
    /// Requests that go on where the one before of their kind and volume ended.
    pub continuing: u64,
    /// From the first entry to the last.
    pub span: Nanos,
    /// Entries that came before the one before them, by at most a second.
    pub early: u64,
    /// Entries of no bytes, left out.
    pub empty: u64,
}

/// What is remembered between entries.
#[derive(Default)]
struct Pass {
    units: Sample,
    ends: BTreeMap<(u32, usize), u64>,
}

impl Statistics {
    /// Reads a trace from end to end.
    ///
    /// # Errors
    /// The first entry that is wrong, or that there is none.
    pub fn of(replay: &Replay) -> Result<Self, TraceError> {
        let mut trace = replay.open()?;
        let mut found = Self::nothing(trace.format());
        let mut pass = Pass::default();
        for entry in trace.by_ref() {
            found.add(&entry?, &mut pass);
        }
        (found.early, found.empty) = (trace.early, trace.empty);
        if found.requests.iter().sum::<u64>() == 0 {
            let what = match replay.volume {
                Some(volume) => format!("it asks nothing of volume {volume}"),
                None => "it holds no request".to_owned(),
            };
            return Err(TraceError::File { path: replay.path.clone(), what });
        }
        found.footprint_bytes = pass.units.count() << UNIT_SHIFT;
        found.written_footprint_bytes = pass.units.count_written() << UNIT_SHIFT;
        found.hottest_fifth = pass.units.hottest_fifth();
        Ok(found)
    }

    fn nothing(format: Format) -> Self {
        Self {
            format,
            requests: [0; 4],
            bytes: [0; 4],
            sizes: [BTreeMap::new(), BTreeMap::new()],
            ends_bytes: BTreeMap::new(),
            footprint_bytes: 0,
            written_footprint_bytes: 0,
            unit_writes: 0,
            hottest_fifth: 0.0,
            aligned: 0,
            continuing: 0,
            span: Nanos::ZERO,
            early: 0,
            empty: 0,
        }
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
        let end = self.ends_bytes.entry(entry.volume).or_default();
        *end = (*end).max(entry.end_bytes());
        let unit = (1_u64 << UNIT_SHIFT) - 1;
        self.aligned += u64::from((entry.offset_bytes | entry.length_bytes) & unit == 0);
        let last = pass.ends.insert((entry.volume, kind), entry.end_bytes());
        self.continuing += u64::from(last == Some(entry.offset_bytes));
        let units = entry.offset_bytes >> UNIT_SHIFT..=(entry.end_bytes() - 1) >> UNIT_SHIFT;
        if entry.op == Op::Write {
            self.unit_writes += units.end() - units.start() + 1;
        }
        pass.units.touch(entry.volume, units, entry.op == Op::Write);
    }

    /// The median size of reads (0) or writes (1) in bytes, where there are any.
    pub fn median_bytes(&self, kind: usize) -> Option<u64> {
        let (sizes, half) = (&self.sizes[kind], self.requests[kind].div_ceil(2));
        let mut seen = 0;
        sizes.iter().find_map(|(size, count)| {
            seen += count;
            (seen >= half && half > 0).then_some(*size)
        })
    }
}
