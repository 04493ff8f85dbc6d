//! A device may be opened, used and dropped by different threads, one at a time.

mod scratch;

use std::thread;

use scratch::{Scratch, reap_all, request, writable};
use ssdlab_device::{Device, Op};
use ssdlab_uring::UringDevice;

const CHUNK: u32 = 1 << 16;

/// A device with 32 writes in flight, which fill the file.
fn with_writes_in_flight(file: &Scratch) -> UringDevice {
    let mut device = file.open(&writable(32));
    for id in 0..32 {
        device.submit(request(id, Op::Write, id * u64::from(CHUNK), CHUNK)).unwrap();
    }
    device
}

fn all_written(file: &Scratch) -> bool {
    file.bytes().chunks(4096).all(|block| block.iter().any(|&byte| byte != 0))
}

#[test]
fn dropping_a_device_waits_for_requests_in_flight() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    drop(with_writes_in_flight(&file));
    assert!(all_written(&file));
}

#[test]
fn another_thread_can_reap_what_this_one_submitted() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    let mut device = with_writes_in_flight(&file);
    let reaped = thread::spawn(move || reap_all(&mut device, 32).len()).join().unwrap();
    assert_eq!(reaped, 32);
    assert!(all_written(&file));
}

#[test]
fn another_thread_can_drop_a_device_with_requests_in_flight() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    let device = with_writes_in_flight(&file);
    thread::spawn(move || drop(device)).join().unwrap();
    assert!(all_written(&file));
}

#[test]
fn requests_outlive_the_thread_that_submitted_them() {
    let Some(file) = Scratch::zeros(32 << 16) else { return };
    let mut device = thread::scope(|scope| scope.spawn(|| with_writes_in_flight(&file)).join())
        .expect("the thread submits");
    let done = reap_all(&mut device, 32);
    assert!(done.iter().all(|c| c.outcome == Ok(())));
    device.submit(request(0, Op::Read, 0, CHUNK)).unwrap();
    assert_eq!(reap_all(&mut device, 1).len(), 1);
}
