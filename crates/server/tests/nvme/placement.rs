//! Flexible data placement where hosts change it: updates of handles, events, on and off.

use crate::client::{
    ATTACH, GET_FEATURES, GET_LOG, Host, MANAGE, SET_FEATURES, Sqe, Target, WRITE,
};
use ssdlab_testing::{CAPACITY, DriveOptions};

const MANAGEMENT_SEND: u8 = 0x1d;
const PLACEMENT: u32 = 0x1d;
const EVENTS: u32 = 0x1e;
const NOT_FULL: u8 = 0;
const NO_HANDLE: u8 = 3;

fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn target() -> Target {
    Target::new(DriveOptions { streams: 4, ..DriveOptions::default() })
}

/// A write with a handle.
fn write(io: &mut Host, handle: u32) -> u16 {
    let sqe = Sqe::on(WRITE, 0, 1).word(12, 2 << 20).word(13, handle << 16);
    io.send_with(sqe, &[1; 512]).code
}

/// Gives handles new reclaim units.
fn update(io: &mut Host, handles: &[u16]) -> u16 {
    let list: Vec<u8> = handles.iter().flat_map(|handle| handle.to_le_bytes()).collect();
    let count = handles.len() as u32 - 1;
    io.send_with(Sqe::new(MANAGEMENT_SEND).namespace(1).word(10, 1 | count << 16), &list).code
}

/// Has kinds of events of a handle noted, or no longer.
fn note(admin: &mut Host, handle: u32, kinds: &[u8], enable: u32) -> u16 {
    let sqe = Sqe::new(SET_FEATURES).namespace(1).word(10, EVENTS).word(12, enable);
    admin.send_with(sqe.word(11, handle | (kinds.len() as u32) << 16), kinds).code
}

/// Kind, handle as named, and handle of each event, the oldest first.
fn events(admin: &mut Host, of_hosts: u32) -> Vec<(u8, u64, u8)> {
    let sqe = Sqe::new(GET_LOG).word(10, 0x23 | of_hosts << 8 | 1023 << 16).word(11, 1 << 16);
    let log = admin.receive(sqe, 4096);
    assert_eq!(log.code, 0);
    let one = |at: usize| {
        assert_eq!((log.data[at + 1], number(&log.data, at + 12, 4)), (7, 1), "all is valid");
        (log.data[at], number(&log.data, at + 2, 2), log.data[at + 34])
    };
    (1..=number(&log.data, 0, 4) as usize).map(|place| one(64 * place)).collect()
}

/// Makes a namespace of all blocks, with the first so many handles; 0 stands for all.
fn make(admin: &mut Host, controller: u16, handles: u8) {
    let mut whole = vec![0; 4096];
    whole[..8].copy_from_slice(&(CAPACITY / 512).to_le_bytes());
    whole.copy_within(..8, 8);
    whole[392] = handles;
    for handle in 0..handles {
        whole[512 + 2 * usize::from(handle)] = handle;
    }
    assert_eq!(admin.send_with(Sqe::new(MANAGE), &whole).code, 0);
    let mut list = vec![0; 4096];
    (list[0], list[2]) = (1, controller as u8);
    assert_eq!(admin.send_with(Sqe::new(ATTACH).namespace(1), &list).code, 0);
}

#[test]
fn a_namespace_has_no_more_handles_than_it_was_created_with() {
    let target = target();
    let (mut admin, controller) = Host::admin(target.address, &target.name, 0);
    let mut io = Host::io(target.address, &target.name, 1, controller, 0);
    assert_eq!(admin.ask(Sqe::new(MANAGE).namespace(1).word(10, 1)).code, 0);
    make(&mut admin, controller, 2);
    assert_eq!((write(&mut io, 1), write(&mut io, 2)), (0, 0));
    assert_eq!((target.count("other streams"), target.count("stream 0")), (1, 1));
    assert_eq!((update(&mut io, &[1]), update(&mut io, &[2])), (0, 0x02));
    let status = Sqe::new(0x12).namespace(1).word(10, 1).word(11, 35);
    assert_eq!(number(&io.receive(status, 144).data, 14, 2), 2);
    assert_eq!(note(&mut admin, 2, &[NOT_FULL], 1), 0x02);
}

#[test]
fn handles_that_are_updated_go_on_in_other_reclaim_units() {
    let target = target();
    let (_admin, mut io) = target.host(0);
    assert_eq!(update(&mut io, &[2]), 0);
    assert_eq!(target.count("renewals"), 1);
    assert_eq!(update(&mut io, &[0, 1, 2, 3]), 0);
    assert_eq!(target.count("renewals"), 5);
    for (handles, code) in [(vec![4], 0x02), (vec![0, 4], 0x02), (vec![0; 5], 0x02)] {
        assert_eq!(update(&mut io, &handles), code, "{handles:?}");
    }
    let short = Sqe::new(MANAGEMENT_SEND).namespace(1).word(10, 1 | 3 << 16);
    assert_eq!(io.send_with(short, &[0; 4]).code, 0x0f);
    assert_eq!(io.ask(Sqe::new(MANAGEMENT_SEND).namespace(1)).code, 0, "it asks for nothing");
    assert_eq!(io.ask(Sqe::new(MANAGEMENT_SEND).namespace(1).word(10, 2)).code, 0x02);
    assert_eq!(target.count("renewals"), 5, "none of a list that is wrong");
}

