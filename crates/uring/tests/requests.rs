//! Reads, writes, trims and flushes on a file.

mod scratch;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;

use scratch::{Scratch, reap_all, request, run, writable};
use ssdlab_device::{Device, DeviceError, IoError, Op, Request, Wait};
use ssdlab_time::{Nanos, Random};
use ssdlab_uring::OpenOptions;

const BLOCK: u32 = 4096;

#[test]
fn every_submitted_request_completes_once_for_any_id() {
    let Some(file) = Scratch::zeros(1 << 20) else { return };
    let mut device = file.open(&writable(32));
    let mut random = Random::new(5, "tags");
    let (mut submitted, mut done) = (Vec::new(), Vec::new());
    for count in 0..3000 {
        // Waiting for one at a time releases the slots in any order.
        if submitted.len() - done.len() == 32 {
            device.reap(Wait::One, &mut done).unwrap();
        }
        let (id, blocks) = (random.next_u64(), 1 + random.below(16));
        let offset = random.below(256 - blocks) * u64::from(BLOCK);
        let op = if count % 3 == 0 { Op::Write } else { Op::Read };
        device.submit(request(id, op, offset, blocks as u32 * BLOCK)).unwrap();
        submitted.push(id);
    }
    done.extend(reap_all(&mut device, submitted.len() - done.len()));
    assert!(done.iter().all(|c| c.outcome == Ok(()) && c.submitted < c.completed));
    assert!(done.is_sorted_by_key(|c| c.completed));
    let mut returned: Vec<u64> = done.iter().map(|c| c.id).collect();
    returned.sort_unstable();
    submitted.sort_unstable();
    assert_eq!(returned, submitted);
    device.reap(Wait::One, &mut done).unwrap();
    assert_eq!(done.len(), submitted.len());
}

/// Writes the whole file twice, with reads in between, and returns its content after each pass.
fn write_twice(registered_buffers: bool) -> Option<[Vec<u8>; 2]> {
    let file = Scratch::zeros(1 << 20)?;
    let options = OpenOptions { registered_buffers: Some(registered_buffers), ..writable(8) };
    let mut device = file.open_locked(&options)?;
    Some(std::array::from_fn(|_| {
        for block in 0..256 {
            let offset = block * u64::from(BLOCK);
            assert_eq!(run(&mut device, request(1, Op::Write, offset, BLOCK)).outcome, Ok(()));
            assert_eq!(run(&mut device, request(2, Op::Read, offset, BLOCK)).outcome, Ok(()));
        }
        file.bytes()
    }))
}

#[test]
fn written_content_is_random_and_never_repeats() {
    for registered in [false, true] {
        let Some(passes) = write_twice(registered) else { return };
        let mut words = BTreeSet::new();
        for block in passes.iter().flat_map(|pass| pass.chunks(BLOCK as usize)) {
            let distinct: BTreeSet<u8> = block.iter().copied().collect();
            assert!(distinct.len() > 240, "a block has only {} byte values", distinct.len());
            for word in block.chunks(8) {
                assert!(words.insert(word.to_vec()), "eight bytes were written twice");
            }
        }
    }
}

#[test]
fn two_seeds_write_different_content_and_one_seed_the_same() {
    let write = |seed| {
        let file = Scratch::zeros(1 << 16)?;
        let mut device = file.open(&OpenOptions { seed, ..writable(1) });
        assert_eq!(run(&mut device, request(0, Op::Write, 0, 1 << 16)).outcome, Ok(()));
        Some(file.bytes())
    };
    let Some(first) = write(1) else { return };
    assert_eq!(Some(&first), write(1).as_ref());
    assert_ne!(Some(&first), write(2).as_ref());
}

#[test]
fn a_write_changes_its_own_range_and_no_other() {
    let Some(file) = Scratch::zeros(1 << 18) else { return };
    let mut device = file.open(&writable(4));
    assert_eq!(run(&mut device, request(0, Op::Write, 1 << 16, 1 << 16)).outcome, Ok(()));
    let bytes = file.bytes();
    let (before, rest) = bytes.split_at(1 << 16);
    let (written, after) = rest.split_at(1 << 16);
    assert!(before.iter().chain(after).all(|&byte| byte == 0));
    assert!(written.chunks(512).all(|sector| sector.iter().any(|&byte| byte != 0)));
}

#[test]
fn a_trimmed_range_reads_as_zeros_and_the_file_keeps_its_length() {
    let Some(file) = Scratch::zeros(1 << 18) else { return };
    let mut device = file.open(&writable(4));
    for piece in 0..4 {
        run(&mut device, request(0, Op::Write, piece << 16, 1 << 16));
    }
    let before = file.bytes();
    // Longer than request_bytes_max: a trim needs no buffer.
    assert_eq!(run(&mut device, request(0, Op::Trim, 1 << 16, 3 << 16)).outcome, Ok(()));
    let after = file.bytes();
    assert_eq!(after.len(), before.len());
    assert_eq!(after[..1 << 16], before[..1 << 16]);
    assert!(after[1 << 16..].iter().all(|&byte| byte == 0));
}

