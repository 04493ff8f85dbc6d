//! The requirements of every `Device`: one generic test body, run on a twin and on a real file.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use ssdlab_device::{Device, DeviceError, Interval, Lba, Op, Request, Wait};
use ssdlab_flash::{Mirror, Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_uring::{OpenOptions, UringDevice};
use ssdlab_workload::{Arrival, Job, PatternKind, Progress, Sync, rest, run};

use crate::{file_of_ones, keep_running, outcome, recorded, twin};

const SIZE: u64 = 16 << 20;

/// All requirements, simple ones first.
fn keeps_the_contract<D: Device>(mut device: D) {
    let device = &mut device;
    assert!(device.capacity_bytes() >= SIZE);
    assert!(device.queue_depth() >= 32);
    refuses_invalid_requests(device);
    completes_each_request_once_and_in_order(device);
    waits_until_a_time_with_nothing_in_flight(device);
    returns_at_once_with_nothing_in_flight(device);
    never_runs_its_clock_backwards(device);
    runs_jobs_of_every_kind(device);
    runs_every_pattern_within_its_region(device);
    mixes_operations_and_lengths_by_their_shares(device);
    makes_writes_durable_with_both_kinds_of_sync(device);
    keeps_the_rate_of_an_open_loop(device);
    ends_at_its_time_limit(device);
    can_be_stopped(device);
    queues_requests_beyond_its_queue_depth(device);
}

fn request(id: u64, op: Op, sector: u64, index: u64) -> Request {
    let blocks = sector / 512;
    Request::new(id, op, Lba::new(index * blocks), blocks as u32)
}

fn refuses_invalid_requests(device: &mut impl Device) {
    let sector = device.sector_bytes();
    let beyond = request(0, Op::Read, sector, device.capacity_bytes() / sector);
    assert!(matches!(device.submit(beyond), Err(DeviceError::OutOfRange { .. })));
    let empty = Request::new(0, Op::Read, Lba::new(0), 0);
    assert!(matches!(device.submit(empty), Err(DeviceError::Misaligned { .. })));
    let mut done = Vec::new();
    device.reap(Wait::Poll, &mut done).unwrap();
    assert!(done.is_empty(), "a refused request does not complete");
}

fn completes_each_request_once_and_in_order(device: &mut impl Device) {
    let sector = device.sector_bytes().max(4096);
    for op in [Op::Write, Op::Read] {
        for id in 0..32 {
            device.submit(request(100 + id, op, sector, (id * 37) % 64)).unwrap();
        }
        let mut done = Vec::new();
        while done.len() < 32 {
            let before = done.len();
            device.reap(Wait::One, &mut done).unwrap();
            assert!(done.len() > before, "Wait::One returns at least one completion");
        }
        let ids: BTreeSet<u64> = done.iter().map(|completion| completion.id).collect();
        assert!(ids.into_iter().eq(100..132), "{op:?}");
        assert!(done.iter().all(|c| c.outcome.is_ok() && c.submitted <= c.completed));
        assert!(done.is_sorted_by_key(|completion| completion.completed));
        assert!(done.last().unwrap().completed <= device.now());
    }
}

fn waits_until_a_time_with_nothing_in_flight(device: &mut impl Device) {
    let (start, pause) = (device.now(), Nanos::from_millis(20));
    let mut done = Vec::new();
    device.reap(Wait::Until(start + pause), &mut done).unwrap();
    assert!(done.is_empty());
    assert!(device.now() >= start + pause);
    assert!(rest(device, pause, &mut keep_running).unwrap());
    assert!(device.now() >= start + pause * 2);
    assert!(!rest(device, pause, &mut |_| ControlFlow::Break(())).unwrap());
}

fn returns_at_once_with_nothing_in_flight(device: &mut impl Device) {
    let mut done = Vec::new();
    device.reap(Wait::One, &mut done).unwrap();
    device.reap(Wait::Poll, &mut done).unwrap();
    device.reap(Wait::Until(Nanos::ZERO), &mut done).unwrap();
    assert!(done.is_empty());
}

fn never_runs_its_clock_backwards(device: &mut impl Device) {
    let sector = device.sector_bytes().max(4096);
    let (mut last, mut done) = (device.now(), Vec::new());
    for id in 0..200 {
        device.submit(request(id, Op::Read, sector, id % 64)).unwrap();
        let in_flight = id + 1 - done.len() as u64;
        device.reap(if in_flight < 16 { Wait::Poll } else { Wait::One }, &mut done).unwrap();
        assert!(device.now() >= last);
        last = device.now();
    }
    while done.len() < 200 {
        device.reap(Wait::One, &mut done).unwrap();
    }
}

fn job(op: Op, pattern: PatternKind, queue_depth: usize) -> Job {
    Job {
        pattern,
        length_bytes: SIZE,
        block_bytes: 16384,
        amount_bytes: SIZE / 2 + 1,
        queue_depth,
        seed: 5,
        interval_us: 1_000,
        ..Job::new(op)
    }
}

fn runs_jobs_of_every_kind(device: &mut impl Device) {
    use PatternKind::{Random, RandomOnce, Sequential};
    for (op, pattern, depth) in [
        (Op::Write, Sequential, 4),
        (Op::Flush, Sequential, 1),
        (Op::Write, RandomOnce, 1),
        (Op::Read, Random, 32),
        (Op::Trim, Sequential, 1),
        (Op::Read, Sequential, 1),
    ] {
        let job = job(op, pattern.clone(), depth);
        job.check(device).unwrap();
        let mut reports = 0;
        let outcome = run(device, &job, &mut |progress| {
            assert!(progress.done >= reports && progress.total == job.requests());
            reports = progress.done;
            ControlFlow::Continue(())
        })
        .unwrap();
        let record = &outcome.record;
        assert_eq!((record.requests, record.errors), (job.requests(), 0), "{op:?} {pattern:?}");
        assert_eq!(reports, job.requests());
        assert_eq!(outcome.latency(Some(op)).count(), job.requests());
        assert_eq!(record.intervals.iter().map(Interval::requests).sum::<u64>(), record.requests);
        assert_eq!(record.intervals.iter().map(Interval::bytes).sum::<u64>(), record.bytes);
        assert!(record.intervals.is_sorted_by_key(|interval| interval.start));
        // Little's law: outstanding requests = mean latency x rate.
        let outstanding = outcome.latency(None).mean() * record.requests as f64
            / (record.end - record.start).get() as f64;
        assert!(outstanding <= depth as f64 * 1.02, "{op:?} {pattern:?}: {outstanding}");
    }
}

fn runs_every_pattern_within_its_region(device: &mut impl Device) {
    use PatternKind::{Aligned, Extents, Strided, Zipf};
    for pattern in [
        Zipf { theta: 0.99 },
        Strided { stride_bytes: 1 << 18, alignment_bytes: 0 },
        Aligned { alignment_bytes: 3 << 15 },
        Extents { list: vec![(SIZE / 2, 1 << 20), (SIZE / 4, 1 << 16)], random: false },
        Extents { list: vec![(SIZE / 2, 1 << 20), (SIZE / 4, 1 << 16)], random: true },
    ] {
        for op in [Op::Write, Op::Read] {
            let (offset_bytes, length_bytes) = (SIZE / 4, 3 * SIZE / 4);
            let job = Job { offset_bytes, length_bytes, ..job(op, pattern.clone(), 8) };
            let (outcome, requests) = recorded(device, &job);
            assert_eq!(outcome.record.requests, job.requests(), "{pattern:?}");
            let inside =
                |r: &Request| r.lba.bytes() >= SIZE / 4 && r.lba.bytes() + r.bytes() <= SIZE;
            assert!(requests.iter().all(inside), "{pattern:?}");
        }
    }
}

fn mixes_operations_and_lengths_by_their_shares(device: &mut impl Device) {
    let job = Job {
        read_share: 0.6,
        trim_share: 0.1,
        block_bytes: 0,
        block_mix: vec![(4096, 3.0), (12288, 1.0)],
        amount_bytes: 1 << 23,
        ..job(Op::Write, PatternKind::Random, 8)
    };
    let (outcome, requests) = recorded(device, &job);
    let share = |wanted: &dyn Fn(&Request) -> bool| {
        requests.iter().filter(|r| wanted(r)).count() as f64 / requests.len() as f64
    };
    for (op, wanted) in [(Op::Read, 0.6), (Op::Trim, 0.1), (Op::Write, 0.3)] {
        let seen = share(&|request| request.op == op);
        assert!((seen - wanted).abs() < 0.06, "{op:?}: {seen}");
        let counted = outcome.latency(Some(op)).count();
        assert_eq!(counted, requests.iter().filter(|r| r.op == op).count() as u64);
        let tallies = outcome.record.intervals.iter().map(|i| i.by_op[op.index()]);
        assert_eq!(tallies.map(|tally| tally.requests).sum::<u64>(), counted);
    }
    assert!((share(&|request| request.bytes() == 4096) - 0.75).abs() < 0.06);
    let bytes: u64 = requests.iter().map(Request::bytes).sum();
    assert!((1 << 23..(1 << 23) + 12288).contains(&bytes), "the amount is in bytes: {bytes}");
    assert_eq!(outcome.record.bytes, bytes);
}

fn makes_writes_durable_with_both_kinds_of_sync(device: &mut impl Device) {
    let write = job(Op::Write, PatternKind::Random, 4);
    let durable = Job { sync: Sync::Durable, read_share: 0.5, ..write.clone() };
    let (outcome, requests) = recorded(device, &durable);
    assert_eq!(outcome.record.requests, durable.requests());
    assert!(requests.iter().all(|request| request.durable == (request.op == Op::Write)));
    let flushed = Job { sync: Sync::Flush { every: 2 }, amount_bytes: 101 * 16384, ..write };
    let (outcome, requests) = recorded(device, &flushed);
    assert_eq!(outcome.latency(Some(Op::Write)).count(), 101);
    assert_eq!(outcome.latency(Some(Op::Flush)).count(), 50);
    assert_eq!(outcome.record.bytes, 101 * 16384);
    for (count, flush) in requests.iter().enumerate().filter(|(_, r)| r.op == Op::Flush) {
        let before = &requests[..count];
        let earlier = before.iter().filter(|r| r.op == Op::Flush).count();
        assert!(before.len() - earlier >= 2 * (earlier + 1), "{flush:?} comes after two writes");
    }
}

fn keeps_the_rate_of_an_open_loop(device: &mut impl Device) {
    for poisson in [false, true] {
        let arrival = Arrival::Rate { per_s: 2000.0, poisson };
        let amount_bytes = 300 * 16384;
        let job = Job { arrival, amount_bytes, ..job(Op::Read, PatternKind::Random, 32) };
        let outcome = outcome(device, &job);
        let seconds = (outcome.record.end - outcome.record.start).as_secs_f64();
        assert_eq!(outcome.record.requests, 300);
        let shortest = if poisson { 0.1 } else { 0.149 };
        assert!(seconds > shortest, "300 requests at 2000 a second took {seconds} s");
    }
}

fn ends_at_its_time_limit(device: &mut impl Device) {
    for arrival in [Arrival::Closed, Arrival::Rate { per_s: 1000.0, poisson: false }] {
        // On a busy machine no request may be submitted within a short time limit.
        assert!(
            [20, 200, 2000, 20_000].into_iter().any(|millis| served_in(device, arrival, millis))
        );
    }
}

/// Runs an endless job with a time limit; returns whether any request was served.
fn served_in(device: &mut impl Device, arrival: Arrival, millis: u64) -> bool {
    let endless = Job { amount_bytes: 0, ..job(Op::Read, PatternKind::Random, 4) };
    let job = Job { arrival, seconds: Some(millis as f64 / 1e3), ..endless };
    let mut reports = Vec::new();
    let start = device.now();
    let outcome = run(device, &job, &mut |progress: Progress| {
        reports.push(progress);
        ControlFlow::Continue(())
    })
    .unwrap();
    let served = outcome.record.requests;
    if served == 0 {
        return false;
    }
    let last_submit = device.now() - start;
    assert!(last_submit >= Nanos::from_millis(millis - 1), "{arrival:?}: {last_submit}");
    assert!(!outcome.stopped);
    assert_eq!(reports.last().unwrap().done, reports.last().unwrap().total);
    if arrival != Arrival::Closed {
        assert_eq!(served + outcome.record.unserved, millis);
    }
    true
}

fn can_be_stopped(device: &mut impl Device) {
    let job = job(Op::Read, PatternKind::Random, 8);
    let outcome = run(device, &job, &mut |progress| {
        if progress.done < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .unwrap();
    assert!(outcome.stopped);
    assert!((20..job.requests()).contains(&outcome.record.requests));
    let mut done = Vec::new();
    device.reap(Wait::Poll, &mut done).unwrap();
    assert!(done.is_empty(), "a stopped job leaves nothing in flight");
}

fn queues_requests_beyond_its_queue_depth(device: &mut impl Device) {
    let depth = (device.queue_depth() * 2).min(1024);
    let job = job(Op::Read, PatternKind::Random, depth);
    let outcome = outcome(device, &job);
    assert_eq!(outcome.record.requests, job.requests());
    let span = (outcome.record.end - outcome.record.start).get();
    assert!(outcome.latency(None).max() <= span + span / 100, "no latency exceeds the whole job");
}

/// A SATA drive, whose queue has 32 entries, with a read-ahead and two page types.
fn sata() -> Ssd {
    twin(&[
        ("\"nvme\"", "\"sata\""),
        ("\"1000 MB/s\"", "\"500 MB/s\""),
        ("\"50 us\"", "[\"40 us\", \"60 us\"]"),
        ("[ftl]", "[ftl]\nread_ahead = \"256 KiB\""),
    ])
}

#[test]
fn a_twin_keeps_the_contract() {
    keeps_the_contract(sata());
}

#[test]
fn a_mirror_of_twins_keeps_the_contract() {
    let profile = include_str!("../../../flash/tests/drives/small.toml");
    keeps_the_contract(Mirror::new(&Profile::from_toml(profile).unwrap(), 0));
}

#[test]
fn a_real_file_keeps_the_contract() {
    let (_folder, path) = file_of_ones(SIZE);
    let options = OpenOptions { writable: true, ..OpenOptions::default() };
    keeps_the_contract(UringDevice::open(&path, &options).unwrap());
}

#[test]
fn depth_64_on_a_queue_of_32_doubles_the_latency() {
    let mean = |depth: usize| {
        let mut drive = sata();
        let fill = Job { amount_bytes: SIZE, ..job(Op::Write, PatternKind::Sequential, 4) };
        outcome(&mut drive, &fill);
        let read = job(Op::Read, PatternKind::Random, depth);
        outcome(&mut drive, &read).latency(None).mean()
    };
    let (shallow, deep) = (mean(32), mean(64));
    assert!((1.6..2.4).contains(&(deep / shallow)), "32: {shallow} ns, 64: {deep} ns");
}