#[test]
fn events_are_noted_where_a_host_wants_them_and_the_oldest_comes_first() {
    let target = target();
    let (mut admin, mut io) = target.host(0);
    assert_eq!((write(&mut io, 9), update(&mut io, &[2])), (0, 0));
    assert_eq!(events(&mut admin, 1), [], "nobody wants them yet");
    assert_eq!(note(&mut admin, 0, &[NOT_FULL, NO_HANDLE], 1), 0);
    assert_eq!(note(&mut admin, 2, &[NOT_FULL], 1), 0);
    assert_eq!((update(&mut io, &[2, 1]), write(&mut io, 3), write(&mut io, 9)), (0, 0, 0));
    let both = [(NOT_FULL, 2, 2), (NO_HANDLE, 9, 0)];
    assert_eq!(events(&mut admin, 1), both, "the unit of handle 1 was not in use");
    assert_eq!(events(&mut admin, 0), [], "the drive did nothing by itself");
    assert_eq!(note(&mut admin, 0, &[NO_HANDLE], 0), 0);
    assert_eq!((write(&mut io, 9), update(&mut io, &[0])), (0, 0));
    assert_eq!(events(&mut admin, 1)[2..], [(NOT_FULL, 0, 0)]);
    for _ in 0..70 {
        assert_eq!(update(&mut io, &[2]), 0);
    }
    assert_eq!(events(&mut admin, 1), [(NOT_FULL, 2, 2); 63], "a log has no more");
}

#[test]
fn which_events_there_are_and_are_noted_can_be_asked() {
    let target = target();
    let (mut admin, _io) = target.host(0);
    let asked = |handle: u32, count: u32| {
        Sqe::new(GET_FEATURES).namespace(1).word(10, EVENTS).word(11, handle | count << 16)
    };
    assert_eq!(note(&mut admin, 1, &[NO_HANDLE], 1), 0);
    let told = admin.receive(asked(1, 4), 8);
    assert_eq!((told.code, told.data), (0, vec![NOT_FULL, 0, NO_HANDLE, 1, 0, 0, 0, 0]));
    assert_eq!(admin.receive(asked(1, 1), 2).data, [NOT_FULL, 0]);
    assert_eq!(admin.receive(asked(0, 2), 4).data, [NOT_FULL, 0, NO_HANDLE, 0]);
    assert_eq!(admin.receive(asked(0, 0), 0).code, 0);
    assert_eq!(admin.receive(asked(4, 1), 2).code, 0x02, "there is no such handle");
    assert_eq!(admin.receive(asked(0, 4), 4).code, 0x0f);
    assert_eq!(note(&mut admin, 4, &[NOT_FULL], 1), 0x02);
    assert_eq!(note(&mut admin, 0, &[0x80], 1), 0x02, "moves are not noted");
    let short = Sqe::new(SET_FEATURES).namespace(1).word(10, EVENTS).word(11, 9 << 16);
    assert_eq!(admin.send_with(short, &[0; 4]).code, 0x0f);
}

#[test]
fn placement_is_turned_off_and_on_where_no_namespace_is() {
    let target = target();
    let (mut admin, controller) = Host::admin(target.address, &target.name, 0);
    let mut io = Host::io(target.address, &target.name, 1, controller, 0);
    let is_on = Sqe::new(GET_FEATURES).word(10, PLACEMENT).word(11, 1);
    let turn = |on: u32| Sqe::new(SET_FEATURES).word(10, PLACEMENT).word(11, 1).word(12, on);
    let again = |admin: &mut Host| make(admin, controller, 0);
    let delete = Sqe::new(MANAGE).namespace(1).word(10, 1);
    assert_eq!(admin.ask(turn(0)).code, 0x0c, "there is a namespace");
    assert_eq!(admin.ask(delete).code, 0);
    assert_eq!(admin.ask(turn(1 << 8)).code, 0x02, "there is one configuration");
    assert_eq!(admin.ask(turn(0)).code, 0);
    assert_eq!(admin.ask(is_on).result, 0);
    again(&mut admin);
    assert_eq!(write(&mut io, 1), 0x02);
    assert_eq!(update(&mut io, &[1]), 0x01, "there is no such command");
    for log in [0x21, 0x22, 0x23] {
        let sqe = Sqe::new(GET_LOG).word(10, log | 15 << 16).word(11, 1 << 16);
        assert_eq!(admin.receive(sqe, 64).code, 0x29, "{log:x}");
    }
    assert_eq!(note(&mut admin, 0, &[NOT_FULL], 1), 0x29);
    assert_eq!(number(&admin.log(0x20, 96), 24, 2), 4, "what it could do is told all the same");
    assert_eq!(admin.ask(delete).code, 0);
    assert_eq!((admin.ask(turn(1)).code, admin.ask(is_on).result), (0, 1));
    again(&mut admin);
    assert_eq!((write(&mut io, 1), update(&mut io, &[1])), (0, 0));
}
