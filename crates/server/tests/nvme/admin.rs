//! Admin commands: what the drive says of itself is so, and what is set holds.

use crate::client::{
    ABORT, COMPARE, DISCOVERY, ENABLE, EVENT, FORMAT, GET_FEATURES, GET_LOG, Host, IDENTIFY,
    KEEP_ALIVE, READ, SANITIZE, SET_FEATURES, Sqe, Target,
};
use ssdlab_testing::{CAPACITY, DriveOptions};

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn feature(number: u32) -> Sqe {
    Sqe::new(GET_FEATURES).namespace(1).word(10, number)
}

fn setting(number: u32, value: u32) -> Sqe {
    Sqe::new(SET_FEATURES).namespace(1).word(10, number).word(11, value)
}

#[test]
fn the_drive_says_what_it_is() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    let drive = admin.identify(1, 0);
    assert_eq!(&drive[24..30], b"a toy ");
    assert_eq!(&drive[4..10], b"SSDLAB");
    assert_eq!(drive[77], 2, "16 KiB are four pages");
    assert_eq!(drive[525] & 1, 1, "its cache is volatile");
    assert_eq!(&drive[768..768 + target.name.len()], target.name.as_bytes());
    assert!(drive[536] & 3 != 0 && short(&drive, 320) > 0 && short(&drive, 514) > 0);
    assert!(long(&drive, 1792) >> 32 >= 1 && long(&drive, 1792) as u32 >= 4);
    let namespace = admin.identify(0, 1);
    assert_eq!((long(&namespace, 0), long(&namespace, 16)), (CAPACITY / 512, 0));
    assert_eq!(namespace[33], 0b1001, "trims read as zeros");
    for preferred in [64, 66, 68, 70] {
        assert_eq!(short(&namespace, preferred), 7, "units of 4 KiB");
    }
    assert_eq!((namespace[130], namespace[134]), (9, 12));
    let protected = Target::new(DriveOptions {
        power_loss_protection: true,
        trims_to_zeros: false,
        ..DriveOptions::default()
    });
    let (mut admin, _io) = protected.host(0);
    assert_eq!(admin.identify(1, 0)[525] & 1, 0);
    assert_eq!(admin.identify(0, 1)[33], 0);
    assert_eq!(admin.ask(feature(6)).code, 0x02, "there is no cache to turn off");
}

#[test]
fn lists_and_names_agree_with_each_other() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    for list in [0x02, 0x07, 0x10] {
        assert_eq!(long(&admin.identify(list, 0), 0), 1, "{list:x}");
        assert_eq!(long(&admin.identify(list, 1), 0), 0, "{list:x}");
    }
    let names = admin.identify(3, 1);
    let id = admin.identify(0, 1)[104..120].to_vec();
    assert_eq!((names[0], names[1], &names[4..20]), (2, 16, &id[..]));
    assert_eq!((names[20], &names[24..40]), (3, &id[..]));
    assert_eq!((names[40], names[41], names[44]), (4, 1, 0));
    assert_eq!(admin.identify(8, 1)[14], 1, "it is ready");
    assert_eq!(short(&admin.identify(0x13, 0), 0), 1);
    for (which, namespace, code) in [(0, 2, 0x0b), (3, 9, 0x0b), (2, u32::MAX, 0x0b), (0x77, 1, 2)]
    {
        let sqe = Sqe::new(IDENTIFY).namespace(namespace).word(10, which);
        assert_eq!(admin.receive(sqe, 4096).code, code, "{which:x} {namespace}");
    }
    let small = Sqe::new(IDENTIFY).word(10, 1);
    assert_eq!(admin.receive(small, 100).code, 0x0f);
}

#[test]
fn used_blocks_follow_writes_and_trims() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut io) = target.host(0);
    io.write(0, &[1; 8192]);
    io.write(100, &[1; 512]);
    assert_eq!(long(&admin.identify(0, 1), 16), 3 * 8);
    let zeroed = Sqe::on(crate::client::WRITE_ZEROES, 0, 8).word(12, 1 << 25);
    assert_eq!(io.ask(zeroed).code, 0);
    assert_eq!(long(&admin.identify(0, 1), 16), 2 * 8);
}

