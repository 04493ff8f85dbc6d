//! Placement hints of both kinds, and the health log.

use crate::prelude::*;

const APPENDS: u32 = 1 << 24;
const OVERWRITES: u32 = 1 << 25;

/// A write with a placement handle.
fn placed(handle: u32) -> Entry {
    Entry::on(WRITE, 0, 1).cdw(12, 2 << 20).cdw(13, handle << 16)
}

#[test]
fn placement_handles_are_streams_and_an_unknown_one_is_the_first() {
    let target = TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    for handle in [0, 3, 1, 4, 0xffff] {
        assert_eq!(io.command_out(placed(handle), &[1; 512]).status, 0);
    }
    io.write(0, &[1; 512]);
    assert_eq!((target.count("stream 0"), target.count("other streams")), (3, 2));
    let counts = ["writes_of_stream", "writes_plain"].map(|name| target.count(name));
    assert_eq!(counts, [5, 1]);
    let drive = admin.identify(1, 0);
    assert_eq!(number(&drive, 96, 4) >> 19 & 1, 1);
    assert_eq!(admin.identify(0, 1)[102], 1);
    let feature = Entry::new(GET_FEATURES).cdw(10, 0x1d).cdw(11, 1);
    assert_eq!(admin.command(feature).result, 1);
    let refused = Entry::new(SET_FEATURES).cdw(10, 0x1d).cdw(11, 1).cdw(12, 0);
    assert_eq!(admin.command(refused).status, COMMAND_SEQUENCE_ERROR, "a namespace exists");
}

#[test]
fn the_drive_reports_its_placement_configuration_and_the_room_of_its_handles() {
    let target = TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    let log = admin.log(0x20, 16 + 80);
    assert_eq!(number(&log, 4, 4), 16 + 80);
    assert_eq!((number(&log, 16, 2), log[18] & 0x90), (80, 0x90));
    assert_eq!((number(&log, 20, 4), number(&log, 24, 2), number(&log, 26, 2)), (1, 4, 3));
    assert_eq!((number(&log, 32, 8), log[80], log[92]), (64 << 10, 1, 1));
    let users = admin.log(0x21, 40);
    assert_eq!((number(&users, 0, 2), users[8], users[32]), (4, 1, 1));
    let status = Entry::new(IO_MANAGEMENT_RECEIVE).nsid(1).cdw(10, 1).cdw(11, 16 * 9 / 4 - 1);
    let status = io.command_in(status, 16 * 9);
    assert_eq!(status.status, 0);
    assert_eq!(number(&status.data, 14, 2), 4);
    assert_eq!((number(&status.data, 16 + 96, 2), number(&status.data, 16 + 104, 8)), (3, 32));
    let wrong_group = Entry::new(GET_LOG_PAGE).cdw(10, 0x20 | 3 << 16).cdw(11, 2 << 16);
    assert_eq!(admin.command_in(wrong_group, 16).status, INVALID_FIELD);
}

#[test]
fn appends_and_overwrites_of_files_reach_the_drive() {
    let (target, _admin, mut io) = TestServer::with_host();
    let last = CAPACITY / 512;
    for (words, prior) in [(APPENDS, 7), (APPENDS, last), (OVERWRITES, 0), (OVERWRITES, 9)] {
        let entry = Entry::on(WRITE, 8, 1).cdw(12, words).cdw64(2, prior);
        assert_eq!(io.command_out(entry, &[1; 512]).status, 0);
    }
    let counts = ["appends", "overwrites", "unhinted"].map(|name| target.count(name));
    assert_eq!(counts, [1, 2, 1], "a block beyond the end is ignored as a hint");
    let counts = ["writes_append", "writes_overwrite", "writes_plain"];
    assert_eq!(counts.map(|name| target.count(name)), [1, 2, 1]);
}

#[test]
fn data_units_are_thousands_of_sectors_rounded_up() {
    let (_target, mut admin, mut io) = TestServer::with_host();
    assert_eq!(number(&admin.log(2, 512), 32, 8), 0);
    io.read(0, 1);
    assert_eq!(number(&admin.log(2, 512), 32, 8), 1);
    for _ in 0..125 {
        io.read(0, 16);
    }
    assert_eq!(number(&admin.log(2, 512), 32, 8), 3);
}

#[test]
fn the_health_log_counts_commands_power_cuts_and_errors() {
    let target = TestServer::new(DriveOptions { endurance_writes: 3, ..DriveOptions::default() });
    let (_admin, mut io) = target.host(0);
    for _ in 0..3 {
        io.write(0, &[1; 4096]);
    }
    assert_eq!(io.command_out(Entry::on(WRITE, 0, 1), &[2; 512]).status, 0x182);
    for _ in 0..125 {
        io.read(0, 16);
    }
    assert_eq!(io.command_in(Entry::on(READ, u64::MAX, 1), 512).status, 0x80);
    target.server.power_cut(true).unwrap();
    let (mut admin, _io) = target.host(0);
    let log = admin.log(2, 512);
    assert_eq!(log[0], 1 << 3, "the drive is read-only");
    assert_eq!(number(&log, 32, 8), 2, "125 x 8 KiB are two thousand sectors");
    assert_eq!((number(&log, 64, 8), number(&log, 80, 8)), (125, 3));
    assert_eq!((number(&log, 112, 8), number(&log, 144, 8)), (2, 1), "cycles, and no warning");
    assert_eq!((number(&log, 160, 8), number(&log, 176, 8)), (0, 2));
    assert_eq!(number(&log, 1, 2), 308);
    let ocp = admin.log(0xc0, 512);
    assert_eq!((ocp[496], ocp[511], number(&ocp, 152, 8)), (0xc5, 0xaf, 8));
}
