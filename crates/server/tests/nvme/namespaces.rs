//! Namespace management and attachment, and the events that they cause.

use crate::prelude::*;

const ALL: u32 = u32::MAX;
const HALF: u64 = CAPACITY / 1024;

/// The data of a Create command: size and capacity in blocks, and further bytes by offset.
pub fn described(size: u64, capacity: u64, more: &[(usize, u8)]) -> Vec<u8> {
    let mut described = vec![0; 4096];
    described[..8].copy_from_slice(&size.to_le_bytes());
    described[8..16].copy_from_slice(&capacity.to_le_bytes());
    for (at, value) in more {
        described[*at] = *value;
    }
    described
}

fn create(admin: &mut Host, blocks: u64) -> u16 {
    admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &described(blocks, blocks, &[])).status
}

pub fn delete(admin: &mut Host, which: u32) -> u16 {
    admin.command(Entry::new(NAMESPACE_MANAGEMENT).nsid(which).cdw(10, 1)).status
}

/// Attaches (0) or detaches (1) the namespace.
pub fn attach(admin: &mut Host, select: u32, controllers: &[u16]) -> u16 {
    let mut list = vec![0; 4096];
    for (place, number) in [controllers.len() as u16].iter().chain(controllers).enumerate() {
        list[2 * place..2 * place + 2].copy_from_slice(&number.to_le_bytes());
    }
    admin.command_out(Entry::new(NAMESPACE_ATTACHMENT).nsid(1).cdw(10, select), &list).status
}

/// Unallocated and total NVM capacity.
fn unallocated(admin: &mut Host) -> (u64, u64) {
    let drive = admin.identify(1, 0);
    let capacity = (number(&drive, 296, 16), number(&drive, 280, 16));
    // The same value in the endurance group log.
    assert_eq!(number(&admin.log(9, 512), 176, 16), capacity.0);
    capacity
}

/// Connects an admin queue and an I/O queue; returns the controller identifier too.
pub fn host(target: &TestServer) -> (Host, u16, Host) {
    let (admin, number) = target.admin(0);
    let io = target.io(1, number, 0);
    (admin, number, io)
}

#[test]
fn a_smaller_namespace_can_replace_the_default_one_and_is_empty() {
    let target = TestServer::default();
    let (mut admin, controller, mut io) = host(&target);
    io.write(0, &[1; 4096]);
    io.write(2 * HALF - 8, &[2; 4096]);
    assert_eq!(unallocated(&mut admin), (0, CAPACITY));
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(unallocated(&mut admin), (CAPACITY, CAPACITY));
    assert_eq!(number(&admin.log(0xc0, 512), 152, 8), 0, "no unit is mapped");
    let created = admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &described(HALF, HALF, &[]));
    assert_eq!((created.status, created.result), (0, 1));
    assert_eq!(unallocated(&mut admin), (CAPACITY / 2, CAPACITY));
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    let namespace = admin.identify(0, 1);
    assert_eq!((number(&namespace, 0, 8), number(&namespace, 8, 8)), (HALF, HALF));
    assert_eq!((number(&namespace, 16, 8), number(&namespace, 48, 16)), (0, CAPACITY / 2));
    assert_eq!(io.read(0, 8), [0; 4096]);
    io.write(HALF - 8, &[3; 4096]);
    assert_eq!(io.command_in(Entry::on(READ, HALF, 1), 512).status, 0x80, "beyond the end");
    assert_eq!(io.command_out(Entry::on(WRITE, HALF - 1, 2), &[0; 1024]).status, 0x80);
    assert_eq!(io.read(HALF - 8, 8), [3; 4096]);
}

#[test]
fn a_namespace_survives_power_cuts_and_a_read_only_drive_keeps_it() {
    let target = TestServer::new(DriveOptions { endurance_writes: 1, ..DriveOptions::default() });
    let (mut admin, controller, _io) = host(&target);
    assert_eq!((delete(&mut admin, 1), create(&mut admin, HALF)), (0, 0));
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    target.server.power_cut(true).unwrap();
    let (mut admin, _, mut io) = host(&target);
    assert_eq!(number(&admin.identify(0, 1), 0, 8), HALF);
    io.write(0, &[1; 512]);
    assert_eq!(delete(&mut admin, 1), 0x182, "the drive is read-only");
    assert_eq!(number(&admin.identify(0, 1), 0, 8), HALF);
    assert_eq!(io.read(0, 1), [1; 512]);
}

