//! What every `Device` must do: one generic body, run on a twin and on a real file.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use ssdlab_device::{Device, DeviceError, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_uring::{OpenOptions, UringDevice};
use ssdlab_workload::{Job, PatternKind, rest, run};

const SIZE: u64 = 16 << 20;

/// The contract, in the order in which a reader would try it.
fn keeps_the_contract<D: Device>(mut device: D) {
    let device = &mut device;
    assert!(device.capacity_bytes() >= SIZE);
    assert!(device.queue_depth() >= 32);
    refuses_what_does_not_fit(device);
    brings_each_request_back_once_and_in_order(device);
    rests_until_a_time_with_nothing_in_flight(device);
    returns_at_once_when_there_is_nothing_to_wait_for(device);
    never_runs_its_clock_backwards(device);
    runs_jobs_of_every_kind(device);
    can_be_interrupted(device);
    holds_back_what_its_queue_has_no_room_for(device);
}

fn request(id: u64, op: Op, sector: u64, index: u64) -> Request {
    let blocks = sector / 512;
    Request { id, op, lba: Lba::new(index * blocks), blocks: blocks as u32 }
}

fn refuses_what_does_not_fit(device: &mut impl Device) {
    let sector = device.sector_bytes();
    let beyond = request(0, Op::Read, sector, device.capacity_bytes() / sector);
    assert!(matches!(device.submit(beyond), Err(DeviceError::OutOfRange { .. })));
    let empty = Request { id: 0, op: Op::Read, lba: Lba::new(0), blocks: 0 };
    assert!(matches!(device.submit(empty), Err(DeviceError::Misaligned { .. })));
    let mut done = Vec::new();
    device.reap(Wait::Poll, &mut done).unwrap();
    assert!(done.is_empty(), "a refused request does not come back");
}

fn brings_each_request_back_once_and_in_order(device: &mut impl Device) {
    let sector = device.sector_bytes().max(4096);
    for op in [Op::Write, Op::Read] {
        for id in 0..32 {
            device.submit(request(100 + id, op, sector, (id * 37) % 64)).unwrap();
        }
        let mut done = Vec::new();
        while done.len() < 32 {
            let before = done.len();
            device.reap(Wait::One, &mut done).unwrap();
            assert!(done.len() > before, "One brings at least one");
        }
        let ids: BTreeSet<u64> = done.iter().map(|completion| completion.id).collect();
        assert!(ids.into_iter().eq(100..132), "{op:?}");
        assert!(done.iter().all(|c| c.outcome.is_ok() && c.submitted <= c.completed));
        assert!(done.is_sorted_by_key(|completion| completion.completed));
        assert!(done.last().unwrap().completed <= device.now());
    }
}

fn rests_until_a_time_with_nothing_in_flight(device: &mut impl Device) {
    let (start, pause) = (device.now(), Nanos::from_millis(20));
    let mut done = Vec::new();
    device.reap(Wait::Until(start + pause), &mut done).unwrap();
    assert!(done.is_empty());
    assert!(device.now() >= start + pause);
    assert!(rest(device, pause, &mut |_| ControlFlow::Continue(())).unwrap());
    assert!(device.now() >= start + pause * 2);
    assert!(!rest(device, pause, &mut |_| ControlFlow::Break(())).unwrap());
}

fn returns_at_once_when_there_is_nothing_to_wait_for(device: &mut impl Device) {
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
        op,
        pattern,
        offset_bytes: 0,
        length_bytes: SIZE,
        block_bytes: 16384,
        amount_bytes: SIZE / 2 + 1,
        queue_depth,
        seed: 5,
        interval_ms: 1,
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
        let job = job(op, pattern, depth);
        job.check(device).unwrap();
        let mut told = 0;
        let outcome = run(device, &job, &mut |progress| {
            assert!(progress.done >= told && progress.total == job.requests());
            told = progress.done;
            ControlFlow::Continue(())
        })
        .unwrap();
        let record = &outcome.record;
        assert_eq!((record.requests, record.errors), (job.requests(), 0), "{op:?} {pattern:?}");
        assert_eq!(told, job.requests());
        assert_eq!(outcome.latency.len(), job.requests());
        assert_eq!(record.intervals.iter().map(|i| i.requests).sum::<u64>(), record.requests);
        assert_eq!(record.intervals.iter().map(|i| i.bytes).sum::<u64>(), record.bytes);
        assert!(record.intervals.is_sorted_by_key(|interval| interval.start));
        // Little's law: what was outstanding is what each waited, at the rate they came.
        let outstanding = outcome.latency.mean() * record.requests as f64
            / (record.end - record.start).get() as f64;
        assert!(outstanding <= depth as f64 * 1.02, "{op:?} {pattern:?}: {outstanding}");
    }
}

fn can_be_interrupted(device: &mut impl Device) {
    let job = job(Op::Read, PatternKind::Random, 8);
    let outcome = run(device, &job, &mut |progress| {
        if progress.done < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .unwrap();
    assert!(outcome.stopped);
    assert!((20..job.requests()).contains(&outcome.record.requests));
    let mut done = Vec::new();
    device.reap(Wait::Poll, &mut done).unwrap();
    assert!(done.is_empty(), "a job that was broken off leaves nothing in flight");
}

fn holds_back_what_its_queue_has_no_room_for(device: &mut impl Device) {
    let depth = (device.queue_depth() * 2).min(1024);
    let job = job(Op::Read, PatternKind::Random, depth);
    let outcome = run(device, &job, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(outcome.record.requests, job.requests());
    let span = (outcome.record.end - outcome.record.start).get();
    assert!(outcome.latency.max() <= span + span / 100, "no latency exceeds the whole job");
}

const PROFILE: &str = r#"
[drive]
model = "Test"
capacity = "64 MiB"
interface = "sata"
[link]
bandwidth = "500 MB/s"
read_overhead = "20 us"
write_overhead = "5 us"
[flash]
channels = 2
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 16
read = ["40 us", "60 us"]
program = "700 us"
erase = "3 ms"
channel_bandwidth = "400 MB/s"
[ftl]
spare = 0.28
read_ahead = "256 KiB"
[buffer]
size = "1 MiB"
"#;

#[test]
fn a_twin_keeps_the_contract() {
    keeps_the_contract(Ssd::new(&Profile::from_toml(PROFILE).unwrap(), 0));
}

#[test]
fn a_real_file_keeps_the_contract() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    written_file(&path);
    let options = OpenOptions { writable: true, ..OpenOptions::default() };
    keeps_the_contract(UringDevice::open(&path, &options).unwrap());
}

fn written_file(path: &Path) {
    let file = File::create(path).unwrap();
    std::fs::write(path, vec![1_u8; SIZE as usize]).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_queue_of_32_makes_64_outstanding_requests_wait_their_turn() {
    let profile = Profile::from_toml(PROFILE).unwrap();
    let mean = |depth: usize| {
        let mut drive = Ssd::new(&profile, 0);
        let fill = Job { amount_bytes: SIZE, ..job(Op::Write, PatternKind::Sequential, 4) };
        run(&mut drive, &fill, &mut |_| ControlFlow::Continue(())).unwrap();
        let read = job(Op::Read, PatternKind::Random, depth);
        run(&mut drive, &read, &mut |_| ControlFlow::Continue(())).unwrap().latency.mean()
    };
    let (shallow, deep) = (mean(32), mean(64));
    assert!((1.6..2.4).contains(&(deep / shallow)), "32: {shallow} ns, 64: {deep} ns");
}
