//! Replays of traces on a twin: at the trace's own speed, faster, and as fast as possible.

use std::fmt::Write;
use std::ops::ControlFlow;

use ssdlab_device::{Device, Op};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_workload::trace::Replay;
use ssdlab_workload::{Job, Outcome, run};

use crate::TraceFile;

const PROFILE: &str = include_str!("../../../flash/tests/drives/placement-study.toml");

/// Microseconds between requests.
const GAP_US: u64 = 1000;

/// Alternating writes and reads, one per millisecond, with a flush after every ten.
fn alternating(count: u64) -> TraceFile {
    let mut text = String::from("fio version 3 iolog\n0 /dev/a add\n");
    for at in 0..count {
        let (time, place) = (at * GAP_US, at / 2 * 4096);
        let action = if at % 2 == 0 { "write" } else { "read" };
        writeln!(text, "{time} /dev/a {action} {place} 4096").unwrap();
        if at % 10 == 9 {
            writeln!(text, "{time} /dev/a sync 0 0").unwrap();
        }
    }
    TraceFile::of(&text)
}

fn job(replay: Replay) -> Job {
    let replay = Some(replay);
    Job { replay, length_bytes: 1 << 30, queue_depth: 8, ..Job::new(Op::Read) }
}

fn outcome(job: &Job) -> Outcome {
    let mut ssd = Ssd::new(&Profile::from_toml(PROFILE).unwrap(), 1);
    job.check(&ssd).unwrap();
    run(&mut ssd, job, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_trace_is_replayed_at_its_speed_or_a_multiple() {
    let trace = alternating(1000);
    for (speed, millis) in [(1.0, 999), (4.0, 250), (0.5, 1998)] {
        let replay = Replay { requests: 1100, speed: Some(speed), ..trace.replay(None) };
        let Outcome { record, lag, failure, .. } = outcome(&job(replay));
        assert!(failure.is_none());
        assert_eq!((record.requests, record.errors), (1100, 0));
        let took = (record.end - record.start).get() / 1_000_000;
        assert!(took.abs_diff(millis) <= 1, "speed {speed}: {took} ms for {millis}");
        assert_eq!((lag.late, lag.max < Nanos::from_millis(1)), (0, true));
    }
}

#[test]
fn without_a_speed_requests_do_not_wait_for_their_times() {
    let trace = alternating(1000);
    let replay = Replay { requests: 1100, ..trace.replay(None) };
    let record = outcome(&job(replay)).record;
    assert_eq!(record.requests, 1100);
    assert!(record.end - record.start < Nanos::from_millis(400), "{:?}", record.end);
}

#[test]
fn requests_are_counted_by_operation() {
    let trace = alternating(1000);
    let replay = Replay { requests: 1100, ..trace.replay(None) };
    let outcome = outcome(&job(replay));
    for (op, count) in [(Op::Read, 500), (Op::Write, 500), (Op::Flush, 100), (Op::Trim, 0)] {
        assert_eq!(outcome.latency(Some(op)).count(), count, "{op:?}");
    }
}

#[test]
fn a_queue_too_short_for_the_speed_is_reported_as_lag() {
    let trace = alternating(2000);
    let replay = Replay { requests: 2200, speed: Some(1000.0), ..trace.replay(None) };
    let lag = outcome(&Job { queue_depth: 1, ..job(replay) }).lag;
    assert!(lag.late > 1000 && lag.max > Nanos::from_millis(10), "{lag:?}");
}

#[test]
fn a_trace_that_changed_after_the_check_ends_the_job_with_its_line() {
    let trace = alternating(1000);
    let mut text = std::fs::read_to_string(&trace.path).unwrap();
    text.push_str("999999999 /dev/a erase 0 0\n");
    std::fs::write(&trace.path, text).unwrap();
    let outcome = outcome(&job(Replay { requests: 1100, ..trace.replay(None) }));
    assert_eq!(outcome.record.requests, 1100, "requests before the error are kept");
    let message = outcome.failure.unwrap().to_string();
    assert!(message.contains("line 1103: action is \"erase\""), "{message}");
}

#[test]
fn an_invalid_job_names_its_field() {
    let ssd = Ssd::new(&Profile::from_toml(PROFILE).unwrap(), 1);
    let replay = || Replay { requests: 1, ..alternating(10).replay(None) };
    let named = |job: Job| job.check(&ssd).map_or_else(|error| error.field, |()| "");
    assert_eq!(named(job(replay())), "");
    assert_eq!(named(job(Replay { speed: Some(0.0), ..replay() })), "replay.speed");
    assert_eq!(named(Job { threads: 2, ..job(replay()) }), "threads");
    let beyond = ssd.capacity_bytes() + 4096;
    assert_eq!(named(Job { length_bytes: beyond, ..job(replay()) }), "length_bytes");
}
