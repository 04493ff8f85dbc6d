//! How fast a twin is: host requests a second of one core, 64 GiB mapped, full timing, steady.
//!
//! Targets: 3 million random 4 KiB writes a second at 7 % spare, 5 million at 28 %, 10 million
//! random reads, 20 GB of sequential traffic. `cargo bench -p ssdlab-workload --bench twin`.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use ssdlab_device::{Device, Op};
use ssdlab_flash::{Profile, Ssd, Study};
use ssdlab_time::Random;
use ssdlab_workload::{Job, PatternKind, run};

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

fn job(op: Op, pattern: PatternKind, block: u64, amount: u64) -> Job {
    Job {
        pattern,
        length_bytes: 64 << 30,
        block_bytes: block,
        amount_bytes: amount,
        queue_depth: 32,
        seed: amount,
        interval_ms: 1000,
        ..Job::new(op)
    }
}

fn drive(ssd: &mut Ssd, job: &Job) {
    let outcome = run(ssd, job, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(outcome.record.requests, job.requests());
    black_box(ssd.now());
}

/// A full drive in steady state: filled in order, then overwritten once at random.
fn steady(spare: &str) -> Ssd {
    let mut ssd = Ssd::new(&profile(spare), 1);
    drive(&mut ssd, &job(Op::Write, PatternKind::Sequential, 1 << 20, 64 << 30));
    drive(&mut ssd, &job(Op::Write, PatternKind::Random, 4096, 64 << 30));
    ssd
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, ssd: &mut Ssd, job: &Job) {
    let bytes = if job.block_bytes > 4096 { Some(job.amount_bytes) } else { None };
    group.throughput(bytes.map_or(Throughput::Elements(job.requests()), Throughput::Bytes));
    group.bench_function(name, |bencher| bencher.iter(|| drive(ssd, job)));
}

fn twin(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("twin, 64 GiB");
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    let mut fresh = Ssd::new(&profile("0.07"), 1);
    drive(&mut fresh, &job(Op::Write, PatternKind::Sequential, 1 << 20, 64 << 30));
    let read = job(Op::Read, PatternKind::Sequential, 128 << 10, 16 << 30);
    measure(&mut group, "sequential 128 KiB reads", &mut fresh, &read);
    let write = job(Op::Write, PatternKind::Sequential, 128 << 10, 16 << 30);
    measure(&mut group, "sequential 128 KiB writes", &mut fresh, &write);
    drop(fresh);
    for spare in ["0.07", "0.28"] {
        let mut ssd = steady(spare);
        let write = job(Op::Write, PatternKind::Random, 4096, 4 << 30);
        measure(&mut group, &format!("random 4 KiB writes, spare {spare}"), &mut ssd, &write);
        if spare == "0.28" {
            let read = job(Op::Read, PatternKind::Random, 4096, 4 << 30);
            measure(&mut group, "random 4 KiB reads", &mut ssd, &read);
        }
    }
    group.finish();
}

/// The policy without a clock: flash programs a second, as write-amplification studies count them.
fn untimed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("untimed, 64 GiB");
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    let mut study = Study::new(&profile("0.07"), 1);
    let mut random = Random::new(1, "bench");
    let units = study.logical_units();
    (0..units).for_each(|unit| study.write(unit));
    let mut write = |count: u32| {
        let mut soon = [0; 4].map(|_: u32| random.below(u64::from(units)) as u32);
        for i in 0..count as usize {
            let next = random.below(u64::from(units)) as u32;
            study.announce(next);
            study.write(std::mem::replace(&mut soon[i % 4], next));
        }
        study.counters().nand_writes()
    };
    let warm = write(units);
    let programs = (write(1 << 20) - warm) as f64 / f64::from(1 << 20);
    group.throughput(Throughput::Elements((f64::from(1 << 20) * programs) as u64));
    group.bench_function("flash programs, spare 0.07", |bencher| bencher.iter(|| write(1 << 20)));
    group.finish();
}

criterion_group!(benches, twin, untimed);
criterion_main!(benches);