#[test]
fn a_feature_that_is_set_is_told_until_the_controller_is_reset() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    for (number, value, first) in
        [(1, 7, 0), (5, 1 << 16 | 9, 0), (6, 0, 1), (10, 1, 0), (4, 300, 343)]
    {
        assert_eq!(admin.ask(feature(number)).result, first, "{number}");
        assert_eq!(admin.ask(setting(number, value)).code, 0);
        assert_eq!(admin.ask(feature(number)).result, u64::from(value), "{number}");
        assert_eq!(admin.ask(feature(number | 1 << 8)).result, first, "by default");
        assert_eq!(admin.ask(feature(number | 3 << 8)).result & 4, 4, "it can be changed");
        assert_eq!(admin.ask(setting(number | 1 << 31, value)).code, 0x10d, "not for good");
    }
    admin.set_property(0x14, ENABLE - 1);
    assert_eq!(admin.property(0x1c), 0);
    assert_eq!(admin.ask(feature(5)).code, 0x0c);
    admin.set_property(0x14, ENABLE);
    assert_eq!(admin.ask(feature(5)).result, 0);
    assert_eq!(admin.ask(setting(7, 0x0003_0003)).result, 0x0003_0003);
    assert_eq!(admin.ask(setting(7, 0x1000_1000)).result, 0x003f_003f);
    assert_eq!(admin.receive(feature(0x81), 16).data, [7; 16]);
    for (sqe, code) in [(feature(0x77), 2), (feature(0x1d), 2), (setting(0x81, 1), 0x0c)] {
        assert_eq!(admin.ask(sqe).code, code);
    }
    assert_eq!(admin.ask(Sqe::new(KEEP_ALIVE)).code, 0);
    assert_eq!(admin.ask(Sqe::new(0x7e)).code, 1);
}

#[test]
fn logs_are_given_in_parts_and_filled_with_zeros() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    let whole = admin.log(5, 4096);
    assert_eq!(whole[4 * usize::from(FORMAT)] & 3, 3, "a format changes content");
    assert_eq!(whole[1024 + 4 * usize::from(COMPARE)], 1);
    assert_eq!(whole[1024 + 4 * 0x12], 0, "no handles, no management of them");
    let part = Sqe::new(GET_LOG).namespace(u32::MAX).word(10, 5 | 63 << 16).long(12, 512);
    assert_eq!(admin.receive(part, 256).data, whole[512..768]);
    let beyond = Sqe::new(GET_LOG).word(10, 2 | 127 << 16).long(12, 256);
    assert_eq!(admin.receive(beyond, 512).data[256..], [0; 256]);
    for (sqe, code) in [
        (Sqe::new(GET_LOG).word(10, 0x77 | 3 << 16), 0x109),
        (Sqe::new(GET_LOG).word(10, 0x20 | 3 << 16).word(11, 1 << 16), 0x109),
        (Sqe::new(GET_LOG).word(10, 9 | 3 << 16), 0x02),
        (Sqe::new(GET_LOG).word(10, 2 | 3 << 16).long(12, 3), 0x02),
        (Sqe::new(GET_LOG).word(10, 2 | 3 << 16).long(12, 1 << 40), 0x02),
        (Sqe::new(GET_LOG).word(10, 2 | 0xffff << 16).word(11, 0xffff), 0x02),
        (Sqe::new(GET_LOG).word(10, 2 | 255 << 16), 0x0f),
        (Sqe::new(GET_LOG).namespace(4).word(10, 2 | 3 << 16), 0x0b),
    ] {
        assert_eq!(admin.receive(sqe, 512).code, code, "{:?}", &sqe.0[40..56]);
    }
    for (words, code) in [(4096, 0), (4097, 0x02)] {
        let sqe = Sqe::new(GET_LOG).word(10, 2 | (words - 1) << 16);
        assert_eq!(admin.receive(sqe, 4 * words as usize).code, code, "MDTS is 16 KiB");
    }
    let logs = admin.log(0, 1024);
    let there: Vec<usize> = (0..256).filter(|log| logs[4 * log] == 1).collect();
    assert_eq!(there, [0, 1, 2, 3, 4, 5, 9, 0x81, 0xc0]);
}

