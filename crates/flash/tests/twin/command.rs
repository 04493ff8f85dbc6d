//! Command latency: processing time of the controller, and flush overhead.

use crate::small::{Twin, profile, profile_with, profile_with_lines};
use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_time::{Nanos, Random};

/// The rate of requests for one unit at random addresses, with 64 in flight.
fn per_second(twin: &mut Twin, op: Op) -> f64 {
    let (mut random, mut done, mut submitted) = (Random::new(3, "place"), Vec::new(), 0);
    let start = twin.drive.now();
    while done.len() < 2000 {
        while submitted < 2000 && submitted - done.len() < 64 {
            let lba = Lba::new(random.below(twin.units()) * 8);
            twin.drive.submit(Request::new(submitted as u64, op, lba, 8)).unwrap();
            submitted += 1;
        }
        twin.drive.reap(Wait::One, &mut done).unwrap();
    }
    2000.0 / ((twin.drive.now() - start).get() as f64 / 1e9)
}

fn filled_with(line: &str) -> Twin {
    Twin::filled(&profile_with_lines("[link]", line))
}

#[test]
fn the_processing_time_limits_the_rate_of_commands_but_not_their_latency_at_depth_1() {
    let mut unlimited = filled_with("");
    let mut limited = filled_with("read_command = \"20 us\"");
    assert_eq!(unlimited.read(7, 1), limited.read(7, 1));
    assert!(per_second(&mut unlimited, Op::Read) > 60_000.0, "four dies, 50 us each");
    let rate = per_second(&mut limited, Op::Read);
    assert!((rate / 50_000.0 - 1.0).abs() < 0.01, "{rate:.0} reads per second at 20 us each");
}

#[test]
fn writes_have_their_own_processing_time() {
    // The limit of the flash: four dies program 8 units in 700 us, 46,000 writes per second.
    let mut limited = filled_with("write_command = \"5 us\"");
    let mut slow = Twin::new(&profile_with(
        "write_overhead = \"5 us\"",
        "write_overhead = \"100 us\"\nwrite_command = \"100 us\"",
    ));
    assert!(per_second(&mut limited, Op::Write) > 20_000.0);
    let rate = per_second(&mut slow, Op::Write);
    assert!((rate / 10_000.0 - 1.0).abs() < 0.01, "{rate:.0} writes per second at 100 us each");
}

#[test]
fn writes_may_have_another_bandwidth_than_reads() {
    let mut one = Twin::filled(&profile());
    let mut two = filled_with("write_bandwidth = \"10 MB/s\"");
    assert_eq!(one.read(7, 1), two.read(7, 1));
    let rate = per_second(&mut two, Op::Write);
    assert!((rate / (10e6 / 4096.0) - 1.0).abs() < 0.01, "{rate:.0} writes per second");
    assert!(per_second(&mut one, Op::Write) > 4.0 * rate);
}

#[test]
fn flush_overhead_is_added_to_flushes_and_durable_writes() {
    let overhead = Nanos::from_micros(900);
    let mut quick = Twin::new(&profile());
    let mut slow = Twin::new(&profile_with_lines("[buffer]", "flush_overhead = \"900 us\""));
    for twin in [&mut quick, &mut slow] {
        twin.write(0, 1);
    }
    assert_eq!(slow.flush(), quick.flush() + overhead);
    let durable = |twin: &mut Twin| {
        let write = Request::new(1, Op::Write, Lba::new(0), 8);
        let done = twin.run(Request { durable: true, ..write });
        done.completed - done.submitted
    };
    assert_eq!(durable(&mut slow), durable(&mut quick) + overhead);
}

#[test]
fn flush_overhead_applies_with_power_loss_protection_but_not_to_ignored_flushes() {
    for (setting, micros) in [("power_loss_protection = true", 205), ("honours_flush = false", 5)] {
        let with = format!("{setting}\nflush_overhead = \"200 us\"");
        let mut twin = Twin::new(&profile_with("power_loss_protection = false", &with));
        twin.write(0, 1);
        assert_eq!(twin.flush(), Nanos::from_micros(micros), "{setting}");
    }
}
