//! The temperature of a drive, and throttling.

use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::small::{Twin, profile, profile_with};

/// 40 °C when idle; reads at 50 MB/s warm it by 10 K in the end, programs by twice that.
fn hot(steps: &str) -> Twin {
    let section = format!(
        "[thermal]\nidle = \"40 °C\"\nread_heat = \"200 K/GB\"\nprogram_heat = \"400 K/GB\"\n\
         time_constant = \"1 s\"\n{steps}\n[buffer]"
    );
    Twin::filled(&profile_with("[buffer]", &section))
}

fn celsius(twin: &Twin) -> f64 {
    twin.drive.temperature().unwrap().celsius
}

/// Reads 4 KiB again and again for a time; returns the mean latency in seconds.
fn read_for(twin: &mut Twin, duration: Nanos) -> f64 {
    let (start, mut count) = (twin.drive.now(), 0);
    while twin.drive.now() < start + duration {
        twin.read(count % twin.units(), 1);
        count += 1;
    }
    (twin.drive.now() - start).as_secs_f64() / count as f64
}

fn assert_close(label: &str, by_hand: f64, model: f64) {
    assert!((model / by_hand - 1.0).abs() < 0.01, "{label}: by hand {by_hand}, model {model}");
}

#[test]
fn a_drive_warms_up_with_its_reads_and_cools_exponentially() {
    let mut twin = hot("");
    twin.rest(Nanos::from_secs(60));
    assert_close("idle", 40.0, celsius(&twin));
    let latency = read_for(&mut twin, Nanos::from_secs(10));
    let rise = 4096.0 / latency * 200e-9;
    assert_close("after ten time constants", 40.0 + rise, celsius(&twin));
    twin.rest(Nanos::from_secs(1));
    assert_close("after one more", rise / 1_f64.exp(), celsius(&twin) - 40.0);
    twin.rest(Nanos::from_secs(1_000_000));
    assert_close("after days", 40.0, celsius(&twin));
    read_for(&mut twin, Nanos::from_secs(1));
    assert_close("warm again", 40.0 + rise * (1.0 - (-1_f64).exp()), celsius(&twin));
}

#[test]
fn programs_warm_a_drive_by_what_they_program() {
    let mut twin = hot("");
    twin.rest(Nanos::from_secs(60));
    let before = twin.drive.counters().nand_writes();
    twin.write_all();
    twin.flush();
    let bytes = (twin.drive.counters().nand_writes() - before) * 4096;
    // Half a second: what it loses is below a third.
    let (most, rise) = (bytes as f64 * 400e-9, celsius(&twin) - 40.0);
    assert!(0.67 * most < rise && rise < most, "{rise} K of {most} K");
}

#[test]
fn a_throttled_drive_is_slower_by_the_factor_of_the_step() {
    // Already hot when idle.
    for (steps, factor) in [
        ("throttle_at = \"35 °C\"\nthrottled_speed = 0.25", 4.0),
        ("throttle_at = [\"35 °C\", \"38 °C\"]\nthrottled_speed = [0.5, 0.2]", 5.0),
        ("throttle_at = [\"35 °C\", \"90 °C\"]\nthrottled_speed = [0.5, 0.2]", 2.0),
    ] {
        let cool = read_for(&mut hot(""), Nanos::from_millis(100));
        let slow = read_for(&mut hot(steps), Nanos::from_millis(100));
        assert_close(steps, factor, slow / cool);
    }
}

#[test]
fn a_throttled_drive_is_slower_in_the_background_too() {
    // A page is programmed while the host rests; then the reads of all dies wait for its end.
    let slowest_read = |mut twin: Twin, rest: Nanos| {
        twin.write(0, 8);
        twin.rest(rest);
        let reads =
            [64, 72, 80, 88].map(|unit| Request::new(unit, Op::Read, Lba::new(unit * 8), 8));
        let reads = reads.map(|read| twin.drive.submit_timed(read));
        reads
            .map(|read| (read.completed - read.submitted).as_secs_f64())
            .into_iter()
            .fold(0.0, f64::max)
    };
    let cool = slowest_read(hot(""), Nanos::from_micros(100));
    let steps = "throttle_at = \"35 °C\"\nthrottled_speed = 0.25";
    let slow = slowest_read(hot(steps), Nanos::from_micros(400));
    assert!(cool > 500e-6, "the read waits for the program: {cool}");
    assert_close("four times slower", 4.0, slow / cool);
}

#[test]
fn throttling_holds_a_drive_at_the_temperature_of_the_step() {
    let steps = "throttle_at = \"44 °C\"\nthrottled_speed = 0.1";
    let (mut free, mut twin) = (hot(""), hot(steps));
    for drive in [&mut free, &mut twin] {
        drive.rest(Nanos::from_secs(60));
        read_for(drive, Nanos::from_secs(10));
    }
    assert!(celsius(&free) > 46.0, "{}", celsius(&free));
    assert!((celsius(&twin) - 44.0).abs() < 0.1, "{}", celsius(&twin));
    assert_eq!(twin.drive.temperature().unwrap().limit, Some(44.0));
    // The rate at which reads warm it as much as it cools.
    let latency = read_for(&mut twin, Nanos::from_secs(10));
    assert_close("rate", 4.0 / 200e-9, 4096.0 / latency);
    twin.rest(Nanos::from_secs(5));
    let [cool, never] = [&mut twin, &mut free].map(|drive| drive.read(0, 1));
    assert_eq!(cool, never, "at full speed again");
}

#[test]
fn completions_of_a_throttled_drive_are_in_order_and_its_state_stays_consistent() {
    let steps = "throttle_at = [\"42 °C\", \"44 °C\"]\nthrottled_speed = [0.5, 0.1]";
    let mut twin = hot(steps);
    let (mut last, mut done) = (Nanos::ZERO, Vec::new());
    for index in 0..40_000_u64 {
        let op = if index.is_multiple_of(3) { Op::Write } else { Op::Read };
        let unit = index * 7919 % twin.units();
        twin.drive.submit(Request::new(index, op, Lba::new(unit * 8), 8)).unwrap();
        if index >= 16 {
            twin.drive.reap(Wait::One, &mut done).unwrap();
        }
        if index % 10_000 == 0 {
            let cut = twin.drive.power_cut(twin.drive.now() + Nanos::from_micros(50));
            done.extend(cut.completed);
        }
    }
    for completion in &done {
        assert!(completion.completed >= last && completion.completed > completion.submitted);
        last = completion.completed;
    }
    assert!(celsius(&twin) > 42.0, "{}", celsius(&twin));
    twin.drive.assert_consistent();
}

#[test]
fn a_profile_without_heat_has_no_temperature() {
    assert_eq!(Twin::new(&profile()).drive.temperature(), None);
}
