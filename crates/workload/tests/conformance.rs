//! What every `Device` must do: one generic body, run on a twin and on a real file.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use ssdlab_device::{Completion, Device, DeviceError, Interval, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_uring::{OpenOptions, UringDevice};
use ssdlab_workload::{Arrival, Job, Outcome, PatternKind, Progress, Sync, rest, run};

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
    visits_every_pattern_and_stays_in_its_region(device);
    mixes_kinds_and_lengths_by_their_shares(device);
    makes_writes_durable_in_both_ways(device);
    keeps_the_rate_of_an_open_loop(device);
    ends_when_its_time_is_up(device);
    can_be_interrupted(device);
    holds_back_what_its_queue_has_no_room_for(device);
}

fn request(id: u64, op: Op, sector: u64, index: u64) -> Request {
    let blocks = sector / 512;
    Request::new(id, op, Lba::new(index * blocks), blocks as u32)
}

fn refuses_what_does_not_fit(device: &mut impl Device) {
    let sector = device.sector_bytes();
    let beyond = request(0, Op::Read, sector, device.capacity_bytes() / sector);
    assert!(matches!(device.submit(beyond), Err(DeviceError::OutOfRange { .. })));
    let empty = Request::new(0, Op::Read, Lba::new(0), 0);
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
        pattern,
        length_bytes: SIZE,
        block_bytes: 16384,
        amount_bytes: SIZE / 2 + 1,
        queue_depth,
        seed: 5,
        interval_ms: 1,
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
        assert_eq!(outcome.latency(Some(op)).count(), job.requests());
        assert_eq!(record.intervals.iter().map(Interval::requests).sum::<u64>(), record.requests);
        assert_eq!(record.intervals.iter().map(Interval::bytes).sum::<u64>(), record.bytes);
        assert!(record.intervals.is_sorted_by_key(|interval| interval.start));
        // Little's law: what was outstanding is what each waited, at the rate they came.
        let outstanding = outcome.latency(None).mean() * record.requests as f64
            / (record.end - record.start).get() as f64;
        assert!(outstanding <= depth as f64 * 1.02, "{op:?} {pattern:?}: {outstanding}");
    }
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn checked(device: &mut impl Device, job: &Job) -> Outcome {
    job.check(device).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(device, job, &mut go_on).unwrap();
    assert_eq!((outcome.record.errors, outcome.stopped), (0, false));
    assert!(outcome.failure.is_none());
    outcome
}

fn visits_every_pattern_and_stays_in_its_region(device: &mut impl Device) {
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
            let mut spy = Spy::new(device);
            assert_eq!(checked(&mut spy, &job).record.requests, job.requests(), "{pattern:?}");
            let inside =
                |r: &Request| r.lba.bytes() >= SIZE / 4 && r.lba.bytes() + r.bytes() <= SIZE;
            assert!(spy.seen.iter().all(inside), "{pattern:?}");
        }
    }
}

fn mixes_kinds_and_lengths_by_their_shares(device: &mut impl Device) {
    let job = Job {
        read_share: 0.6,
        trim_share: 0.1,
        block_bytes: 0,
        block_mix: vec![(4096, 3.0), (12288, 1.0)],
        amount_bytes: 1 << 23,
        ..job(Op::Write, PatternKind::Random, 8)
    };
    let mut spy = Spy::new(device);
    let outcome = checked(&mut spy, &job);
    let share = |wanted: &dyn Fn(&Request) -> bool| {
        spy.seen.iter().filter(|r| wanted(r)).count() as f64 / spy.seen.len() as f64
    };
    for (op, wanted) in [(Op::Read, 0.6), (Op::Trim, 0.1), (Op::Write, 0.3)] {
        let seen = share(&|request| request.op == op);
        assert!((seen - wanted).abs() < 0.06, "{op:?}: {seen}");
        let counted = outcome.latency(Some(op)).count();
        assert_eq!(counted, spy.seen.iter().filter(|r| r.op == op).count() as u64);
        let tallies = outcome.record.intervals.iter().map(|i| i.by_op[op.index()]);
        assert_eq!(tallies.map(|tally| tally.requests).sum::<u64>(), counted);
    }
    assert!((share(&|request| request.bytes() == 4096) - 0.75).abs() < 0.06);
    let bytes: u64 = spy.seen.iter().map(Request::bytes).sum();
    assert!((1 << 23..(1 << 23) + 12288).contains(&bytes), "the amount counts bytes: {bytes}");
    assert_eq!(outcome.record.bytes, bytes);
}

