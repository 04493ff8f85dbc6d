//! Latencies of an open loop count from the intended start; a closed loop hides waiting times.

use std::ops::ControlFlow;

use ssdlab_device::{Completion, Device, DeviceError, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_workload::{Arrival, Job, Outcome, PatternKind, run};

const SECOND: u64 = 1_000_000_000;
const STALL: u64 = 100_000_000;

/// A twin that completes nothing in the first 100 ms of each second, and delays completions in that
/// time to its end.
struct Stalling {
    twin: Ssd,
    held: Vec<Completion>,
    now: Nanos,
}

impl Stalling {
    fn new() -> Self {
        Self { twin: twin(), held: Vec::new(), now: Nanos::ZERO }
    }
}

impl Device for Stalling {
    fn capacity_bytes(&self) -> u64 {
        self.twin.capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.twin.sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.twin.queue_depth()
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.twin.reap(Wait::Until(self.now), &mut self.held)?;
        self.twin.submit(request)
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let until = match wait {
            Wait::Poll => self.now,
            Wait::Until(time) => time,
            Wait::One => Nanos::MAX,
        };
        if self.held.is_empty() {
            let wait = if wait == Wait::One { Wait::One } else { Wait::Until(until) };
            self.twin.reap(wait, &mut self.held)?;
        }
        for completion in &mut self.held {
            let into_second = completion.completed.get() % SECOND;
            let left = STALL.saturating_sub(into_second);
            completion.completed += Nanos::new(left);
        }
        let next = self.held.first().map(|completion| completion.completed);
        let target = if until == Nanos::MAX { next.unwrap_or(self.now) } else { until };
        self.now = self.now.max(next.map_or(target, |next| next.min(target)));
        let is_done = |completion: &Completion| completion.completed <= self.now;
        let count = self.held.iter().take_while(|completion| is_done(completion)).count();
        done.extend(self.held.drain(..count));
        Ok(())
    }
}

const PROFILE: &str = r#"
[drive]
model = "Test"
capacity = "64 MiB"
interface = "nvme"
[link]
bandwidth = "2000 MB/s"
read_overhead = "10 us"
write_overhead = "5 us"
[flash]
channels = 2
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 16
read = ["40 us"]
program = "700 us"
erase = "3 ms"
channel_bandwidth = "800 MB/s"
[ftl]
spare = 0.28
[buffer]
size = "1 MiB"
"#;

fn twin() -> Ssd {
    Ssd::new(&Profile::from_toml(PROFILE).unwrap(), 0)
}

fn job(arrival: Arrival) -> Job {
    Job {
        arrival,
        pattern: PatternKind::Random,
        length_bytes: 1 << 24,
        block_bytes: 4096,
        seconds: Some(10.0),
        ..Job::new(Op::Read)
    }
}

fn outcome(device: &mut impl Device, job: &Job) -> Outcome {
    job.check(device).unwrap();
    run(device, job, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn an_open_loop_shows_stalls_of_100_ms_per_second_in_p99() {
    for poisson in [false, true] {
        for queue_depth in [1, 32] {
            let arrival = Arrival::Rate { per_s: 2000.0, poisson };
            let job = Job { queue_depth, ..job(arrival) };
            let outcome = outcome(&mut Stalling::new(), &job);
            let served = outcome.record.requests + outcome.record.unserved;
            assert!((19_500..20_500).contains(&served), "{served} in ten seconds");
            // A tenth of the requests arrive in a stall, and wait for 0 to 100 ms, uniformly.
            let latency = outcome.latency(None);
            let [p90, p95, p99] =
                [0.905, 0.95, 0.99].map(|share| latency.quantile(share) / 1_000_000);
            assert!((0..=8).contains(&p90), "p90.5 {p90} ms");
            assert!((44..=56).contains(&p95), "p95 {p95} ms, depth {queue_depth}");
            assert!((86..=94).contains(&p99), "p99 {p99} ms, depth {queue_depth}");
        }
    }
}

#[test]
fn a_closed_loop_does_not_show_these_stalls_in_p99() {
    let outcome = outcome(&mut Stalling::new(), &job(Arrival::Closed));
    assert!(outcome.latency(None).quantile(0.99) < 1_000_000);
    assert!(outcome.latency(None).max() >= 99_000_000);
}

#[test]
fn a_steady_twin_serves_an_open_loop_as_fast_as_a_closed_one() {
    let open = outcome(&mut twin(), &job(Arrival::Rate { per_s: 1000.0, poisson: false }));
    let closed = outcome(&mut twin(), &job(Arrival::Closed));
    assert_eq!(open.record.requests, 10_000);
    assert_eq!(open.latency(None).quantile(0.5), closed.latency(None).quantile(0.5));
}

#[test]
fn arrivals_above_the_service_rate_wait_and_unserved_ones_are_counted() {
    let mut twin = twin();
    let closed = outcome(&mut twin, &job(Arrival::Closed));
    let served_per_s = closed.record.requests as f64 / 10.0;
    let open = job(Arrival::Rate { per_s: served_per_s * 2.0, poisson: false });
    let record = outcome(&mut twin, &open).record;
    let arrived = record.requests + record.unserved;
    assert!((arrived as f64 / (served_per_s * 20.0) - 1.0).abs() < 0.01, "{arrived}");
    assert!((record.unserved as f64 / arrived as f64 - 0.5).abs() < 0.01);
    let latency = outcome(&mut twin, &open).latency(None);
    assert!((latency.max() as f64 / 5e9 - 1.0).abs() < 0.01, "{} ns", latency.max());
}
