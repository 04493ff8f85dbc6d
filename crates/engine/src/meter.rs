//! `Meter`: how many commands there were, how long the drive took for each.

use ssdlab_device::Hint;
use ssdlab_time::Nanos;

use crate::command::{Command, CommandResult, Operation};
use crate::fault::OperationKind;

/// Steps of a doubling of latency.
const STEPS: u32 = 4;
const BINS: usize = 64 * STEPS as usize;

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
    /// Commands by latency.
    bins: Vec<u64>,
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
        metered.bins[bin(took.get())] += 1;
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
        let bins = vec![0; BINS];
        Self { kind, commands: 0, failed: 0, bytes: 0, latency: Nanos::ZERO, bins }
    }

    /// How many commands took up to so long, and more than the bin before; none without any.
    pub fn histogram(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let all = self.bins.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(bin, count)| (upper(bin), *count))
    }
}

/// The bin of a latency: quarters of a doubling.
fn bin(nanos: u64) -> usize {
    let nanos = nanos.max(u64::from(STEPS));
    let doublings = nanos.ilog2();
    let step = nanos >> (doublings - 2) & u64::from(STEPS - 1);
    doublings as usize * STEPS as usize + step as usize
}

/// Where a bin ends.
fn upper(bin: usize) -> Nanos {
    let (doublings, step) = (bin as u32 / STEPS, bin as u64 % u64::from(STEPS));
    Nanos::new((u64::from(STEPS) + step + 1) << (doublings - 2))
}

#[cfg(test)]
mod tests {
    use super::{bin, upper};

    #[test]
    fn a_latency_lies_below_its_bins_end_and_within_a_quarter_of_it() {
        for nanos in [4, 5, 7, 8, 100, 1023, 1024, 80_000, 123_456_789, 1 << 50] {
            let end = upper(bin(nanos)).get();
            assert!(nanos < end && end <= nanos + nanos.div_ceil(4), "{nanos}: {end}");
            assert_eq!(bin(end), bin(nanos) + 1, "the next one begins there");
        }
        assert_eq!(bin(0), bin(4));
    }
}
