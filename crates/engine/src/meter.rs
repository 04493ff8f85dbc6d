//! `Meter`: how many commands there were, how long the drive took for each.

use ssdlab_device::{Hint, Histogram};
use ssdlab_time::Nanos;

use crate::command::{Command, CommandResult, Operation};
use crate::fault::OperationKind;

/// What was done of one kind.
#[derive(Clone, Debug)]
pub struct OperationStats {
    /// The kind of operation.
    pub kind: OperationKind,
    /// Commands, including failed ones.
    pub commands: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Bytes that they covered.
    pub bytes: u64,
    /// All latencies together, on the drive's clock.
    pub latency: Nanos,
    /// Commands by latency in nanoseconds: four buckets for each doubling.
    latencies: Histogram<2>,
}

/// Writes by what they said of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteHintCounts {
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
    by_kind: [OperationStats; 4],
    hinted: WriteHintCounts,
}

impl Default for Meter {
    fn default() -> Self {
        let kinds =
            [OperationKind::Read, OperationKind::Write, OperationKind::Trim, OperationKind::Flush];
        Self { by_kind: kinds.map(OperationStats::new), hinted: WriteHintCounts::default() }
    }
}

impl Meter {
    /// Notes a command, and how long it takes.
    pub fn note(&mut self, command: &Command, ended: CommandResult, took: Nanos) {
        let metered = &mut self.by_kind[OperationKind::of(command.operation) as usize];
        metered.commands += 1;
        metered.failed += u64::from(ended.is_err());
        metered.bytes += u64::from(command.length);
        metered.latency += took;
        metered.latencies.record(took.get());
        if command.operation == Operation::Write {
            *match command.hint {
                Hint::None => &mut self.hinted.plain,
                Hint::Stream(_) => &mut self.hinted.stream,
                Hint::AppendAfter(_) => &mut self.hinted.append,
                Hint::Overwrite => &mut self.hinted.overwrite,
            } += 1;
        }
    }

    /// Writes by what they said of themselves.
    pub fn hinted(&self) -> WriteHintCounts {
        self.hinted
    }

    /// What was done of one kind.
    pub fn of(&self, operation: Operation) -> &OperationStats {
        &self.by_kind[OperationKind::of(operation) as usize]
    }

    /// What was done, by kind.
    pub fn by_kind(&self) -> &[OperationStats] {
        &self.by_kind
    }
}

impl OperationStats {
    fn new(kind: OperationKind) -> Self {
        let latencies = Histogram::default();
        Self { kind, commands: 0, failed: 0, bytes: 0, latency: Nanos::ZERO, latencies }
    }

    /// The end of each bucket in use, and the commands whose latency is below it but not below the
    /// end of the bucket before.
    pub fn histogram(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.latencies.buckets().map(|(largest, count)| (Nanos::new(largest + 1), count))
    }
}

#[cfg(test)]
mod tests {
    use super::OperationStats;
    use crate::fault::OperationKind;

    #[test]
    fn a_latency_is_below_the_end_of_its_bucket_and_within_a_quarter_of_it() {
        for (nanos, end) in
            [(4_u64, 5), (7, 8), (8, 10), (1023, 1024), (1024, 1280), (80_000, 81_920)]
        {
            let mut metered = OperationStats::new(OperationKind::Read);
            metered.latencies.record(nanos);
            let ends: Vec<_> = metered.histogram().map(|(end, count)| (end.get(), count)).collect();
            assert_eq!(ends, [(end, 1)]);
            assert!(nanos < end && end <= nanos + nanos.div_ceil(4), "{nanos}: {end}");
        }
    }
}
