//! Admin commands: Identify, features, log pages, events, format and sanitize.

use crate::prelude::*;

fn feature(number: u32) -> Entry {
    Entry::new(GET_FEATURES).nsid(1).cdw(10, number)
}

fn setting(number: u32, value: u32) -> Entry {
    Entry::new(SET_FEATURES).nsid(1).cdw(10, number).cdw(11, value)
}

#[test]
fn identify_describes_the_drive() {
    let (target, mut admin, _io) = TestServer::with_host();
    let drive = admin.identify(1, 0);
    assert_eq!(&drive[24..30], b"a toy ");
    assert_eq!(&drive[4..10], b"SSDLAB");
    assert_eq!(drive[77], 2, "MDTS of 16 KiB: four pages");
    assert_eq!(drive[525] & 1, 1, "volatile write cache");
    assert_eq!(&drive[768..768 + target.name.len()], target.name.as_bytes());
    assert!(drive[536] & 3 != 0 && number(&drive, 320, 2) > 0 && number(&drive, 514, 2) > 0);
    assert!(number(&drive, 1792, 8) >> 32 >= 1 && number(&drive, 1792, 8) as u32 >= 4);
    let namespace = admin.identify(0, 1);
    assert_eq!((number(&namespace, 0, 8), number(&namespace, 16, 8)), (CAPACITY / 512, 0));
    assert_eq!(namespace[33], 0b1001, "trims read as zeros");
    for preferred in [64, 66, 68, 70] {
        assert_eq!(number(&namespace, preferred, 2), 7, "units of 4 KiB");
    }
    assert_eq!((namespace[130], namespace[134]), (9, 12));
    let protected = TestServer::new(DriveOptions {
        power_loss_protection: true,
        trims_to_zeros: false,
        ..DriveOptions::default()
    });
    let (mut admin, _io) = protected.host(0);
    assert_eq!(admin.identify(1, 0)[525] & 1, 0);
    assert_eq!(admin.identify(0, 1)[33], 0);
    // The drive has no volatile write cache.
    assert_eq!(admin.command(feature(6)).status, INVALID_FIELD);
}

#[test]
fn lists_and_identifiers_are_consistent() {
    let (_target, mut admin, _io) = TestServer::with_host();
    for list in [0x02, 0x07, 0x10] {
        assert_eq!(number(&admin.identify(list, 0), 0, 8), 1, "{list:x}");
        assert_eq!(number(&admin.identify(list, 1), 0, 8), 0, "{list:x}");
    }
    let names = admin.identify(3, 1);
    let id = admin.identify(0, 1)[104..120].to_vec();
    assert_eq!((names[0], names[1], &names[4..20]), (2, 16, &id[..]));
    assert_eq!((names[20], &names[24..40]), (3, &id[..]));
    assert_eq!((names[40], names[41], names[44]), (4, 1, 0));
    assert_eq!(admin.identify(8, 1)[14], 1, "it is ready");
    assert_eq!(number(&admin.identify(0x13, 0), 0, 2), 1);
    for (which, namespace, code) in [(0, 2, 0x0b), (3, 9, 0x0b), (2, u32::MAX, 0x0b), (0x77, 1, 2)]
    {
        let entry = Entry::new(IDENTIFY).nsid(namespace).cdw(10, which);
        assert_eq!(admin.command_in(entry, 4096).status, code, "{which:x} {namespace}");
    }
    let small = Entry::new(IDENTIFY).cdw(10, 1);
    assert_eq!(admin.command_in(small, 100).status, 0x0f);
}

#[test]
fn used_blocks_follow_writes_and_trims() {
    let (_target, mut admin, mut io) = TestServer::with_host();
    io.write(0, &[1; 8192]);
    io.write(100, &[1; 512]);
    assert_eq!(number(&admin.identify(0, 1), 16, 8), 3 * 8);
    let zeroed = Entry::on(WRITE_ZEROES, 0, 8).cdw(12, 1 << 25);
    assert_eq!(io.command(zeroed).status, 0);
    assert_eq!(number(&admin.identify(0, 1), 16, 8), 2 * 8);
}

