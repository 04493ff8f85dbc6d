//! Other access modes: batches, pread and pwrite, durable, buffered, several rings; and several
//! threads, which may open, use and drop a device one at a time.

mod scratch;

use std::thread;

use scratch::{Scratch, reap_all, request, run, writable};
use ssdlab_device::{Device, Op, Request, Wait};
use ssdlab_time::Nanos;
use ssdlab_uring::{Flush, NullDevice, OpenOptions, SyncDevice, UringDevice, nop_rate};

const BLOCK: u32 = 4096;
const CHUNK: u32 = 1 << 16;

#[test]
fn a_batch_is_submitted_by_reap_and_completes() {
    let Some(file) = Scratch::zeros(1 << 18) else { return };
    for registered_buffers in [false, true] {
        let options = OpenOptions {
            batch: true,
            registered_buffers: Some(registered_buffers),
            ..writable(32)
        };
        let Some(mut device) = file.open_locked(&options) else { return };
        for id in 0..32 {
            device.submit(request(id, Op::Write, id * u64::from(BLOCK), BLOCK)).unwrap();
        }
        assert_eq!(reap_all(&mut device, 32).len(), 32);
    }
    assert!(file.bytes()[..32 << 12].chunks(512).all(|part| part.iter().any(|byte| *byte != 0)));
}

#[test]
fn durable_writes_and_both_flushes_succeed_in_every_mode() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    for flush in [Flush::Fsync, Flush::Fdatasync] {
        for (direct, dsync, registered_buffers) in
            [(true, false, false), (false, false, true), (true, true, true)]
        {
            let registered_buffers = Some(registered_buffers);
            let options = OpenOptions { flush, direct, dsync, registered_buffers, ..writable(2) };
            let write = Request { durable: true, ..request(1, Op::Write, 0, BLOCK) };
            let Some(mut ring) = file.open_locked(&options) else { return };
            assert_eq!(run(&mut ring, write).outcome, Ok(()));
            assert_eq!(run(&mut ring, Request::flush(2)).outcome, Ok(()));
            let mut plain = SyncDevice::open(&file.path, &options).unwrap();
            for request in [write, Request::flush(2)] {
                let done = run(&mut plain, request);
                assert_eq!((done.id, done.outcome), (request.id, Ok(())));
            }
        }
    }
}

#[test]
fn a_single_issuer_may_change_threads_when_nothing_is_in_flight() {
    let Some(file) = Scratch::zeros(1 << 18) else { return };
    for registered_buffers in [false, true] {
        let registered_buffers = Some(registered_buffers);
        // Small, because the ring of the other thread locks the same amount of memory again.
        let request_bytes_max = BLOCK as usize;
        let small = OpenOptions { request_bytes_max, ..writable(32) };
        let options = OpenOptions { single_issuer: true, registered_buffers, ..small };
        let Some(mut device) = file.open_locked(&options) else { return };
        let work = |device: &mut UringDevice| {
            for id in 0..32 {
                device.submit(request(id, Op::Write, id * u64::from(BLOCK), BLOCK)).unwrap();
            }
            let mut done = Vec::new();
            while done.len() < 16 {
                device.reap(Wait::Poll, &mut done).unwrap();
            }
            done.extend(reap_all(device, 32 - done.len()));
            assert!(done.iter().all(|completion| completion.outcome == Ok(())));
        };
        work(&mut device);
        thread::scope(|scope| scope.spawn(|| work(&mut device)).join()).unwrap();
        work(&mut device);
    }
}

#[test]
fn a_sibling_has_the_same_clock_and_writes_other_content() {
    let Some(file) = Scratch::zeros(1 << 17) else { return };
    let mut first = file.open(&writable(4));
    let mut second = first.sibling(&OpenOptions { seed: 1, ..writable(4) }).unwrap();
    let (before, between, after) = (first.now(), second.now(), first.now());
    assert!(before <= between && between <= after);
    run(&mut first, request(0, Op::Write, 0, 1 << 16));
    run(&mut second, request(0, Op::Write, 1 << 16, 1 << 16));
    let bytes = file.bytes();
    assert_ne!(bytes[..1 << 16], bytes[1 << 16..]);
    assert!(bytes[1 << 16..].chunks(512).all(|part| part.iter().any(|byte| *byte != 0)));
}

#[test]
fn a_wait_may_end_before_the_next_completion() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device: UringDevice = file.open(&writable(4));
    let mut done = Vec::new();
    device.submit(request(0, Op::Read, 0, BLOCK)).unwrap();
    device.reap(Wait::Until(device.now()), &mut done).unwrap();
    let deadline = device.now() + Nanos::from_secs(60);
    while done.is_empty() && device.now() < deadline {
        let end = device.now() + Nanos::from_millis(5);
        device.reap(Wait::Until(end), &mut done).unwrap();
        let early = done.is_empty() && device.now() < end;
        assert!(!early, "reap returned early without a completion");
    }
    assert_eq!(done.len(), 1, "the request completes within a minute");
}

#[test]
fn a_null_device_completes_requests_in_order() {
    let mut device = NullDevice::new(3);
    for id in 0..3 {
        device.submit(request(id, Op::Read, id << 20, BLOCK)).unwrap();
    }
    let done = reap_all(&mut device, 3);
    assert!(done.iter().map(|c| c.id).eq(0..3));
    assert!(done.is_sorted_by_key(|c| c.completed));
}

#[test]
fn the_rate_of_nops_is_measured() {
    let rate = nop_rate(1000).unwrap();
    assert!(rate > 0.0 && rate.is_finite());
}

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
