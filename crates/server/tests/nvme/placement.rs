//! Placement hints of both kinds; reclaim unit handle updates, events, enabling and disabling.

use crate::namespaces::{attach, delete, described, host};
use crate::prelude::*;

const PLACEMENT: u32 = 0x1d;
const EVENTS: u32 = 0x1e;
const NOT_FULL: u8 = 0;
const NO_HANDLE: u8 = 3;
const APPENDS: u32 = 1 << 24;
const OVERWRITES: u32 = 1 << 25;

fn target() -> TestServer {
    TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() })
}

/// A write with a placement handle.
fn write(io: &mut Host, handle: u32) -> u16 {
    let entry = Entry::on(WRITE, 0, 1).cdw(12, 2 << 20).cdw(13, handle << 16);
    io.command_out(entry, &[1; 512]).status
}

/// Reclaim Unit Handle Update.
fn update(io: &mut Host, handles: &[u16]) -> u16 {
    let list: Vec<u8> = handles.iter().flat_map(|handle| handle.to_le_bytes()).collect();
    let count = handles.len() as u32 - 1;
    io.command_out(Entry::new(IO_MANAGEMENT_SEND).nsid(1).cdw(10, 1 | count << 16), &list).status
}

/// Enables or disables event types of a handle.
fn note(admin: &mut Host, handle: u32, kinds: &[u8], enable: u32) -> u16 {
    let entry = Entry::new(SET_FEATURES).nsid(1).cdw(10, EVENTS).cdw(12, enable);
    admin.command_out(entry.cdw(11, handle | (kinds.len() as u32) << 16), kinds).status
}

/// Type, placement identifier and reclaim unit handle of each event, the oldest first.
fn events(admin: &mut Host, of_hosts: u32) -> Vec<(u8, u64, u8)> {
    let entry =
        Entry::new(GET_LOG_PAGE).cdw(10, 0x23 | of_hosts << 8 | 1023 << 16).cdw(11, 1 << 16);
    let log = admin.command_in(entry, 4096);
    assert_eq!(log.status, 0);
    let one = |at: usize| {
        // All fields are valid.
        assert_eq!((log.data[at + 1], number(&log.data, at + 12, 4)), (7, 1));
        (log.data[at], number(&log.data, at + 2, 2), log.data[at + 34])
    };
    (1..=number(&log.data, 0, 4) as usize).map(|place| one(64 * place)).collect()
}

/// Creates a namespace of all blocks with the first `handles` handles; 0 means all.
fn make(admin: &mut Host, controller: u16, handles: u8) {
    let list = (0..handles).map(|handle| (512 + 2 * usize::from(handle), handle));
    let more: Vec<_> = list.chain([(392, handles)]).collect();
    let whole = described(CAPACITY / 512, CAPACITY / 512, &more);
    assert_eq!(admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &whole).status, 0);
    assert_eq!(attach(admin, 0, &[controller]), 0);
}

#[test]
fn placement_handles_are_streams_and_an_unknown_one_is_the_first() {
    let target = target();
    let (mut admin, mut io) = target.host(0);
    for handle in [0, 3, 1, 4, 0xffff] {
        assert_eq!(write(&mut io, handle), 0);
    }
    io.write(0, &[1; 512]);
    assert_eq!((target.count("stream 0"), target.count("other streams")), (3, 2));
    let counts = ["writes_of_stream", "writes_plain"].map(|name| target.count(name));
    assert_eq!(counts, [5, 1]);
    let drive = admin.identify(1, 0);
    assert_eq!(number(&drive, 96, 4) >> 19 & 1, 1);
    assert_eq!(admin.identify(0, 1)[102], 1);
    let feature = Entry::new(GET_FEATURES).cdw(10, PLACEMENT).cdw(11, 1);
    assert_eq!(admin.command(feature).result, 1);
    let refused = Entry::new(SET_FEATURES).cdw(10, PLACEMENT).cdw(11, 1).cdw(12, 0);
    assert_eq!(admin.command(refused).status, COMMAND_SEQUENCE_ERROR, "a namespace exists");
}

