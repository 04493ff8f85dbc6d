//! Latency in the controller: its processor's time, and the overhead of a flush.

use crate::small::{Twin, profile, profile_with};
use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_time::{Nanos, Random};

/// Requests of one unit per second, 64 in flight, at random addresses of a written drive.
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

fn with_command(line: &str) -> Twin {
    let overhead = "read_overhead = \"20 us\"";
    let mut twin = Twin::new(&profile_with(overhead, &format!("{overhead}\n{line}")));
    twin.write_all();
    twin.flush();
    twin
}

#[test]
fn the_processor_limits_commands_per_second_but_not_the_latency_of_one() {
    let mut free = with_command("");
    let mut bound = with_command("read_command = \"20 us\"");
    assert_eq!(free.read(7, 1), bound.read(7, 1));
    assert!(per_second(&mut free, Op::Read) > 60_000.0, "four dies, 50 us each");
    let rate = per_second(&mut bound, Op::Read);
    assert!((rate / 50_000.0 - 1.0).abs() < 0.01, "{rate:.0} reads a second at 20 us each");
}

#[test]
fn writes_have_their_own_processor_time() {
    // Without it: four dies program 8 units in 700 us, 46,000 writes per second.
    let mut bound = with_command("write_command = \"5 us\"");
    let mut slow = Twin::new(&profile_with(
        "write_overhead = \"5 us\"",
        "write_overhead = \"100 us\"\nwrite_command = \"100 us\"",
    ));
    assert!(per_second(&mut bound, Op::Write) > 20_000.0);
    let rate = per_second(&mut slow, Op::Write);
    assert!((rate / 10_000.0 - 1.0).abs() < 0.01, "{rate:.0} writes a second at 100 us each");
}

#[test]
fn the_flush_overhead_follows_the_programs_for_flushes_and_durable_writes() {
    let own = Nanos::from_micros(900);
    let line = "power_loss_protection = false";
    let (mut quick, mut slow) = (
        Twin::new(&profile()),
        Twin::new(&profile_with(line, &format!("{line}\nflush_overhead = \"900 us\""))),
    );
    for twin in [&mut quick, &mut slow] {
        twin.write(0, 1);
    }
    assert_eq!(slow.flush(), quick.flush() + own);
    let durable = |twin: &mut Twin| {
        let mut done = Vec::new();
        let request = Request { durable: true, ..Request::new(1, Op::Write, Lba::new(0), 8) };
        twin.drive.submit(request).unwrap();
        twin.drive.reap(Wait::One, &mut done).unwrap();
        done[0].completed - done[0].submitted
    };
    assert_eq!(durable(&mut slow), durable(&mut quick) + own);
}

#[test]
fn a_protected_drive_has_the_flush_overhead_and_one_that_ignores_flushes_has_not() {
    for (setting, taken) in [("power_loss_protection = true", 205), ("honours_flush = false", 5)] {
        let with = format!("{setting}\nflush_overhead = \"200 us\"");
        let mut twin = Twin::new(&profile_with("power_loss_protection = false", &with));
        twin.write(0, 1);
        assert_eq!(twin.flush(), Nanos::from_micros(taken), "{setting}");
    }
}
