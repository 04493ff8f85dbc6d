//! Placement in both forms, and what the health log counts.

use crate::client::{GET_LOG, READ, Sqe, Target, WRITE};
use ssdlab_testing::{CAPACITY, DriveOptions};

const APPENDS: u32 = 1 << 24;
const OVERWRITES: u32 = 1 << 25;
const MANAGEMENT_RECEIVE: u8 = 0x12;

fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// A write with a handle.
fn placed(handle: u32) -> Sqe {
    Sqe::on(WRITE, 0, 1).word(12, 2 << 20).word(13, handle << 16)
}

#[test]
fn handles_are_streams_and_one_that_there_is_not_is_the_first() {
    let target = Target::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    for handle in [0, 3, 1, 4, 0xffff] {
        assert_eq!(io.send_with(placed(handle), &[1; 512]).code, 0);
    }
    io.write(0, &[1; 512]);
    assert_eq!((target.count("stream 0"), target.count("other streams")), (3, 2));
    let counts = ["writes_of_stream", "writes_plain"].map(|name| target.count(name));
    assert_eq!(counts, [5, 1]);
    let drive = admin.identify(1, 0);
    assert_eq!(number(&drive, 96, 4) >> 19 & 1, 1);
    assert_eq!(admin.identify(0, 1)[102], 1);
    let feature = Sqe::new(crate::client::GET_FEATURES).word(10, 0x1d).word(11, 1);
    assert_eq!(admin.ask(feature).result, 1);
    let refused = Sqe::new(crate::client::SET_FEATURES).word(10, 0x1d).word(11, 1).word(12, 0);
    assert_eq!(admin.ask(refused).code, 0x0c, "there is a namespace");
}

#[test]
fn the_drive_tells_how_it_is_divided_and_what_its_handles_still_take() {
    let target = Target::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    let log = admin.log(0x20, 16 + 80);
    assert_eq!(number(&log, 4, 4), 16 + 80);
    assert_eq!((number(&log, 16, 2), log[18] & 0x90), (80, 0x90));
    assert_eq!((number(&log, 20, 4), number(&log, 24, 2), number(&log, 26, 2)), (1, 4, 3));
    assert_eq!((number(&log, 32, 8), log[80], log[92]), (64 << 10, 1, 1));
    let users = admin.log(0x21, 40);
    assert_eq!((number(&users, 0, 2), users[8], users[32]), (4, 1, 1));
    let status = Sqe::new(MANAGEMENT_RECEIVE).namespace(1).word(10, 1).word(11, 16 * 9 / 4 - 1);
    let status = io.receive(status, 16 * 9);
    assert_eq!(status.code, 0);
    assert_eq!(number(&status.data, 14, 2), 4);
    assert_eq!((number(&status.data, 16 + 96, 2), number(&status.data, 16 + 104, 8)), (3, 32));
    let wrong_group = Sqe::new(GET_LOG).word(10, 0x20 | 3 << 16).word(11, 2 << 16);
    assert_eq!(admin.receive(wrong_group, 16).code, 2);
}

#[test]
fn appends_and_overwrites_of_files_reach_the_drive() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut io) = target.host(0);
    let last = CAPACITY / 512;
    for (words, prior) in [(APPENDS, 7), (APPENDS, last), (OVERWRITES, 0), (OVERWRITES, 9)] {
        let sqe = Sqe::on(WRITE, 8, 1).word(12, words).long(2, prior);
        assert_eq!(io.send_with(sqe, &[1; 512]).code, 0);
    }
    let counts = ["appends", "overwrites", "unhinted"].map(|name| target.count(name));
    assert_eq!(counts, [1, 2, 1], "a block beyond the end is no hint");
    let counts = ["writes_append", "writes_overwrite", "writes_plain"];
    assert_eq!(counts.map(|name| target.count(name)), [1, 2, 1]);
}

#[test]
fn data_units_are_begun_thousands_of_sectors() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut io) = target.host(0);
    assert_eq!(number(&admin.log(2, 512), 32, 8), 0);
    io.read(0, 1);
    assert_eq!(number(&admin.log(2, 512), 32, 8), 1);
    for _ in 0..125 {
        io.read(0, 16);
    }
    assert_eq!(number(&admin.log(2, 512), 32, 8), 3);
}

#[test]
fn the_health_log_counts_commands_cuts_and_failures() {
    let target = Target::new(DriveOptions { endurance_writes: 3, ..DriveOptions::default() });
    let (_admin, mut io) = target.host(0);
    for _ in 0..3 {
        io.write(0, &[1; 4096]);
    }
    assert_eq!(io.send_with(Sqe::on(WRITE, 0, 1), &[2; 512]).code, 0x182);
    for _ in 0..125 {
        io.read(0, 16);
    }
    assert_eq!(io.receive(Sqe::on(READ, u64::MAX, 1), 512).code, 0x80);
    target.server.power_cut(true).unwrap();
    let (mut admin, _io) = target.host(0);
    let log = admin.log(2, 512);
    assert_eq!(log[0], 1 << 3, "it takes no more writes");
    assert_eq!(number(&log, 32, 8), 2, "125 x 8 KiB are two thousand sectors");
    assert_eq!((number(&log, 64, 8), number(&log, 80, 8)), (125, 3));
    assert_eq!((number(&log, 112, 8), number(&log, 144, 8)), (2, 1), "cycles, and no warning");
    assert_eq!((number(&log, 160, 8), number(&log, 176, 8)), (0, 2));
    assert_eq!(number(&log, 1, 2), 308);
    let ocp = admin.log(0xc0, 512);
    assert_eq!((ocp[496], ocp[511], number(&ocp, 152, 8)), (0xc5, 0xaf, 8));
}
