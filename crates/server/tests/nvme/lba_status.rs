//! The status of blocks: what the drive's map has, told in as many pieces as a host has room for.

use crate::client::{BLOCKS, DATASET, FORMAT, Host, Sqe, Target};
use ssdlab_testing::{CAPACITY, DriveOptions};

const ALL_BLOCKS: u64 = CAPACITY / 512;
const MAPPED: u32 = 0x02;
const FULL: u8 = 1;
const COMPLETE: u8 = 2;

fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// What to ask of `blocks` blocks from `first` on, in so many double words.
fn status(first: u64, blocks: u16, words: u32) -> Sqe {
    let range = u32::from(blocks) | MAPPED << 24;
    Sqe::new(BLOCKS).namespace(1).long(10, first).word(12, words - 1).word(13, range)
}

/// Runs of mapped blocks, and why there are no more of them.
fn mapped(admin: &mut Host, first: u64, blocks: u16, words: u32) -> (Vec<(u64, u64)>, u8) {
    let answer = admin.receive(status(first, blocks, words), 4 * words as usize);
    assert_eq!((answer.code, answer.data.len()), (0, 4 * words as usize));
    let data = answer.data;
    let count = number(&data, 0, 4) as usize;
    let run = |at: usize| (number(&data, at, 8), number(&data, at + 8, 4));
    let runs = (0..count).map(|place| run(8 + 16 * place)).collect();
    assert!(data[8 + 16 * count..].iter().all(|byte| *byte == 0));
    (runs, data[4])
}

/// Three runs: blocks 0 to 15, 80 to 87, and the last eight.
fn written(target: &Target) -> (Host, Host) {
    let (admin, mut io) = target.host(0);
    io.write(0, &[1; 8192]);
    io.write(83, &[1; 512]);
    io.write(ALL_BLOCKS - 8, &[1; 4096]);
    (admin, io)
}

#[test]
fn mapped_blocks_are_told_in_runs_of_whole_units() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut io) = written(&target);
    let whole = vec![(0, 16), (80, 8), (ALL_BLOCKS - 8, 8)];
    assert_eq!(mapped(&mut admin, 0, 0, 64), (whole, COMPLETE));
    let trim = [[0; 4], 8_u32.to_le_bytes(), [0; 4], [0; 4]].concat();
    let sqe = Sqe::new(DATASET).namespace(1).word(11, 4);
    assert_eq!(io.send_with(sqe, &trim).code, 0);
    let left = vec![(8, 8), (80, 8), (ALL_BLOCKS - 8, 8)];
    assert_eq!(mapped(&mut admin, 0, 0, 64), (left, COMPLETE), "some were trimmed");
    assert_eq!(admin.identify(1, 0)[257] >> 1 & 1, 1, "the drive says that it can tell");
}

#[test]
fn a_range_cuts_the_runs_at_its_ends() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = written(&target);
    assert_eq!(mapped(&mut admin, 3, 80, 64), (vec![(3, 13), (80, 3)], COMPLETE));
    assert_eq!(mapped(&mut admin, 15, 1, 64), (vec![(15, 1)], COMPLETE));
    assert_eq!(mapped(&mut admin, 16, 64, 64), (vec![], COMPLETE));
    assert_eq!(mapped(&mut admin, 85, 0, 64), (vec![(85, 3), (ALL_BLOCKS - 8, 8)], COMPLETE));
    assert_eq!(mapped(&mut admin, ALL_BLOCKS - 1, 1, 64).0, [(ALL_BLOCKS - 1, 1)]);
}

#[test]
fn a_list_that_has_no_room_for_more_says_so_and_goes_on_where_it_ended() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = written(&target);
    assert_eq!(mapped(&mut admin, 0, 0, 2), (vec![], FULL), "a header alone");
    assert_eq!(mapped(&mut admin, 0, 0, 9), (vec![(0, 16)], FULL));
    assert_eq!(mapped(&mut admin, 0, 0, 10), (vec![(0, 16), (80, 8)], FULL));
    assert_eq!(mapped(&mut admin, 88, 0, 6), (vec![(ALL_BLOCKS - 8, 8)], COMPLETE));
    assert_eq!(mapped(&mut admin, 0, 32, 6), (vec![(0, 16)], COMPLETE), "none is left out");
    let short = admin.receive(status(0, 0, 1), 4);
    assert_eq!((short.code, short.data), (0, vec![0; 4]), "how many there are");
}

#[test]
fn runs_are_in_blocks_of_the_format() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut io) = target.host(0);
    assert_eq!(admin.ask(Sqe::new(FORMAT).namespace(1).word(10, 1)).code, 0);
    let sqe = Sqe::on(crate::client::WRITE, 5, 2);
    assert_eq!(io.send_with(sqe, &[1; 8192]).code, 0);
    assert_eq!(mapped(&mut admin, 0, 0, 64), (vec![(5, 2)], COMPLETE));
    assert_eq!(mapped(&mut admin, 6, 1, 64), (vec![(6, 1)], COMPLETE));
}

#[test]
fn what_cannot_be_told_of_blocks_is_refused() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    for (sqe, code) in [
        (status(ALL_BLOCKS, 0, 64), 0x80),
        (status(ALL_BLOCKS - 1, 2, 64), 0x80),
        (status(u64::MAX, 1, 64), 0x80),
        (status(0, 0, 65), 0x0f),
        (status(0, 0, 64).word(13, 1 << 24), 0x02),
        (Sqe::new(BLOCKS).word(12, 1).word(13, MAPPED << 24), 0x0b),
    ] {
        assert_eq!(admin.receive(sqe, 256).code, code, "{:?}", &sqe.0[40..56]);
    }
    let long = status(0, 0, 4 << 10 | 1);
    assert_eq!(admin.receive(long, 4 * (4 << 10 | 1)).code, 0x02, "more than MDTS");
    let read_fails = |action: u32| Sqe::new(BLOCKS).namespace(1).word(12, 1).word(13, action << 24);
    for action in [0x10, 0x11] {
        let none = admin.receive(read_fails(action), 8);
        assert_eq!((none.code, none.data), (0, vec![0, 0, 0, 0, COMPLETE, 0, 0, 0]));
    }
}