#[test]
fn what_failed_stands_in_the_log_the_newest_first() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut io) = target.host(0);
    assert_eq!(io.receive(Sqe::on(READ, 1 << 40, 1), 512).code, 0x80);
    assert_eq!(admin.ask(feature(0x77)).code, 2);
    let log = admin.log(1, 4096);
    assert_eq!((long(&log, 0), long(&log, 64), long(&log, 128)), (2, 1, 0));
    assert_eq!((short(&log, 8), short(&log, 64 + 8)), (0, 1), "by queue");
    assert_eq!((short(&log, 12) >> 1 & 0x7ff, short(&log, 76) >> 1 & 0x7ff), (2, 0x80));
    assert_eq!(long(&log, 64 + 16), 1 << 40);
    assert_eq!(long(&admin.log(2, 512), 176), 2);
}

#[test]
fn an_event_is_told_once_until_its_log_is_read() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    assert_eq!(admin.ask(setting(11, 0x1ff)).code, 0);
    let asked: Vec<u16> =
        (0..4).map(|_| admin.submit(Sqe::new(EVENT).data(0, 0x5a), &[])).collect();
    assert_eq!(admin.ask(Sqe::new(EVENT)).code, 0x105, "one too many");
    admin.submit(setting(4, 200).data(0, 0x5a), &[]);
    let answers = [admin.answer(&[]).unwrap(), admin.answer(&[]).unwrap()];
    let event = answers.iter().find(|answer| answer.id == asked[0]).unwrap();
    assert_eq!(event.result, 1 | 1 << 8 | 2 << 16, "it is too hot: see the health log");
    assert_eq!(admin.log(2, 512)[0], 2);
    let abort = Sqe::new(ABORT).word(10, u32::from(asked[1]) << 16);
    admin.submit(abort.data(0, 0x5a), &[]);
    let answers = [admin.answer(&[]).unwrap(), admin.answer(&[]).unwrap()];
    let aborted = answers.iter().find(|answer| answer.id == asked[1]).unwrap();
    assert_eq!(aborted.code, 7);
    assert_eq!(admin.ask(Sqe::new(ABORT).word(10, 99 << 16)).result, 1, "there is none");
}

#[test]
fn an_event_comes_again_when_its_log_was_read_and_it_was_not_to_be_kept() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    assert_eq!(admin.ask(setting(11, 0x1ff)).code, 0);
    let events: Vec<u16> =
        (0..2).map(|_| admin.submit(Sqe::new(EVENT).data(0, 0x5a), &[])).collect();
    // Whatever is answered in between is no event.
    let mut own = |sqe: Sqe, room: usize| {
        let id = admin.submit(sqe.data(room, 0x5a), &[]);
        assert_eq!(admin.answer(&[]).unwrap().id, id);
    };
    own(setting(4, 200), 0);
    assert_eq!(admin.answer(&[]).unwrap().id, events[0], "it is too hot");
    let mut own = |sqe: Sqe, room: usize| {
        let id = admin.submit(sqe.data(room, 0x5a), &[]);
        assert_eq!(admin.answer(&[]).unwrap().id, id);
    };
    own(setting(4, 343), 0);
    own(setting(4, 200), 0);
    own(Sqe::new(KEEP_ALIVE), 0);
    let log = Sqe::new(GET_LOG).namespace(u32::MAX).word(10, 2 | 127 << 16);
    own(log.word(10, 1 << 15), 512);
    own(Sqe::new(KEEP_ALIVE), 0);
    own(log, 512);
    assert_eq!(admin.answer(&[]).unwrap().id, events[1], "it was too hot again");
}