#[test]
fn a_feature_keeps_its_value_until_the_controller_is_reset() {
    let (_target, mut admin, _io) = TestServer::with_host();
    for (number, value, first) in
        [(1, 7, 0), (5, 1 << 16 | 9, 0), (6, 0, 1), (10, 1, 0), (4, 300, 343)]
    {
        assert_eq!(admin.command(feature(number)).result, first, "{number}");
        assert_eq!(admin.command(setting(number, value)).status, 0);
        assert_eq!(admin.command(feature(number)).result, u64::from(value), "{number}");
        assert_eq!(admin.command(feature(number | 1 << 8)).result, first, "by default");
        // The feature is changeable.
        assert_eq!(admin.command(feature(number | 3 << 8)).result & 4, 4);
        // The feature is not saveable.
        assert_eq!(admin.command(setting(number | 1 << 31, value)).status, 0x10d);
    }
    admin.set_property(CC, CC_ENABLE - 1);
    assert_eq!(admin.property(0x1c), 0);
    assert_eq!(admin.command(feature(5)).status, COMMAND_SEQUENCE_ERROR);
    admin.set_property(CC, CC_ENABLE);
    assert_eq!(admin.command(feature(5)).result, 0);
    assert_eq!(admin.command(setting(7, 0x0003_0003)).result, 0x0003_0003);
    assert_eq!(admin.command(setting(7, 0x1000_1000)).result, 0x003f_003f);
    assert_eq!(admin.command_in(feature(0x81), 16).data, [7; 16]);
    for (entry, code) in [(feature(0x77), 2), (feature(0x1d), 2), (setting(0x81, 1), 0x0c)] {
        assert_eq!(admin.command(entry).status, code);
    }
    assert_eq!(admin.command(Entry::new(KEEP_ALIVE)).status, 0);
    assert_eq!(admin.command(Entry::new(0x7e)).status, 1);
}

#[test]
fn log_pages_can_be_read_in_parts_and_end_with_zeros() {
    let (_target, mut admin, _io) = TestServer::with_host();
    let whole = admin.log(5, 4096);
    assert_eq!(whole[4 * usize::from(FORMAT_NVM)] & 3, 3, "a format changes data");
    assert_eq!(whole[1024 + 4 * usize::from(COMPARE)], 1);
    assert_eq!(whole[1024 + 4 * 0x12], 0, "no placement handles: command not supported");
    let part = Entry::new(GET_LOG_PAGE).nsid(u32::MAX).cdw(10, 5 | 63 << 16).cdw64(12, 512);
    assert_eq!(admin.command_in(part, 256).data, whole[512..768]);
    let beyond = Entry::new(GET_LOG_PAGE).cdw(10, 2 | 127 << 16).cdw64(12, 256);
    assert_eq!(admin.command_in(beyond, 512).data[256..], [0; 256]);
    for (entry, code) in [
        (Entry::new(GET_LOG_PAGE).cdw(10, 0x77 | 3 << 16), 0x109),
        (Entry::new(GET_LOG_PAGE).cdw(10, 0x20 | 3 << 16).cdw(11, 1 << 16), 0x109),
        (Entry::new(GET_LOG_PAGE).cdw(10, 9 | 3 << 16), 0x02),
        (Entry::new(GET_LOG_PAGE).cdw(10, 2 | 3 << 16).cdw64(12, 3), 0x02),
        (Entry::new(GET_LOG_PAGE).cdw(10, 2 | 3 << 16).cdw64(12, 1 << 40), 0x02),
        (Entry::new(GET_LOG_PAGE).cdw(10, 2 | 0xffff << 16).cdw(11, 0xffff), 0x02),
        (Entry::new(GET_LOG_PAGE).cdw(10, 2 | 255 << 16), 0x0f),
        (Entry::new(GET_LOG_PAGE).nsid(4).cdw(10, 2 | 3 << 16), 0x0b),
    ] {
        assert_eq!(admin.command_in(entry, 512).status, code, "{:?}", &entry.0[40..56]);
    }
    for (words, code) in [(4096, 0), (4097, 0x02)] {
        let entry = Entry::new(GET_LOG_PAGE).cdw(10, 2 | (words - 1) << 16);
        assert_eq!(admin.command_in(entry, 4 * words as usize).status, code, "MDTS is 16 KiB");
    }
    let logs = admin.log(0, 1024);
    let there: Vec<usize> = (0..256).filter(|log| logs[4 * log] == 1).collect();
    assert_eq!(there, [0, 1, 2, 3, 4, 5, 9, 0x81, 0xc0]);
}

