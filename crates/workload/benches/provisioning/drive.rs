//! The drive under test, its jobs, and their results as rows of a table.

use std::ops::{Add, ControlFlow, Range};

use ssdlab_device::{Device, Op};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_workload::{Job, PatternKind, run};

use crate::process::{cpu_nanos, resident_bytes};

/// The area of the random writes in the published test, in bytes.
pub const AREA: u64 = 40_000_000_000;

/// The queue depth of a SATA drive.
const QUEUE_DEPTH: usize = 32;

/// The shipped twin of the drive in the published test, with this visible capacity in bytes.
pub fn profile(capacity: u64) -> Profile {
    let text = include_str!("../../../../python/ssdlab/profiles/samsung-840-pro.toml");
    let mut profile = Profile::from_toml(text).unwrap();
    profile.capacity = capacity;
    profile
}

/// A twin, and the memory of the process before it was created.
pub struct Drive {
    ssd: Ssd,
    resident_before: u64,
    /// Number of jobs so far, which is the seed of the next one.
    jobs: u64,
    /// Bytes written in order from the start of the drive, which are mapped.
    mapped: u64,
}

impl Drive {
    pub fn new(profile: &Profile) -> Self {
        let resident_before = resident_bytes();
        Self { ssd: Ssd::new(profile, 1), resident_before, jobs: 0, mapped: 0 }
    }

    /// Writes the first `bytes` of the drive in requests of 1 MiB, and the remainder in 4 KiB.
    pub fn in_order(&mut self, bytes: u64) -> Row {
        self.mapped = self.mapped.max(bytes);
        let whole = bytes >> 20 << 20;
        let row = self.write(PatternKind::Sequential, 0..whole, 1 << 20, whole);
        if whole == bytes {
            return row;
        }
        row + self.write(PatternKind::Sequential, whole..bytes, 4096, bytes - whole)
    }

    /// Writes `bytes` in random requests of 4 KiB within the first `area` bytes.
    pub fn at_random(&mut self, area: u64, bytes: u64) -> Row {
        self.write(PatternKind::Random, 0..area, 4096, bytes)
    }

    /// Writes at random over the whole drive until three rounds, of an eighth of the drive each,
    /// agree within 1 %; returns the last round.
    pub fn until_steady(&mut self) -> Row {
        let capacity = self.ssd.capacity_bytes();
        let mut rates = Vec::new();
        loop {
            let row = self.at_random(capacity, capacity / 8);
            rates.push(row.requests_per_s());
            let last = &rates[rates.len().saturating_sub(3)..];
            let fastest = last.iter().copied().fold(0.0, f64::max);
            let slowest = last.iter().copied().fold(f64::MAX, f64::min);
            if rates.len() >= 10 && fastest < 1.01 * slowest {
                return row;
            }
            assert!(rates.len() < 100, "not steady: {rates:?}");
        }
    }

    fn write(&mut self, pattern: PatternKind, range: Range<u64>, block: u64, bytes: u64) -> Row {
        self.jobs += 1;
        let job = Job {
            pattern,
            offset_bytes: range.start,
            length_bytes: range.end - range.start,
            block_bytes: block,
            amount_bytes: bytes,
            queue_depth: QUEUE_DEPTH,
            seed: self.jobs,
            interval_us: 60_000_000,
            ..Job::new(Op::Write)
        };
        let (before, cpu) = (*self.ssd.counters(), cpu_nanos());
        let outcome = run(&mut self.ssd, &job, &mut |_| ControlFlow::Continue(())).unwrap();
        let (after, cpu) = (self.ssd.counters(), cpu_nanos() - cpu);
        Row {
            requests: outcome.record.requests,
            bytes: outcome.record.bytes,
            simulated: outcome.record.end - outcome.record.start,
            cpu_nanos: cpu,
            host_units: after.host_writes - before.host_writes,
            flash_units: after.nand_writes() - before.nand_writes(),
            latency_p99: outcome.latency(None).quantile(0.99),
        }
    }

    /// Prints the memory of the twin.
    pub fn memory(&self, what: &str) {
        let held = resident_bytes().saturating_sub(self.resident_before) as f64;
        let units = (self.mapped / 4096) as f64;
        let (megabytes, each) = (held / 1e6, held / units);
        println!("| {what} | {megabytes:.0} MB | {units:.0} mapped units | {each:.2} bytes each |");
    }
}

/// A job's times and counts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub requests: u64,
    pub bytes: u64,
    pub simulated: Nanos,
    pub cpu_nanos: u64,
    /// Mapping units written by the host, and programmed to flash in that time.
    pub host_units: u64,
    pub flash_units: u64,
    pub latency_p99: u64,
}

impl Row {
    /// The header of the columns that `print` prints.
    pub const HEADER: &str = "| job | requests/s | MB/s | WAF | p99, ms | simulated, s | CPU, s | \
                              CPU, ns a unit |\n|---|---|---|---|---|---|---|---|";

    fn seconds(&self) -> f64 {
        self.simulated.get() as f64 / 1e9
    }

    /// Requests per simulated second.
    pub fn requests_per_s(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    pub fn print(&self, what: &str) {
        println!(
            "| {what} | {:.0} | {:.1} | {:.3} | {:.2} | {:.0} | {:.1} | {:.0} |",
            self.requests_per_s(),
            self.bytes as f64 / 1e6 / self.seconds(),
            self.flash_units as f64 / self.host_units as f64,
            self.latency_p99 as f64 / 1e6,
            self.seconds(),
            self.cpu_nanos as f64 / 1e9,
            self.cpu_nanos as f64 / self.host_units as f64,
        );
    }
}

/// Two jobs in sequence, with the higher of both p99 latencies.
impl Add for Row {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            simulated: self.simulated + other.simulated,
            cpu_nanos: self.cpu_nanos + other.cpu_nanos,
            host_units: self.host_units + other.host_units,
            flash_units: self.flash_units + other.flash_units,
            latency_p99: self.latency_p99.max(other.latency_p99),
        }
    }
}
