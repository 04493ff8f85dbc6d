//! One job on several queues of one file.

use std::collections::BTreeSet;
use std::path::Path;

use ssdlab_device::{Interval, Op};
use ssdlab_uring::{OpenOptions, UringDevice};
use ssdlab_workload::{Arrival, Job, Outcome, PatternKind, run_threads};

use crate::{file_of_ones, keep_running};

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