#[test]
fn the_error_log_has_the_newest_error_first() {
    let (_target, mut admin, mut io) = TestServer::with_host();
    assert_eq!(io.command_in(Entry::on(READ, 1 << 40, 1), 512).status, 0x80);
    assert_eq!(admin.command(feature(0x77)).status, INVALID_FIELD);
    let log = admin.log(1, 4096);
    assert_eq!((number(&log, 0, 8), number(&log, 64, 8), number(&log, 128, 8)), (2, 1, 0));
    assert_eq!((number(&log, 8, 2), number(&log, 64 + 8, 2)), (0, 1), "by queue");
    assert_eq!((number(&log, 12, 2) >> 1 & 0x7ff, number(&log, 76, 2) >> 1 & 0x7ff), (2, 0x80));
    assert_eq!(number(&log, 64 + 16, 8), 1 << 40);
    assert_eq!(number(&admin.log(2, 512), 176, 8), 2);
}

#[test]
fn an_event_is_reported_once_until_its_log_page_is_read() {
    let (_target, mut admin, _io) = TestServer::with_host();
    assert_eq!(admin.command(setting(11, 0x1ff)).status, 0);
    let request: Vec<u16> = (0..4)
        .map(|_| admin.submit(Entry::new(ASYNC_EVENT_REQUEST).data(0, SGL_TRANSPORT), &[]))
        .collect();
    // Too many outstanding requests.
    assert_eq!(admin.command(Entry::new(ASYNC_EVENT_REQUEST)).status, 0x105);
    admin.submit(setting(4, 200).data(0, SGL_TRANSPORT), &[]);
    let answers = [admin.complete(&[]).unwrap(), admin.complete(&[]).unwrap()];
    let event = answers.iter().find(|completion| completion.cid == request[0]).unwrap();
    assert_eq!(event.result, 1 | 1 << 8 | 2 << 16, "temperature: see the health log");
    assert_eq!(admin.log(2, 512)[0], 2);
    let abort = Entry::new(ABORT).cdw(10, u32::from(request[1]) << 16);
    admin.submit(abort.data(0, SGL_TRANSPORT), &[]);
    let answers = [admin.complete(&[]).unwrap(), admin.complete(&[]).unwrap()];
    let aborted = answers.iter().find(|completion| completion.cid == request[1]).unwrap();
    assert_eq!(aborted.status, 7);
    assert_eq!(admin.command(Entry::new(ABORT).cdw(10, 99 << 16)).result, 1, "no such command");
}

#[test]
fn an_event_is_reported_again_after_its_log_page_was_read_without_retain() {
    let (_target, mut admin, _io) = TestServer::with_host();
    assert_eq!(admin.command(setting(11, 0x1ff)).status, 0);
    let events: Vec<u16> = (0..2)
        .map(|_| admin.submit(Entry::new(ASYNC_EVENT_REQUEST).data(0, SGL_TRANSPORT), &[]))
        .collect();
    // Completions in between are not events.
    let own = |admin: &mut Host, entry: Entry, room: usize| {
        let id = admin.submit(entry.data(room, SGL_TRANSPORT), &[]);
        assert_eq!(admin.complete(&[]).unwrap().cid, id);
    };
    own(&mut admin, setting(4, 200), 0);
    assert_eq!(admin.complete(&[]).unwrap().cid, events[0], "above the threshold");
    own(&mut admin, setting(4, 343), 0);
    own(&mut admin, setting(4, 200), 0);
    own(&mut admin, Entry::new(KEEP_ALIVE), 0);
    let log = Entry::new(GET_LOG_PAGE).nsid(u32::MAX).cdw(10, 2 | 127 << 16);
    own(&mut admin, log.cdw(10, 1 << 15), 512);
    own(&mut admin, Entry::new(KEEP_ALIVE), 0);
    own(&mut admin, log, 512);
    assert_eq!(admin.complete(&[]).unwrap().cid, events[1], "above the threshold again");
}

#[test]
fn temperature_thresholds_are_independent() {
    let (_target, mut admin, _io) = TestServer::with_host();
    let low = 1 << 20;
    assert_eq!(admin.command(setting(4, low + 300)).status, 0);
    assert_eq!(admin.command(feature(4).cdw(11, low)).result, 300);
    assert_eq!(admin.command(feature(4)).result, 343);
    assert_eq!(admin.log(2, 512)[0], 0, "the temperature is 308 K");
    assert_eq!(admin.command(setting(4, low + 308)).status, 0);
    assert_eq!(admin.log(2, 512)[0], 2, "too cold");
    assert_eq!(admin.command(setting(4, 2 * low + 300)).status, INVALID_FIELD);
}

