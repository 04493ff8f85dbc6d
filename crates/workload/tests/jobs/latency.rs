//! Latencies on a twin: of open loops, where they count from the intended start, and of durable
//! writes.

use ssdlab_device::{Completion, Device, DeviceError, Op, Request, Wait};
use ssdlab_flash::Ssd;
use ssdlab_time::Nanos;
use ssdlab_workload::{Arrival, Job, Outcome, PatternKind, Sync};

use crate::{outcome, twin};

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
        Self { twin: fast(), held: Vec::new(), now: Nanos::ZERO }
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

/// A twin with little latency, so that a queue of depth 1 soon recovers from a stall.
fn fast() -> Ssd {
    twin(&[("\"1000 MB/s\"", "\"2000 MB/s\""), ("\"20 us\"", "\"10 us\"")])
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
    let open = outcome(&mut fast(), &job(Arrival::Rate { per_s: 1000.0, poisson: false }));
    let closed = outcome(&mut fast(), &job(Arrival::Closed));
    assert_eq!(open.record.requests, 10_000);
    assert_eq!(open.latency(None).quantile(0.5), closed.latency(None).quantile(0.5));
}

#[test]
fn arrivals_above_the_service_rate_wait_and_unserved_ones_are_counted() {
    let mut twin = fast();
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

/// Sixteen random writes of 4 KiB at depth 1; `protection` is a key of the section `[buffer]`.
fn written(protection: &str, sync: Sync) -> Outcome {
    let job = Job {
        sync,
        pattern: PatternKind::Random,
        length_bytes: 1 << 24,
        block_bytes: 4096,
        amount_bytes: 16 * 4096,
        ..Job::new(Op::Write)
    };
    outcome(&mut twin(&[("power_loss_protection = false", protection)]), &job)
}

#[test]
fn a_durable_write_waits_for_its_program_unless_capacitors_protect_the_buffer() {
    let fast = |outcome: &Outcome| outcome.latency(Some(Op::Write)).max() < 20_000;
    assert!(fast(&written("", Sync::None)));
    let durable = written("", Sync::Durable).latency(Some(Op::Write));
    assert!(durable.quantile(0.0) >= 700_000, "{} ns", durable.quantile(0.0));
    assert!(fast(&written("power_loss_protection = true", Sync::Durable)));
    assert!(fast(&written("honours_flush = false", Sync::Durable)));
}

#[test]
fn a_flush_after_each_write_costs_the_same_and_is_counted_separately() {
    let flushed = written("", Sync::Flush { every: 1 });
    assert!(flushed.latency(Some(Op::Write)).max() < 20_000);
    let flush = flushed.latency(Some(Op::Flush));
    assert_eq!(flush.count(), 16);
    assert!(flush.quantile(0.0) >= 700_000);
    let durable = written("", Sync::Durable).record;
    let ratio = flushed.record.end.as_secs_f64() / durable.end.as_secs_f64();
    assert!((0.95..1.1).contains(&ratio), "{ratio}");
}
