//! One job on several queues of one file.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use ssdlab_device::{Device, Interval, Op};
use ssdlab_uring::{OpenOptions, UringDevice};
use ssdlab_workload::{Arrival, Job, Outcome, PatternKind, Progress, run, run_queues, run_threads};

use crate::{Call, Hooked, file_of_ones, keep_running, twin};

const SIZE: u64 = 16 << 20;

fn job(op: Op, pattern: PatternKind) -> Job {
    Job {
        pattern,
        length_bytes: SIZE,
        block_bytes: 4096,
        amount_bytes: SIZE,
        queue_depth: 8,
        threads: 4,
        interval_us: 1_000,
        ..Job::new(op)
    }
}

fn outcome(path: &Path, job: &Job) -> Outcome {
    let options = OpenOptions { writable: true, ..OpenOptions::default() };
    let first = UringDevice::open(path, &options).unwrap();
    job.check(&first).unwrap();
    let sibling = |number: usize| {
        first.sibling(&OpenOptions { seed: number as u64, ..options.clone() }).unwrap()
    };
    let mut devices: Vec<UringDevice> = (0..job.threads).map(sibling).collect();
    run_threads(&mut devices, job, &mut keep_running).unwrap()
}

#[test]
fn four_threads_write_every_block_once_with_unique_content() {
    let (_folder, path) = file_of_ones(SIZE);
    for pattern in [PatternKind::Sequential, PatternKind::RandomOnce] {
        let outcome = outcome(&path, &job(Op::Write, pattern));
        let record = &outcome.record;
        assert_eq!((record.requests, record.bytes, record.errors), (SIZE / 4096, SIZE, 0));
        assert_eq!(outcome.latency(Some(Op::Write)).count(), SIZE / 4096);
        let bytes = std::fs::read(&path).unwrap();
        let blocks: BTreeSet<&[u8]> = bytes.chunks(4096).collect();
        assert_eq!(blocks.len() as u64, SIZE / 4096, "every block was written, and none is a copy");
    }
}

#[test]
fn all_threads_have_the_same_interval_boundaries() {
    let (_folder, path) = file_of_ones(SIZE);
    let outcome = outcome(&path, &job(Op::Read, PatternKind::Random));
    let record = &outcome.record;
    assert!(record.intervals.is_sorted_by(|a, b| a.start < b.start));
    let on_grid = |i: &Interval| (i.start - record.start).get().is_multiple_of(1_000_000);
    assert!(record.intervals.iter().all(on_grid));
    for (number, interval) in record.intervals.iter().enumerate() {
        let of_this = outcome.buckets.iter().filter(|b| b.interval as usize == number);
        assert_eq!(of_this.map(|bucket| bucket.count).sum::<u64>(), interval.requests());
    }
}

#[test]
fn threads_share_a_rate_and_a_time_limit() {
    let (_folder, path) = file_of_ones(SIZE);
    let arrival = Arrival::Rate { per_s: 2000.0, poisson: false };
    let job =
        Job { arrival, seconds: Some(0.1), amount_bytes: 0, ..job(Op::Read, PatternKind::Random) };
    let outcome = outcome(&path, &job);
    assert_eq!(outcome.record.requests + outcome.record.unserved, 200);
    assert!(!outcome.stopped);
}

#[test]
fn the_queues_of_a_twin_run_in_parallel_and_each_in_its_own_part() {
    let reads = Job { queue_depth: 1, ..job(Op::Read, PatternKind::Sequential) };
    let written = Job { queue_depth: 4, threads: 1, ..job(Op::Write, PatternKind::Sequential) };
    let run_on_filled = |job: &Job| {
        let mut ssd = twin(&[]);
        let filled = run_queues(&mut ssd, &written, &mut keep_running).unwrap();
        assert_eq!(filled.record.bytes, SIZE);
        let mut seen = BTreeSet::new();
        let hook = |call: Call| {
            if let Call::Submit(request) = call {
                assert!(seen.insert(request.lba.get()), "{request:?} came twice");
            }
            Ok(())
        };
        let mut hooked = Hooked { device: &mut ssd, hook };
        let outcome = run_queues(&mut hooked, job, &mut keep_running).unwrap();
        assert_eq!(seen.len() as u64, SIZE / 4096, "every block is read once");
        outcome.record
    };
    let (four, one) = (run_on_filled(&reads), run_on_filled(&Job { threads: 1, ..reads.clone() }));
    assert_eq!((four.requests, four.bytes, four.errors), (SIZE / 4096, SIZE, 0));
    assert_eq!(four, run_on_filled(&reads), "the same seed gives the same record");
    assert!((four.end - four.start).get() * 2 < (one.end - one.start).get());
}

#[test]
fn the_queues_of_a_twin_share_a_rate_and_stop_together() {
    let arrival = Arrival::Rate { per_s: 2000.0, poisson: false };
    let rated =
        Job { arrival, seconds: Some(0.1), amount_bytes: 0, ..job(Op::Read, PatternKind::Random) };
    let outcome = run_queues(&mut twin(&[]), &rated, &mut keep_running).unwrap();
    assert_eq!(outcome.record.requests + outcome.record.unserved, 200);
    let mut left = 20;
    let mut stop = |_: Progress| {
        left -= 1;
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let endless = Job { seconds: Some(1e6), amount_bytes: 0, ..job(Op::Read, PatternKind::Random) };
    let outcome = run_queues(&mut twin(&[]), &endless, &mut stop).unwrap();
    assert!(outcome.stopped);
}

#[test]
fn the_intervals_of_a_twin_have_all_its_flash_writes() {
    for threads in [1, 4] {
        let writes = Job { threads, amount_bytes: 4 * SIZE, ..job(Op::Write, PatternKind::Random) };
        let mut ssd = twin(&[]);
        let outcome = if threads == 1 {
            run(&mut ssd, &writes, &mut keep_running).unwrap()
        } else {
            run_queues(&mut ssd, &writes, &mut keep_running).unwrap()
        };
        let intervals = &outcome.record.intervals;
        assert!(intervals.len() > 10);
        let sum: u64 = intervals.iter().filter_map(|each| each.flash_write_bytes).sum();
        assert_eq!(Some(sum), ssd.flash_write_bytes());
        let half = intervals[intervals.len() / 2].flash_write_bytes;
        assert!(half.is_some_and(|bytes| 0 < bytes && bytes < sum / 2), "{half:?} of {sum}");
    }
    let (_folder, path) = file_of_ones(SIZE);
    let real = outcome(&path, &job(Op::Write, PatternKind::Random));
    assert!(real.record.intervals.iter().all(|each| each.flash_write_bytes.is_none()));
}