#[test]
fn unsupported_admin_commands_are_refused() {
    let (_target, mut admin, _io) = TestServer::with_host();
    let identify = Entry::new(IDENTIFY).nsid(1).cdw(10, 5);
    for (entry, code) in [
        (identify.cdw(11, 2 << 24), 2),
        (Entry::new(IDENTIFY).cdw(10, 1).cdw(0, 1 << 8), 2),
        (Entry::new(FORMAT_NVM).nsid(1).cdw(10, 1 << 4), 0x10a),
        (Entry::new(FORMAT_NVM).nsid(1).cdw(10, 1 << 5), 0x10a),
        (Entry::new(FORMAT_NVM).nsid(2), 0x0b),
        (identify, 0),
    ] {
        assert_eq!(admin.command_in(entry, 4096).status, code, "{:?}", &entry.0[..48]);
    }
}

#[test]
fn format_erases_all_data_and_changes_the_block_size() {
    for trims_to_zeros in [true, false] {
        let target = TestServer::new(DriveOptions { trims_to_zeros, ..DriveOptions::default() });
        let (mut admin, mut io) = target.host(0);
        io.write(0, &[3; 16384]);
        let format = |number: u32| Entry::new(FORMAT_NVM).nsid(1).cdw(10, number);
        assert_eq!(admin.command(format(2)).status, 0x10a);
        assert_eq!(admin.command(format(1 | 3 << 9)).status, INVALID_FIELD);
        assert_eq!(admin.command(format(1 | 1 << 9)).status, 0);
        let namespace = admin.identify(0, 1);
        assert_eq!((number(&namespace, 0, 8), number(&namespace, 16, 8)), (CAPACITY / 4096, 0));
        assert_eq!(namespace[26], 1);
        let read = io.command_in(Entry::on(READ, 0, 4), 16384);
        assert_eq!((read.status, read.data), (0, vec![0; 16384]));
        assert_eq!(io.command_in(Entry::on(READ, CAPACITY / 4096, 1), 4096).status, 0x80);
        assert_eq!(admin.log(4, 4096)[0], 1, "the namespace has changed");
        assert_eq!(admin.log(4, 4096)[0], 0, "the log page was read");
    }
}

#[test]
fn sanitize_erases_all_data_and_its_log_page_reports_it() {
    let target = TestServer::new(DriveOptions { trims_to_zeros: false, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    io.write(0, &[3; 512]);
    assert_eq!(number(&admin.log(0x81, 512), 2, 2), 0);
    // Overwrite is not supported.
    assert_eq!(admin.command(Entry::new(SANITIZE).cdw(10, 3)).status, INVALID_FIELD);
    assert_eq!(admin.command(Entry::new(SANITIZE).cdw(10, 2)).status, 0);
    assert_eq!(io.read(0, 1), [0; 512]);
    let log = admin.log(0x81, 512);
    assert_eq!((number(&log, 0, 2), number(&log, 2, 2), log[4]), (0xffff, 1, 2));
}

#[test]
fn a_discovery_controller_reports_the_address_of_the_drive_only() {
    let target = TestServer::default();
    let (mut admin, cntlid) = Host::admin(target.address, DISCOVERY, 0);
    assert_eq!(admin.identify(1, 0)[111], 2);
    let log = admin.log(0x70, 2048);
    assert_eq!(number(&log, 8, 8), 1);
    assert_eq!(&log[1024..1027], [3, 1, 2]);
    let port = log[1024 + 32..].split(|byte| *byte == b' ').next().unwrap();
    assert_eq!(port, target.address.port().to_string().as_bytes());
    assert_eq!(&log[1280..1280 + target.name.len()], target.name.as_bytes());
    assert_eq!(admin.command_in(Entry::new(IDENTIFY).nsid(1), 4096).status, INVALID_FIELD);
    let mut io = Host::connect(target.address, 0).unwrap();
    assert_ne!(io.connect_queue(DISCOVERY, 1, cntlid, 0).status, 0);
    assert_ne!(io.connect_queue(&target.name, 1, cntlid, 0).status, 0);
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