#[test]
fn a_format_keeps_the_unallocated_capacity() {
    let target = TestServer::default();
    let (mut admin, controller, mut io) = host(&target);
    let format = |which: u32| Entry::new(FORMAT_NVM).nsid(which).cdw(10, 1);
    assert_eq!((delete(&mut admin, 1), create(&mut admin, HALF)), (0, 0));
    assert_eq!(admin.command(format(1)).status, 0x0b, "the namespace is not attached");
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    assert_eq!(admin.command(format(1)).status, 0);
    let namespace = admin.identify(0, 1);
    assert_eq!((number(&namespace, 0, 8), namespace[26]), (HALF / 8, 1));
    assert_eq!(unallocated(&mut admin), (CAPACITY / 2, CAPACITY));
    assert_eq!(io.command_in(Entry::on(READ, HALF / 8, 1), 4096).status, 0x80);
    assert_eq!(delete(&mut admin, ALL), 0);
    assert_eq!(admin.command(format(1)).status, 0x0b);
    let blocks = described(HALF / 8, HALF / 8, &[(26, 1)]);
    assert_eq!(admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &blocks).status, 0);
    assert_eq!(unallocated(&mut admin), (CAPACITY / 2, CAPACITY), "blocks of 4 KiB");
}

#[test]
fn invalid_create_commands_get_their_status() {
    let target = TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, _, _io) = host(&target);
    assert_eq!(create(&mut admin, HALF), 0x116, "the drive has only one namespace");
    assert_eq!(delete(&mut admin, 7), 0x0b);
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(delete(&mut admin, 1), 0x0b, "the namespace is deleted");
    assert_eq!(delete(&mut admin, ALL), 0, "all of none");
    let two = |first: u8, second: u8| vec![(392, 2), (512, first), (514, second)];
    for (size, capacity, more, code) in [
        (2 * HALF + 1, 2 * HALF + 1, vec![], 0x115),
        (u64::MAX, u64::MAX, vec![], 0x115),
        (HALF, HALF, vec![(26, 1)], 0x115),
        (HALF, HALF - 1, vec![], 0x11b),
        (HALF, HALF + 1, vec![], 0x02),
        (0, 0, vec![], 0x02),
        (HALF, HALF, vec![(26, 2)], 0x10a),
        (HALF, HALF, vec![(29, 1)], 0x10a),
        (HALF, HALF, vec![(30, 1)], 0x02),
        (HALF, HALF, vec![(92, 1)], 0x02),
        (HALF, HALF, vec![(100, 1)], 0x02),
        (HALF, HALF, vec![(102, 2)], 0x02),
        (HALF, HALF, vec![(392, 5)], 0x2a),
        (HALF, HALF, two(0, 2), 0x2a),
        (HALF, HALF, two(1, 0), 0x2a),
    ] {
        let sent = described(size, capacity, &more);
        let refused = admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &sent);
        assert_eq!(refused.status, code, "{size} {capacity} {more:?}");
    }
    let zoned = Entry::new(NAMESPACE_MANAGEMENT).cdw(11, 2 << 24);
    assert_eq!(admin.command_out(zoned, &described(HALF, HALF, &[])).status, 0x129);
    assert_eq!(admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &[1; 512]).status, 0x0f);
    let unknown = Entry::new(NAMESPACE_MANAGEMENT).cdw(10, 2);
    assert_eq!(admin.command_out(unknown, &[0; 4096]).status, INVALID_FIELD);
    assert_eq!(unallocated(&mut admin), (CAPACITY, CAPACITY), "no capacity was allocated");
    let sent = described(HALF, HALF, &[two(0, 1), vec![(102, 1)]].concat());
    assert_eq!(admin.command_out(Entry::new(NAMESPACE_MANAGEMENT), &sent).status, 0);
    let users = admin.log(0x21, 40);
    assert_eq!([8, 16, 24, 32].map(|at| users[at]), [1, 1, 0, 0]);
}

