//! A signal does not end a wait early. No test harness: the process has one thread, so that every
//! signal interrupts the thread that waits.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::SIGUSR1;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::sleep_until;

fn main() {
    let last_signal = Arc::new(AtomicUsize::new(0));
    signal_hook::flag::register_usize(SIGUSR1, Arc::clone(&last_signal), 1).unwrap();
    let sends = "for _ in 1 2 3 4 5; do sleep 0.05; kill -USR1 $PPID; done";
    let mut sender = Command::new("sh").args(["-c", sends]).spawn().unwrap();
    let due = wall_clock_now() + Duration::from_millis(500);
    sleep_until(due).unwrap();
    let ended = wall_clock_now();
    assert!(sender.wait().unwrap().success());
    assert_eq!(last_signal.load(Ordering::Relaxed), 1, "no signal arrived");
    assert!(ended >= due, "the wait ended {:?} too early", due - ended);
}
