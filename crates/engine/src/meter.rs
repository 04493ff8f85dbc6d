//! `Meter`: counts commands and their latencies on the drive's clock.

use ssdlab_device::{Hint, Histogram};
use ssdlab_time::Nanos;

use crate::command::{Accepted, Command, Operation, OperationKind};
use crate::drive::Counter;
use crate::layer::Layer;

const HINT_COUNTERS: [&str; 4] =
    ["writes_plain", "writes_of_stream", "writes_append", "writes_overwrite"];

/// Statistics of one kind of operation.
#[derive(Clone, Debug)]
pub struct OperationStats {
    /// The kind of operation.
    pub kind: OperationKind,
    /// Commands, including failed ones.
    pub commands: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Sum of their lengths in bytes.
    pub bytes: u64,
    /// Sum of their latencies on the drive's clock.
    pub latency: Nanos,
    /// Commands by latency in nanoseconds: four buckets for each doubling.
    latencies: Histogram<2>,
}

/// Statistics of the commands since the server started.
#[derive(Debug)]
pub struct Meter {
    by_kind: [OperationStats; 4],
    /// Writes by their placement hint, in the order of `HINT_COUNTERS`.
    hints: [u64; 4],
}

impl Default for Meter {
    fn default() -> Self {
        let kinds =
            [OperationKind::Read, OperationKind::Write, OperationKind::Trim, OperationKind::Flush];
        Self { by_kind: kinds.map(OperationStats::new), hints: [0; 4] }
    }
}

impl Layer for Meter {
    fn after(&mut self, command: &Command, accepted: &Accepted, now: Nanos) -> Option<Nanos> {
        let latency = accepted.completed - now;
        let stats = &mut self.by_kind[OperationKind::of(command.operation) as usize];
        stats.commands += 1;
        stats.failed += u64::from(accepted.result.is_err());
        stats.bytes += u64::from(command.length);
        stats.latency += latency;
        stats.latencies.record(latency.get());
        if command.operation == Operation::Write {
            let hint = match command.hint {
                Hint::None => 0,
                Hint::Stream(_) => 1,
                Hint::AppendAfter(_) => 2,
                Hint::Overwrite => 3,
            };
            self.hints[hint] += 1;
        }
        None
    }
}

impl Meter {
    /// The number of writes by their hint, as counters.
    pub fn hint_counters(&self) -> impl Iterator<Item = Counter> {
        HINT_COUNTERS.into_iter().zip(self.hints).map(|(name, count)| (name, Some(count as f64)))
    }

    /// The statistics of one kind of operation.
    pub fn of(&self, operation: Operation) -> &OperationStats {
        &self.by_kind[OperationKind::of(operation) as usize]
    }

    /// The statistics of each kind of operation.
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
    use ssdlab_device::Hint;
    use ssdlab_time::Nanos;

    use super::{Layer, Meter, OperationStats};
    use crate::command::{Accepted, Command, Operation, OperationKind};
    use crate::errno::EIO;

    #[test]
    fn a_latency_is_below_the_end_of_its_bucket_and_within_a_quarter_of_it() {
        for (nanos, end) in
            [(4_u64, 5), (7, 8), (8, 10), (1023, 1024), (1024, 1280), (80_000, 81_920)]
        {
            let mut stats = OperationStats::new(OperationKind::Read);
            stats.latencies.record(nanos);
            let ends: Vec<_> = stats.histogram().map(|(end, count)| (end.get(), count)).collect();
            assert_eq!(ends, [(end, 1)]);
            assert!(nanos < end && end <= nanos + nanos.div_ceil(4), "{nanos}: {end}");
        }
    }

    #[test]
    fn commands_count_by_kind_and_writes_by_hint() {
        let mut meter = Meter::default();
        let completed = Nanos::new(150);
        let (succeeded, failed) = (Ok(()), Err(EIO));
        for (result, hint) in
            [(succeeded, Hint::Stream(1)), (failed, Hint::None), (succeeded, Hint::None)]
        {
            let write = Command { hint, ..Command::new(Operation::Write, 0, 512) };
            let accepted = Accepted { result, completed, due: None, corruption: None };
            meter.after(&write, &accepted, Nanos::new(50));
        }
        let stats = meter.of(Operation::Zero { may_trim: true });
        let counts = (stats.commands, stats.failed, stats.bytes, stats.latency);
        assert_eq!(counts, (3, 1, 1536, Nanos::new(300)));
        let counters: Vec<_> = meter.hint_counters().map(|(_, value)| value).collect();
        assert_eq!(counters, [Some(2.0), Some(1.0), Some(0.0), Some(0.0)]);
    }
}
