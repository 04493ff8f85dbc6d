//! A device may be opened, driven and dropped by different threads, one at a time.

mod scratch;

use std::thread;

use scratch::{Scratch, reap_all, request, writable};
use ssdlab_device::{Device, Op};
use ssdlab_uring::UringDevice;

const PIECE: u32 = 1 << 16;

/// A device with a write for each of its 32 slots in flight, which fill the file.
fn busy(file: &Scratch) -> UringDevice {
    let mut device = file.open(&writable(32));
    for id in 0..32 {
        device.submit(request(id, Op::Write, id * u64::from(PIECE), PIECE)).unwrap();
    }
    device
}

fn all_written(file: &Scratch) -> bool {
    file.bytes().chunks(4096).all(|block| block.iter().any(|&byte| byte != 0))
}

#[test]
fn a_dropped_device_has_done_what_was_in_flight() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    drop(busy(&file));
    assert!(all_written(&file));
}

#[test]
fn another_thread_can_reap_what_this_one_submitted() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    let mut device = busy(&file);
    let reaped = thread::spawn(move || reap_all(&mut device, 32).len()).join().unwrap();
    assert_eq!(reaped, 32);
    assert!(all_written(&file));
}

#[test]
fn another_thread_can_drop_a_device_with_requests_in_flight() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    let device = busy(&file);
    thread::spawn(move || drop(device)).join().unwrap();
    assert!(all_written(&file));
}

#[test]
fn requests_outlive_the_thread_that_submitted_them() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    let mut device =
        thread::scope(|scope| scope.spawn(|| busy(&file)).join()).expect("the thread submits");
    let done = reap_all(&mut device, 32);
    assert!(done.iter().all(|c| c.outcome == Ok(())));
    device.submit(request(0, Op::Read, 0, PIECE)).unwrap();
    assert_eq!(reap_all(&mut device, 1).len(), 1);
}