fn makes_writes_durable_in_both_ways(device: &mut impl Device) {
    let write = job(Op::Write, PatternKind::Random, 4);
    let durable = Job { sync: Sync::Durable, read_share: 0.5, ..write.clone() };
    let mut spy = Spy::new(device);
    assert_eq!(checked(&mut spy, &durable).record.requests, durable.requests());
    assert!(spy.seen.iter().all(|request| request.durable == (request.op == Op::Write)));
    let flushed = Job { sync: Sync::Flush { every: 2 }, amount_bytes: 101 * 16384, ..write };
    let mut spy = Spy::new(device);
    let outcome = checked(&mut spy, &flushed);
    assert_eq!(outcome.latency(Some(Op::Write)).count(), 101);
    assert_eq!(outcome.latency(Some(Op::Flush)).count(), 50);
    assert_eq!(outcome.record.bytes, 101 * 16384);
    for (count, flush) in spy.seen.iter().enumerate().filter(|(_, r)| r.op == Op::Flush) {
        let before = &spy.seen[..count];
        let earlier = before.iter().filter(|r| r.op == Op::Flush).count();
        assert!(before.len() - earlier >= 2 * (earlier + 1), "{flush:?} comes after its writes");
    }
}

fn keeps_the_rate_of_an_open_loop(device: &mut impl Device) {
    for poisson in [false, true] {
        let arrival = Arrival::Rate { per_s: 2000.0, poisson };
        let amount_bytes = 300 * 16384;
        let job = Job { arrival, amount_bytes, ..job(Op::Read, PatternKind::Random, 32) };
        let outcome = checked(device, &job);
        let seconds = (outcome.record.end - outcome.record.start).as_secs_f64();
        assert_eq!(outcome.record.requests, 300);
        let shortest = if poisson { 0.1 } else { 0.149 };
        assert!(seconds > shortest, "300 requests at 2000 a second took {seconds} s");
    }
}

fn ends_when_its_time_is_up(device: &mut impl Device) {
    for arrival in [Arrival::Closed, Arrival::Rate { per_s: 1000.0, poisson: false }] {
        // A busy machine may let nobody run for so long that all of it comes too late.
        assert!(
            [20, 200, 2000, 20_000].into_iter().any(|millis| served_in(device, arrival, millis))
        );
    }
}

/// Runs a job without end for so long; whether any request was served.
fn served_in(device: &mut impl Device, arrival: Arrival, millis: u64) -> bool {
    let endless = Job { amount_bytes: 0, ..job(Op::Read, PatternKind::Random, 4) };
    let job = Job { arrival, seconds: Some(millis as f64 / 1e3), ..endless };
    let mut told = Vec::new();
    let start = device.now();
    let outcome = run(device, &job, &mut |progress: Progress| {
        told.push(progress);
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
    assert_eq!(told.last().unwrap().done, told.last().unwrap().total);
    if arrival != Arrival::Closed {
        assert_eq!(served + outcome.record.unserved, millis);
    }
    true
}

/// A device that remembers what it was asked.
struct Spy<'a, D> {
    device: &'a mut D,
    seen: Vec<Request>,
}

impl<'a, D> Spy<'a, D> {
    fn new(device: &'a mut D) -> Self {
        Self { device, seen: Vec::new() }
    }
}

impl<D: Device> Device for Spy<'_, D> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.device.sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.device.queue_depth()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.seen.push(request);
        self.device.submit(request)
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.device.reap(wait, done)
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
    assert!(outcome.latency(None).max() <= span + span / 100, "no latency exceeds the whole job");
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
        run(&mut drive, &read, &mut |_| ControlFlow::Continue(())).unwrap().latency(None).mean()
    };
    let (shallow, deep) = (mean(32), mean(64));
    assert!((1.6..2.4).contains(&(deep / shallow)), "32: {shallow} ns, 64: {deep} ns");
}