#[test]
fn the_drive_reports_its_placement_configuration_and_the_room_of_its_handles() {
    let target = target();
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
fn a_namespace_has_the_handles_that_it_was_created_with() {
    let target = target();
    let (mut admin, controller, mut io) = host(&target);
    assert_eq!(delete(&mut admin, 1), 0);
    make(&mut admin, controller, 2);
    assert_eq!((write(&mut io, 1), write(&mut io, 2)), (0, 0));
    assert_eq!((target.count("other streams"), target.count("stream 0")), (1, 1));
    assert_eq!((update(&mut io, &[1]), update(&mut io, &[2])), (0, 0x02));
    let status = Entry::new(0x12).nsid(1).cdw(10, 1).cdw(11, 35);
    assert_eq!(number(&io.command_in(status, 144).data, 14, 2), 2);
    assert_eq!(note(&mut admin, 2, &[NOT_FULL], 1), 0x02);
}

#[test]
fn updated_handles_continue_in_other_reclaim_units() {
    let target = target();
    let (_admin, mut io) = target.host(0);
    assert_eq!(update(&mut io, &[2]), 0);
    assert_eq!(target.count("renewals"), 1);
    assert_eq!(update(&mut io, &[0, 1, 2, 3]), 0);
    assert_eq!(target.count("renewals"), 5);
    for (handles, code) in [(vec![4], 0x02), (vec![0, 4], 0x02), (vec![0; 5], 0x02)] {
        assert_eq!(update(&mut io, &handles), code, "{handles:?}");
    }
    let short = Entry::new(IO_MANAGEMENT_SEND).nsid(1).cdw(10, 1 | 3 << 16);
    assert_eq!(io.command_out(short, &[0; 4]).status, 0x0f);
    assert_eq!(io.command(Entry::new(IO_MANAGEMENT_SEND).nsid(1)).status, 0, "no operation");
    assert_eq!(io.command(Entry::new(IO_MANAGEMENT_SEND).nsid(1).cdw(10, 2)).status, INVALID_FIELD);
    assert_eq!(target.count("renewals"), 5, "an invalid list changes no handle");
}

#[test]
fn enabled_events_are_logged_with_the_oldest_first() {
    let target = target();
    let (mut admin, mut io) = target.host(0);
    assert_eq!((write(&mut io, 9), update(&mut io, &[2])), (0, 0));
    assert_eq!(events(&mut admin, 1), [], "no event is enabled yet");
    assert_eq!(note(&mut admin, 0, &[NOT_FULL, NO_HANDLE], 1), 0);
    assert_eq!(note(&mut admin, 2, &[NOT_FULL], 1), 0);
    assert_eq!((update(&mut io, &[2, 1]), write(&mut io, 3), write(&mut io, 9)), (0, 0, 0));
    let both = [(NOT_FULL, 2, 2), (NO_HANDLE, 9, 0)];
    assert_eq!(events(&mut admin, 1), both, "the reclaim unit of handle 1 was not in use");
    assert_eq!(events(&mut admin, 0), [], "no controller events");
    assert_eq!(note(&mut admin, 0, &[NO_HANDLE], 0), 0);
    assert_eq!((write(&mut io, 9), update(&mut io, &[0])), (0, 0));
    assert_eq!(events(&mut admin, 1)[2..], [(NOT_FULL, 0, 0)]);
    for _ in 0..70 {
        assert_eq!(update(&mut io, &[2]), 0);
    }
    assert_eq!(events(&mut admin, 1), [(NOT_FULL, 2, 2); 63], "the log page is full");
}

#[test]
fn supported_and_enabled_events_can_be_read() {
    let target = target();
    let (mut admin, _io) = target.host(0);
    let request = |handle: u32, count: u32| {
        Entry::new(GET_FEATURES).nsid(1).cdw(10, EVENTS).cdw(11, handle | count << 16)
    };
    assert_eq!(note(&mut admin, 1, &[NO_HANDLE], 1), 0);
    let events = admin.command_in(request(1, 4), 8);
    assert_eq!((events.status, events.data), (0, vec![NOT_FULL, 0, NO_HANDLE, 1, 0, 0, 0, 0]));
    assert_eq!(admin.command_in(request(1, 1), 2).data, [NOT_FULL, 0]);
    assert_eq!(admin.command_in(request(0, 2), 4).data, [NOT_FULL, 0, NO_HANDLE, 0]);
    assert_eq!(admin.command_in(request(0, 0), 0).status, 0);
    // The handle does not exist.
    assert_eq!(admin.command_in(request(4, 1), 2).status, INVALID_FIELD);
    assert_eq!(admin.command_in(request(0, 4), 4).status, 0x0f);
    assert_eq!(note(&mut admin, 4, &[NOT_FULL], 1), 0x02);
    assert_eq!(note(&mut admin, 0, &[0x80], 1), 0x02, "events of moved data are not supported");
    let short = Entry::new(SET_FEATURES).nsid(1).cdw(10, EVENTS).cdw(11, 9 << 16);
    assert_eq!(admin.command_out(short, &[0; 4]).status, 0x0f);
}

#[test]
fn placement_is_enabled_and_disabled_only_without_a_namespace() {
    let target = target();
    let (mut admin, controller, mut io) = host(&target);
    let is_on = Entry::new(GET_FEATURES).cdw(10, PLACEMENT).cdw(11, 1);
    let turn = |on: u32| Entry::new(SET_FEATURES).cdw(10, PLACEMENT).cdw(11, 1).cdw(12, on);
    let again = |admin: &mut Host| make(admin, controller, 0);
    assert_eq!(admin.command(turn(0)).status, COMMAND_SEQUENCE_ERROR, "a namespace exists");
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(admin.command(turn(1 << 8)).status, INVALID_FIELD, "only one configuration exists");
    assert_eq!(admin.command(turn(0)).status, 0);
    assert_eq!(admin.command(is_on).result, 0);
    again(&mut admin);
    assert_eq!(write(&mut io, 1), 0x02);
    assert_eq!(update(&mut io, &[1]), 0x01, "the command is not supported");
    for log in [0x21, 0x22, 0x23] {
        let entry = Entry::new(GET_LOG_PAGE).cdw(10, log | 15 << 16).cdw(11, 1 << 16);
        assert_eq!(admin.command_in(entry, 64).status, 0x29, "{log:x}");
    }
    assert_eq!(note(&mut admin, 0, &[NOT_FULL], 1), 0x29);
    assert_eq!(number(&admin.log(0x20, 96), 24, 2), 4, "the configuration is still reported");
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!((admin.command(turn(1)).status, admin.command(is_on).result), (0, 1));
    again(&mut admin);
    assert_eq!((write(&mut io, 1), update(&mut io, &[1])), (0, 0));
}
