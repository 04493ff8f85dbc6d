//! `Meter`: how many commands there were, how long the drive took for each.

use ssdlab_device::{Hint, Histogram};
use ssdlab_time::Nanos;

use super::command::{Ask, Command, Ended};
use crate::fault::Which;

/// What was done of one kind.
#[derive(Clone, Debug)]
pub struct Metered {
    pub which: Which,
    pub commands: u64,
    /// Of these, those that failed.
    pub failed: u64,
    pub bytes: u64,
    /// All latencies together, on the drive's clock.
    pub latency: Nanos,
    /// Commands by latency in nanoseconds: four buckets for each doubling.
    latencies: Histogram<2>,
}

/// Writes by what they said of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hinted {
    /// Nothing.
    pub plain: u64,
    /// Which stream they belong to.
    pub stream: u64,
    /// Which block they go on after.
    pub append: u64,
    /// That they replace a file's content in its place.
    pub overwrite: u64,
}

/// What was done since the server began.
#[derive(Debug)]
pub struct Meter {
    by_kind: [Metered; 4],
    hinted: Hinted,
}

impl Default for Meter {
    fn default() -> Self {
        let kinds = [Which::Read, Which::Write, Which::Trim, Which::Flush];
        Self { by_kind: kinds.map(Metered::new), hinted: Hinted::default() }
    }
}

impl Meter {
    /// Notes a command, and how long it takes.
    pub fn note(&mut self, command: &Command, ended: Ended, took: Nanos) {
        let metered = &mut self.by_kind[Which::of(command.ask) as usize];
        metered.commands += 1;
        metered.failed += u64::from(ended.is_err());
        metered.bytes += u64::from(command.length);
        metered.latency += took;
        metered.latencies.record(took.get());
        if command.ask == Ask::Write {
            *match command.hint {
                Hint::None => &mut self.hinted.plain,
                Hint::Stream(_) => &mut self.hinted.stream,
                Hint::AppendAfter(_) => &mut self.hinted.append,
                Hint::Overwrite => &mut self.hinted.overwrite,
            } += 1;
        }
    }

    /// Writes by what they said of themselves.
    pub fn hinted(&self) -> Hinted {
        self.hinted
    }

    /// What was done of one kind.
    pub fn of(&self, ask: Ask) -> &Metered {
        &self.by_kind[Which::of(ask) as usize]
    }

    /// What was done, by kind.
    pub fn by_kind(&self) -> &[Metered] {
        &self.by_kind
    }
}

impl Metered {
    fn new(which: Which) -> Self {
        let latencies = Histogram::default();
        Self { which, commands: 0, failed: 0, bytes: 0, latency: Nanos::ZERO, latencies }
    }

    /// The end of each bucket in use, and the commands whose latency is below it but not below the
    /// end of the bucket before.
    pub fn histogram(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.latencies.buckets().map(|(largest, count)| (Nanos::new(largest + 1), count))
    }
}

#[cfg(test)]
mod tests {
    use super::{Metered, Which};

    #[test]
    fn a_latency_is_below_the_end_of_its_bucket_and_within_a_quarter_of_it() {
        for (nanos, end) in [(4, 5), (7, 8), (8, 10), (1023, 1024), (1024, 1280), (80_000, 81_920)]
        {
            let mut metered = Metered::new(Which::Read);
            metered.latencies.record(nanos);
            let ends: Vec<_> = metered.histogram().map(|(end, count)| (end.get(), count)).collect();
            assert_eq!(ends, [(end, 1)]);
            assert!(nanos < end && end <= nanos + nanos.div_ceil(4), "{nanos}: {end}");
        }
    }
}