#[test]
fn each_threshold_of_temperature_is_its_own() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    let low = 1 << 20;
    assert_eq!(admin.ask(setting(4, low + 300)).code, 0);
    assert_eq!(admin.ask(feature(4).word(11, low)).result, 300);
    assert_eq!(admin.ask(feature(4)).result, 343);
    assert_eq!(admin.log(2, 512)[0], 0, "it has 308 K");
    assert_eq!(admin.ask(setting(4, low + 308)).code, 0);
    assert_eq!(admin.log(2, 512)[0], 2, "too cold");
    assert_eq!(admin.ask(setting(4, 2 * low + 300)).code, 2);
}

#[test]
fn what_is_no_admin_command_of_this_drive_is_refused() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _io) = target.host(0);
    let identify = Sqe::new(IDENTIFY).namespace(1).word(10, 5);
    for (sqe, code) in [
        (identify.word(11, 2 << 24), 2),
        (Sqe::new(IDENTIFY).word(10, 1).word(0, 1 << 8), 2),
        (Sqe::new(FORMAT).namespace(1).word(10, 1 << 4), 0x10a),
        (Sqe::new(FORMAT).namespace(1).word(10, 1 << 5), 0x10a),
        (Sqe::new(FORMAT).namespace(2), 0x0b),
        (identify, 0),
    ] {
        assert_eq!(admin.receive(sqe, 4096).code, code, "{:?}", &sqe.0[..48]);
    }
}

#[test]
fn a_format_erases_all_and_changes_the_blocks() {
    for trims_to_zeros in [true, false] {
        let target = Target::new(DriveOptions { trims_to_zeros, ..DriveOptions::default() });
        let (mut admin, mut io) = target.host(0);
        io.write(0, &[3; 16384]);
        let format = |number: u32| Sqe::new(FORMAT).namespace(1).word(10, number);
        assert_eq!(admin.ask(format(2)).code, 0x10a);
        assert_eq!(admin.ask(format(1 | 3 << 9)).code, 0x02);
        assert_eq!(admin.ask(format(1 | 1 << 9)).code, 0);
        let namespace = admin.identify(0, 1);
        assert_eq!((long(&namespace, 0), long(&namespace, 16)), (CAPACITY / 4096, 0));
        assert_eq!(namespace[26], 1);
        let read = io.receive(Sqe::on(READ, 0, 4), 16384);
        assert_eq!((read.code, read.data), (0, vec![0; 16384]));
        assert_eq!(io.receive(Sqe::on(READ, CAPACITY / 4096, 1), 4096).code, 0x80);
        assert_eq!(admin.log(4, 4096)[0], 1, "the namespace was changed");
        assert_eq!(admin.log(4, 4096)[0], 0, "which was read");
    }
}

#[test]
fn a_sanitize_erases_all_and_its_log_says_so() {
    let target = Target::new(DriveOptions { trims_to_zeros: false, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    io.write(0, &[3; 512]);
    assert_eq!(short(&admin.log(0x81, 512), 2), 0);
    assert_eq!(admin.ask(Sqe::new(SANITIZE).word(10, 3)).code, 0x02, "no overwriting");
    assert_eq!(admin.ask(Sqe::new(SANITIZE).word(10, 2)).code, 0);
    assert_eq!(io.read(0, 1), [0; 512]);
    let log = admin.log(0x81, 512);
    assert_eq!((short(&log, 0), short(&log, 2), log[4]), (0xffff, 1, 2));
}

#[test]
fn discovery_tells_where_the_drive_is_and_nothing_else() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, number) = Host::admin(target.address, DISCOVERY, 0);
    assert_eq!(admin.identify(1, 0)[111], 2);
    let log = admin.log(0x70, 2048);
    assert_eq!(long(&log, 8), 1);
    assert_eq!(&log[1024..1027], [3, 1, 2]);
    assert_eq!(
        log[1024 + 32..].split(|byte| *byte == b' ').next().unwrap(),
        target.address.port().to_string().as_bytes()
    );
    assert_eq!(&log[1280..1280 + target.name.len()], target.name.as_bytes());
    assert_eq!(admin.receive(Sqe::new(IDENTIFY).namespace(1), 4096).code, 2);
    let mut io = Host::connect(target.address, 0);
    assert_ne!(io.join(DISCOVERY, 1, number, 0).code, 0);
    assert_ne!(io.join(&target.name, 1, number, 0).code, 0);
}
