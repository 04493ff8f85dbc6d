//! How fast a twin is: work per CPU second of one core, 64 GiB visible, full timing.
//!
//! Random writes run on a drive in steady state, and each repetition has its own seed. Each line
//! gives the write amplification (WAF) of the timed repetitions, because the cost of a host write
//! rises with it. `cargo bench -p ssdlab-workload --bench twin`.

use std::ops::ControlFlow;

use ssdlab_device::Op;
use ssdlab_flash::{Counters, Profile, Ssd, Study};
use ssdlab_time::Random;
use ssdlab_workload::{Job, PatternKind, run};

#[path = "provisioning/process.rs"]
#[expect(dead_code, reason = "only the other benchmark measures memory")]
mod process;

const PROFILE: &str = r#"
[drive]
model = "Bench"
capacity = "64 GiB"
interface = "nvme"
[link]
bandwidth = "3200 MiB/s"
read_overhead = "10 us"
write_overhead = "4 us"
max_transfer = "256 KiB"
[flash]
channels = 8
dies_per_channel = 4
planes = 2
page = "16 KiB"
pages_per_block = 64
read = ["40 us", "60 us", "80 us"]
program = "700 us"
erase = "3500 us"
channel_bandwidth = "800 MiB/s"
[ftl]
spare = 0.07
[buffer]
size = "32 MiB"
"#;

fn profile(spare: &str) -> Profile {
    Profile::from_toml(&PROFILE.replace("spare = 0.07", &format!("spare = {spare}"))).unwrap()
}

const CAPACITY: u64 = 64 << 30;
const UNIT: u64 = 4096;
const REPETITIONS: usize = 10;

/// What a repetition did, and the CPU time that it took.
#[derive(Clone, Copy, Debug)]
struct Repetition {
    /// Requests, bytes or flash programs.
    work: u64,
    cpu_nanos: u64,
    /// Mapping units that the host wrote, and that were programmed in that time.
    host_units: u64,
    flash_units: u64,
}

impl Repetition {
    fn new(work: u64, cpu_start: u64, before: &Counters, after: &Counters) -> Self {
        Self {
            work,
            cpu_nanos: process::cpu_nanos() - cpu_start,
            host_units: after.host_writes - before.host_writes,
            flash_units: after.nand_writes() - before.nand_writes(),
        }
    }
}

/// A twin with full timing; each job gets another seed.
struct Drive {
    ssd: Ssd,
    jobs: u64,
}

impl Drive {
    /// A drive that was filled in order.
    fn filled(spare: &str) -> Self {
        let mut drive = Self { ssd: Ssd::new(&profile(spare), 1), jobs: 0 };
        drive.sequential(Op::Write);
        drive
    }

    /// All of the drive in order, in requests of 128 KiB; the work is bytes.
    fn sequential(&mut self, op: Op) -> Repetition {
        let repetition = self.run(op, PatternKind::Sequential, 128 << 10, CAPACITY);
        Repetition { work: CAPACITY, ..repetition }
    }

    /// A sixteenth of the drive, in requests of 4 KiB all over it; the work is requests.
    fn random(&mut self, op: Op) -> Repetition {
        self.run(op, PatternKind::Random, UNIT, CAPACITY / 16)
    }

    fn run(&mut self, op: Op, pattern: PatternKind, block: u64, amount: u64) -> Repetition {
        self.jobs += 1;
        let job = Job {
            pattern,
            length_bytes: CAPACITY,
            block_bytes: block,
            amount_bytes: amount,
            queue_depth: 32,
            seed: self.jobs,
            interval_us: 1_000_000,
            ..Job::new(op)
        };
        let (before, start) = (*self.ssd.counters(), process::cpu_nanos());
        let outcome = run(&mut self.ssd, &job, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(outcome.record.requests, job.requests());
        Repetition::new(job.requests(), start, &before, self.ssd.counters())
    }
}

/// The translation layer without a clock, as studies of write amplification use it.
struct Untimed {
    study: Study,
    random: Random,
}

impl Untimed {
    fn filled(spare: &str) -> Self {
        let mut study = Study::new(&profile(spare), 1);
        (0..study.logical_units()).for_each(|unit| study.write(unit));
        Self { study, random: Random::new(1, "bench") }
    }

    /// Random writes to a sixteenth of the drive's units; the work is flash programs.
    fn random_writes(&mut self) -> Repetition {
        let units = self.study.logical_units();
        let (before, start) = (*self.study.counters(), process::cpu_nanos());
        let mut announced = [0; 4].map(|_: u32| self.random.below(u64::from(units)) as u32);
        for i in 0..units as usize / 16 {
            let next = self.random.below(u64::from(units)) as u32;
            self.study.announce(next);
            self.study.write(std::mem::replace(&mut announced[i % 4], next));
        }
        let repetition = Repetition::new(0, start, &before, self.study.counters());
        Repetition { work: repetition.flash_units, ..repetition }
    }
}

/// Write amplification of several repetitions; `None` where the host wrote nothing.
fn waf(repetitions: &[Repetition]) -> Option<f64> {
    let host: u64 = repetitions.iter().map(|each| each.host_units).sum();
    let flash: u64 = repetitions.iter().map(|each| each.flash_units).sum();
    (host > 0).then(|| flash as f64 / host as f64)
}

/// Writes once the capacity at random, and then until two halves of it in a row have a write
/// amplification that agrees within 1 %.
fn until_steady(mut sixteenth: impl FnMut() -> Repetition) {
    let mut half = || waf(&[(); 8].map(|()| sixteenth())).unwrap();
    let mut wafs = vec![half(), half()];
    while (wafs[wafs.len() - 1] / wafs[wafs.len() - 2] - 1.0).abs() > 0.01 || wafs.len() < 4 {
        assert!(wafs.len() < 20, "not steady: WAF {wafs:?}");
        wafs.push(half());
    }
}

/// Prints the median rate per CPU second, its range, and the write amplification.
fn measure(name: &str, unit: (f64, &str), mut repetition: impl FnMut() -> Repetition) {
    let repetitions = [(); REPETITIONS].map(|()| repetition());
    let mut rates = repetitions.map(|each| each.work as f64 * 1e9 / each.cpu_nanos as f64 / unit.0);
    rates.sort_by(f64::total_cmp);
    let (median, lowest, highest) = (rates[REPETITIONS / 2], rates[0], rates[REPETITIONS - 1]);
    let waf = waf(&repetitions).map_or("none".to_owned(), |waf| format!("{waf:.2}"));
    println!("| {name} | {median:.1} {} | {lowest:.1} to {highest:.1} | {waf} |", unit.1);
}

fn main() {
    let (million, gigabytes) = ((1e6, "million"), (1e9, "GB"));
    println!("| traffic | per CPU second, median | range | WAF |\n|---|---|---|---|");
    let mut drive = Drive::filled("0.07");
    measure("sequential 128 KiB reads", gigabytes, || drive.sequential(Op::Read));
    measure("sequential 128 KiB writes", gigabytes, || drive.sequential(Op::Write));
    for (percent, spare) in [("7 %", "0.07"), ("28 %", "0.28")] {
        let mut drive = Drive::filled(spare);
        until_steady(|| drive.random(Op::Write));
        let name = format!("random 4 KiB writes, {percent} spare");
        measure(&name, million, || drive.random(Op::Write));
        let name = format!("random 4 KiB reads, {percent} spare");
        measure(&name, million, || drive.random(Op::Read));
    }
    let mut untimed = Untimed::filled("0.07");
    until_steady(|| untimed.random_writes());
    measure("flash programs, untimed, 7 % spare", million, || untimed.random_writes());
}