/// Dirty pages of a file in the page cache, by `cachestat` (Linux 6.5).
fn dirty_pages(file: &File) -> Option<u64> {
    let (range, mut pages) = ([0_u64; 2], [0_u64; 5]);
    // SAFETY: the kernel reads two and writes five 64-bit numbers, for which the arrays have room.
    let result =
        unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), pages.as_mut_ptr(), 0_u32) };
    if result != 0 {
        println!("skipped: no cachestat: {}", std::io::Error::last_os_error());
        return None;
    }
    Some(pages[1])
}

#[test]
fn a_flush_leaves_no_dirty_pages() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    // Buffered, so that there are dirty pages.
    let mut device = file.open(&OpenOptions { direct: false, ..writable(4) });
    let seen = File::open(&file.path).unwrap();
    // Another program may call sync at the same time.
    for _ in 0..10 {
        assert_eq!(run(&mut device, request(0, Op::Write, 0, 1 << 16)).outcome, Ok(()));
        let Some(before) = dirty_pages(&seen) else { return };
        assert_eq!(run(&mut device, Request::flush(7)).outcome, Ok(()));
        assert_eq!(dirty_pages(&seen), Some(0));
        if before > 0 {
            return;
        }
    }
    panic!("there were no dirty pages before the flush");
}

#[test]
fn with_nothing_in_flight_a_wait_lasts_until_its_time_and_other_waits_return_at_once() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device = file.open(&OpenOptions::default());
    let mut done = Vec::new();
    for wait in [Wait::Poll, Wait::One, Wait::Until(Nanos::ZERO)] {
        device.reap(wait, &mut done).unwrap();
    }
    let end = device.now() + Nanos::from_millis(20);
    device.reap(Wait::Until(end), &mut done).unwrap();
    assert!(device.now() >= end);
    assert!(done.is_empty());
}

#[test]
fn a_wait_until_a_late_time_ends_with_the_first_completion() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device = file.open(&OpenOptions::default());
    for far in [Nanos::from_secs(100_000), Nanos::MAX] {
        device.submit(request(3, Op::Read, 0, BLOCK)).unwrap();
        let mut done = Vec::new();
        device.reap(Wait::Until(far), &mut done).unwrap();
        assert_eq!(done.len(), 1);
    }
}

#[test]
fn polling_returns_every_completion() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device = file.open(&writable(8));
    for id in 0..8 {
        device.submit(request(id, Op::Write, id * u64::from(BLOCK), BLOCK)).unwrap();
    }
    let mut done = Vec::new();
    while done.len() < 8 {
        device.reap(Wait::Poll, &mut done).unwrap();
    }
    assert_eq!(done.iter().map(|c| c.id).collect::<BTreeSet<_>>().len(), 8);
}

#[test]
fn a_request_out_of_range_or_part_of_a_sector_is_refused_and_takes_no_slot() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device = file.open(&writable(1));
    let beyond = request(0, Op::Read, 1 << 16, BLOCK);
    assert!(matches!(device.submit(beyond), Err(DeviceError::OutOfRange { .. })));
    let nothing = request(0, Op::Write, 0, 0);
    assert!(matches!(device.submit(nothing), Err(DeviceError::Misaligned { .. })));
    assert_eq!(run(&mut device, request(0, Op::Read, 0, BLOCK)).outcome, Ok(()));
}

#[test]
fn a_read_only_device_refuses_to_write_and_trim_but_flushes() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device = file.open(&OpenOptions { queue_depth: 1, ..Default::default() });
    for op in [Op::Write, Op::Trim] {
        let refused = device.submit(request(0, op, 0, BLOCK));
        assert!(matches!(refused, Err(DeviceError::Unsupported { op: named }) if named == op));
    }
    assert_eq!(run(&mut device, Request::flush(1)).outcome, Ok(()));
}

#[test]
fn reads_beyond_the_end_of_a_truncated_file_fail() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    let mut device = file.open(&writable(4));
    File::options().write(true).open(&file.path).unwrap().set_len(1 << 15).unwrap();
    let eio = Err(IoError { errno: libc::EIO });
    assert_eq!(run(&mut device, request(0, Op::Read, 0, 1 << 16)).outcome, eio);
    assert_eq!(run(&mut device, request(0, Op::Read, 1 << 15, BLOCK)).outcome, eio);
    assert_eq!(run(&mut device, request(0, Op::Read, 0, 1 << 15)).outcome, Ok(()));
}

#[test]
#[should_panic(expected = "at most queue_depth requests are in flight")]
fn too_many_requests_panic() {
    let Some(file) = Scratch::zeros(1 << 16) else {
        panic!("skipped: at most queue_depth requests are in flight");
    };
    let mut device = file.open(&writable(2));
    for id in 0..3 {
        device.submit(request(id, Op::Read, 0, BLOCK)).unwrap();
    }
}

#[test]
#[should_panic(expected = "on a device opened for")]
fn a_request_larger_than_its_buffer_panics() {
    let Some(file) = Scratch::zeros(1 << 18) else { panic!("skipped: on a device opened for") };
    let mut device = file.open(&writable(2));
    device.submit(request(0, Op::Read, 0, 1 << 17)).unwrap();
}