#[test]
fn attachment_checks_the_controller_list() {
    let target = TestServer::default();
    let (mut admin, controller, mut io) = host(&target);
    let gone = target.admin(0).1;
    let mut second = target.admin(0);
    wait_until(|| admin.identify(0x13, 0)[0] == 2);
    let listed = |page: Vec<u8>| [number(&page, 0, 2), number(&page, 2, 2), number(&page, 4, 2)];
    let both = [2, controller.into(), second.1.into()];
    assert_eq!(listed(admin.identify(0x13, 0)), both);
    assert_eq!(listed(admin.identify(0x12, 1)), both);
    assert_eq!(listed(admin.identify(0x13 | u32::from(second.1) << 16, 0)), [1, both[2], 0]);
    for (select, list) in [
        (1, vec![]),
        (1, vec![gone]),
        (1, vec![controller, controller]),
        (1, vec![second.1, controller]),
        (1, vec![controller, 999]),
    ] {
        assert_eq!(attach(&mut admin, select, &list), 0x11c, "{list:?}");
    }
    let mut too_many = vec![0; 4096];
    too_many[..2].copy_from_slice(&2048_u16.to_le_bytes());
    let entry = Entry::new(NAMESPACE_ATTACHMENT).nsid(1);
    assert_eq!(admin.command_out(entry, &too_many).status, 0x11c);
    assert_eq!(admin.command_out(entry, &too_many[..512]).status, 0x0f);
    assert_eq!(attach(&mut admin, 2, &[controller]), 0x02);
    assert_eq!(attach(&mut admin, 0, &[controller]), 0x118);
    io.write(0, &[5; 512]);
    assert_eq!(attach(&mut admin, 1, &[controller, second.1]), 0);
    assert_eq!(attach(&mut admin, 1, &[controller]), 0x11a);
    assert_eq!(listed(admin.identify(0x12, 1)), [0; 3]);
    assert_eq!(listed(second.0.identify(0x13, 0)), both);
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    assert_eq!(io.read(0, 1), [5; 512], "detaching keeps the data");
    let unknown = Entry::new(IDENTIFY).nsid(ALL).cdw(10, 0x12);
    assert_eq!(admin.command_in(unknown, 4096).status, INVALID_FIELD);
    assert_eq!((delete(&mut admin, 1), attach(&mut admin, 0, &[controller])), (0, 0x0b));
}

#[test]
fn a_detached_namespace_is_allocated_but_refuses_commands() {
    let target = TestServer::default();
    let (mut admin, controller, mut io) = host(&target);
    let all_lists = [0x02, 0x07, 0x10];
    let lists = |admin: &mut Host| all_lists.map(|list| number(&admin.identify(list, 0), 0, 4));
    assert_eq!(lists(&mut admin), [1, 1, 1]);
    assert_eq!(attach(&mut admin, 1, &[controller]), 0);
    assert_eq!(lists(&mut admin), [0, 0, 1]);
    assert_eq!(admin.identify(0, 1), [0; 4096]);
    assert_eq!(number(&admin.identify(0x11, 1), 0, 8), 2 * HALF);
    assert_eq!(admin.identify(8, 1)[14], 0, "the namespace is not ready");
    let named = Entry::new(IDENTIFY).nsid(1).cdw(10, 3);
    assert_eq!(admin.command_in(named, 4096).status, 0x0b);
    let refused = |io: &mut Host| {
        assert_eq!(io.command_in(Entry::on(READ, 0, 1), 512).status, 0x0b);
        assert_eq!(io.command_out(Entry::on(WRITE, 0, 1), &[1; 512]).status, 0x0b);
        assert_eq!(io.command(Entry::new(FLUSH).nsid(1)).status, 0x0b);
        assert_eq!(io.command(Entry::new(FLUSH).nsid(ALL)).status, 0);
    };
    refused(&mut io);
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(lists(&mut admin), [0, 0, 0]);
    assert_eq!(admin.identify(0x11, 1), [0; 4096]);
    assert_ne!(admin.identify(0, ALL), [0; 4096], "capabilities common to all namespaces");
    refused(&mut io);
    assert_eq!(target.count("writes"), 0);
}

#[test]
fn every_host_gets_an_event_if_the_namespace_changes() {
    let target = TestServer::default();
    let (mut admin, controller, _io) = host(&target);
    let (mut other, _) = target.admin(0);
    let setting = Entry::new(SET_FEATURES).cdw(10, 11).cdw(11, 1 << 8);
    assert_eq!(other.command(setting).status, 0);
    let changes: [&dyn Fn(&mut Host) -> u16; 3] = [
        &|admin| attach(admin, 1, &[controller]),
        &|admin| attach(admin, 0, &[controller]),
        &|admin| delete(admin, 1),
    ];
    for change in changes {
        let request = other.submit(Entry::new(ASYNC_EVENT_REQUEST).data(0, SGL_TRANSPORT), &[]);
        assert_eq!(change(&mut admin), 0);
        let event = other.complete(&[]).unwrap();
        assert_eq!((event.cid, event.result), (request, 2 | 4 << 16), "see log 4");
        assert_eq!(number(&other.log(4, 4096), 0, 4), 1);
    }
    assert_eq!(create(&mut admin, HALF), 0);
    assert_eq!(number(&other.log(4, 4096), 0, 4), 0, "the namespace is not attached yet");
}
