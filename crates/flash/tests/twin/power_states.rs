//! Power states that an idle drive enters by itself.

use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::small::{Twin, profile, profile_with};

/// A light state after 100 ms, a deep one after 2 s.
const STATES: &str =
    "[power]\nidle_time = [\"100 ms\", \"2 s\"]\nexit_latency = [\"1 ms\", \"20 ms\"]\n[buffer]";

/// A drive with these states that was written in order, and the latency of a read without idling.
fn drive() -> (Twin, Nanos) {
    let mut twin = Twin::filled(&profile_with("[buffer]", STATES));
    let awake = twin.read(0, 1);
    (twin, awake)
}

#[test]
fn the_first_command_after_idle_time_takes_the_exit_latency_longer() {
    let (mut twin, awake) = drive();
    for (idle, exit_latency) in [(99, 0), (100, 1), (1999, 1), (2000, 20), (60_000, 20)] {
        twin.rest(Nanos::from_millis(idle));
        let first = twin.read(0, 1);
        assert_eq!(first, awake + Nanos::from_millis(exit_latency), "after {idle} ms");
        assert_eq!(twin.read(0, 1), awake, "the second after {idle} ms");
    }
    twin.rest(Nanos::from_secs(3));
    let trim = twin.request(Op::Trim, 0, 8);
    assert!(trim >= Nanos::from_millis(20), "a trim took {trim}");
}

#[test]
fn all_commands_wait_while_the_drive_leaves_a_power_state() {
    let (mut twin, awake) = drive();
    twin.rest(Nanos::from_secs(3));
    let submitted = twin.drive.now();
    twin.drive.submit(Request::new(0, Op::Read, Lba::new(0), 8)).unwrap();
    twin.drive.reap(Wait::Until(submitted + Nanos::from_millis(5)), &mut Vec::new()).unwrap();
    // Another die: it waits for the power state only.
    let second = twin.drive.submit_timed(Request::new(1, Op::Read, Lba::new(128), 8));
    let wake = submitted + Nanos::from_millis(20);
    assert!(wake < second.completed && second.completed < wake + awake * 2);
}

#[test]
fn a_drive_without_power_states_needs_no_time_to_wake_up() {
    let mut twin = Twin::filled(&profile());
    let awake = twin.read(0, 1);
    twin.rest(Nanos::from_secs(60));
    assert_eq!(twin.read(0, 1), awake);
}
