//! The namespace as hosts make it: smaller, detached, gone; and who hears of that.

use crate::client::{
    ATTACH, EVENT, FLUSH, FORMAT, Host, IDENTIFY, MANAGE, READ, SET_FEATURES, Sqe, Target, WRITE,
};
use ssdlab_testing::{CAPACITY, DriveOptions};

const ALL: u32 = u32::MAX;
const HALF: u64 = CAPACITY / 1024;

fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// What a host says of a namespace: its size and capacity in blocks, and more fields by offset.
fn described(size: u64, capacity: u64, more: &[(usize, u8)]) -> Vec<u8> {
    let mut described = vec![0; 4096];
    described[..8].copy_from_slice(&size.to_le_bytes());
    described[8..16].copy_from_slice(&capacity.to_le_bytes());
    for (at, value) in more {
        described[*at] = *value;
    }
    described
}

fn create(admin: &mut Host, blocks: u64) -> u16 {
    admin.send_with(Sqe::new(MANAGE), &described(blocks, blocks, &[])).code
}

fn delete(admin: &mut Host, which: u32) -> u16 {
    admin.ask(Sqe::new(MANAGE).namespace(which).word(10, 1)).code
}

/// Attaches (0) or detaches (1) the namespace.
fn attach(admin: &mut Host, select: u32, controllers: &[u16]) -> u16 {
    let mut list = vec![0; 4096];
    for (place, number) in [controllers.len() as u16].iter().chain(controllers).enumerate() {
        list[2 * place..2 * place + 2].copy_from_slice(&number.to_le_bytes());
    }
    admin.send_with(Sqe::new(ATTACH).namespace(1).word(10, select), &list).code
}

/// What is set aside for no namespace, and how much there is in all.
fn unallocated(admin: &mut Host) -> (u64, u64) {
    let drive = admin.identify(1, 0);
    let told = (number(&drive, 296, 16), number(&drive, 280, 16));
    assert_eq!(number(&admin.log(9, 512), 176, 16), told.0, "the endurance group's");
    told
}

/// An admin queue, its controller's number, and an I/O queue.
fn host(target: &Target) -> (Host, u16, Host) {
    let (admin, number) = Host::admin(target.address, &target.name, 0);
    let io = Host::io(target.address, &target.name, 1, number, 0);
    (admin, number, io)
}

#[test]
fn a_smaller_namespace_takes_the_place_of_the_whole_one_and_is_empty() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, controller, mut io) = host(&target);
    io.write(0, &[1; 4096]);
    io.write(2 * HALF - 8, &[2; 4096]);
    assert_eq!(unallocated(&mut admin), (0, CAPACITY));
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(unallocated(&mut admin), (CAPACITY, CAPACITY));
    assert_eq!(number(&admin.log(0xc0, 512), 152, 8), 0, "nothing is mapped");
    let created = admin.send_with(Sqe::new(MANAGE), &described(HALF, HALF, &[]));
    assert_eq!((created.code, created.result), (0, 1));
    assert_eq!(unallocated(&mut admin), (CAPACITY / 2, CAPACITY));
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    let namespace = admin.identify(0, 1);
    assert_eq!((number(&namespace, 0, 8), number(&namespace, 8, 8)), (HALF, HALF));
    assert_eq!((number(&namespace, 16, 8), number(&namespace, 48, 16)), (0, CAPACITY / 2));
    assert_eq!(io.read(0, 8), [0; 4096]);
    io.write(HALF - 8, &[3; 4096]);
    assert_eq!(io.receive(Sqe::on(READ, HALF, 1), 512).code, 0x80, "here it ends");
    assert_eq!(io.send_with(Sqe::on(WRITE, HALF - 1, 2), &[0; 1024]).code, 0x80);
    assert_eq!(io.read(HALF - 8, 8), [3; 4096]);
}

#[test]
fn a_namespace_outlives_cuts_and_connections_and_stays_where_it_cannot_be_deleted() {
    let target = Target::new(DriveOptions { endurance_writes: 1, ..DriveOptions::default() });
    let (mut admin, controller, _io) = host(&target);
    assert_eq!((delete(&mut admin, 1), create(&mut admin, HALF)), (0, 0));
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    target.server.power_cut(true).unwrap();
    let (mut admin, _, mut io) = host(&target);
    assert_eq!(number(&admin.identify(0, 1), 0, 8), HALF);
    io.write(0, &[1; 512]);
    assert_eq!(delete(&mut admin, 1), 0x182, "the drive takes no more writes");
    assert_eq!(number(&admin.identify(0, 1), 0, 8), HALF);
    assert_eq!(io.read(0, 1), [1; 512]);
}

#[test]
fn a_format_keeps_what_is_set_aside() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, controller, mut io) = host(&target);
    let format = |which: u32| Sqe::new(FORMAT).namespace(which).word(10, 1);
    assert_eq!((delete(&mut admin, 1), create(&mut admin, HALF)), (0, 0));
    assert_eq!(admin.ask(format(1)).code, 0x0b, "it is not attached");
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    assert_eq!(admin.ask(format(1)).code, 0);
    let namespace = admin.identify(0, 1);
    assert_eq!((number(&namespace, 0, 8), namespace[26]), (HALF / 8, 1));
    assert_eq!(unallocated(&mut admin), (CAPACITY / 2, CAPACITY));
    assert_eq!(io.receive(Sqe::on(READ, HALF / 8, 1), 4096).code, 0x80);
    assert_eq!(delete(&mut admin, ALL), 0);
    assert_eq!(admin.ask(format(1)).code, 0x0b);
    let blocks = described(HALF / 8, HALF / 8, &[(26, 1)]);
    assert_eq!(admin.send_with(Sqe::new(MANAGE), &blocks).code, 0);
    assert_eq!(unallocated(&mut admin), (CAPACITY / 2, CAPACITY), "blocks of 4 KiB");
}

#[test]
fn what_cannot_be_created_is_refused_with_its_reason() {
    let target = Target::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, _, _io) = host(&target);
    assert_eq!(create(&mut admin, HALF), 0x116, "there is one already");
    assert_eq!(delete(&mut admin, 7), 0x0b);
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(delete(&mut admin, 1), 0x0b, "there is none any more");
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
        let code_here = admin.send_with(Sqe::new(MANAGE), &described(size, capacity, &more)).code;
        assert_eq!(code_here, code, "{size} {capacity} {more:?}");
    }
    let zoned = Sqe::new(MANAGE).word(11, 2 << 24);
    assert_eq!(admin.send_with(zoned, &described(HALF, HALF, &[])).code, 0x129);
    assert_eq!(admin.send_with(Sqe::new(MANAGE), &[1; 512]).code, 0x0f);
    assert_eq!(admin.send_with(Sqe::new(MANAGE).word(10, 2), &[0; 4096]).code, 0x02);
    assert_eq!(unallocated(&mut admin), (CAPACITY, CAPACITY), "nothing came of them");
    let sent = described(HALF, HALF, &[two(0, 1), vec![(102, 1)]].concat());
    assert_eq!(admin.send_with(Sqe::new(MANAGE), &sent).code, 0);
    assert_eq!(
        admin.log(0x21, 40)[8..].iter().step_by(8).copied().collect::<Vec<_>>(),
        [1, 1, 0, 0]
    );
}

#[test]
fn who_is_attached_is_said_by_controllers_that_there_are() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, controller, mut io) = host(&target);
    let gone = Host::admin(target.address, &target.name, 0).1;
    let mut second = Host::admin(target.address, &target.name, 0);
    while admin.identify(0x13, 0)[0] != 2 {
        std::thread::yield_now();
    }
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
    let sqe = Sqe::new(ATTACH).namespace(1);
    assert_eq!(admin.send_with(sqe, &too_many).code, 0x11c);
    assert_eq!(admin.send_with(sqe, &too_many[..512]).code, 0x0f);
    assert_eq!(attach(&mut admin, 2, &[controller]), 0x02);
    assert_eq!(attach(&mut admin, 0, &[controller]), 0x118);
    io.write(0, &[5; 512]);
    assert_eq!(attach(&mut admin, 1, &[controller, second.1]), 0);
    assert_eq!(attach(&mut admin, 1, &[controller]), 0x11a);
    assert_eq!(listed(admin.identify(0x12, 1)), [0; 3]);
    assert_eq!(listed(second.0.identify(0x13, 0)), both);
    assert_eq!(attach(&mut admin, 0, &[controller]), 0);
    assert_eq!(io.read(0, 1), [5; 512], "to detach destroys nothing");
    let unknown = Sqe::new(IDENTIFY).namespace(ALL).word(10, 0x12);
    assert_eq!(admin.receive(unknown, 4096).code, 0x02);
    assert_eq!((delete(&mut admin, 1), attach(&mut admin, 0, &[controller])), (0, 0x0b));
}

#[test]
fn a_namespace_that_is_not_attached_is_allocated_and_takes_no_commands() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, controller, mut io) = host(&target);
    let all_lists = [0x02, 0x07, 0x10];
    let lists = |admin: &mut Host| all_lists.map(|list| number(&admin.identify(list, 0), 0, 4));
    assert_eq!(lists(&mut admin), [1, 1, 1]);
    assert_eq!(attach(&mut admin, 1, &[controller]), 0);
    assert_eq!(lists(&mut admin), [0, 0, 1]);
    assert_eq!(admin.identify(0, 1), [0; 4096]);
    assert_eq!(number(&admin.identify(0x11, 1), 0, 8), 2 * HALF);
    assert_eq!(admin.identify(8, 1)[14], 0, "it is not ready");
    let named = Sqe::new(IDENTIFY).namespace(1).word(10, 3);
    assert_eq!(admin.receive(named, 4096).code, 0x0b);
    let refused = |io: &mut Host| {
        assert_eq!(io.receive(Sqe::on(READ, 0, 1), 512).code, 0x0b);
        assert_eq!(io.send_with(Sqe::on(WRITE, 0, 1), &[1; 512]).code, 0x0b);
        assert_eq!(io.ask(Sqe::new(FLUSH).namespace(1)).code, 0x0b);
        assert_eq!(io.ask(Sqe::new(FLUSH).namespace(ALL)).code, 0);
    };
    refused(&mut io);
    assert_eq!(delete(&mut admin, 1), 0);
    assert_eq!(lists(&mut admin), [0, 0, 0]);
    assert_eq!(admin.identify(0x11, 1), [0; 4096]);
    assert_ne!(admin.identify(0, ALL), [0; 4096], "what any would have in common");
    refused(&mut io);
    assert_eq!(target.count("writes"), 0);
}

#[test]
fn every_host_hears_that_the_namespace_came_or_went() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, controller, _io) = host(&target);
    let (mut other, _) = Host::admin(target.address, &target.name, 0);
    let setting = Sqe::new(SET_FEATURES).word(10, 11).word(11, 1 << 8);
    assert_eq!(other.ask(setting).code, 0);
    let changes: [&dyn Fn(&mut Host) -> u16; 3] = [
        &|admin| attach(admin, 1, &[controller]),
        &|admin| attach(admin, 0, &[controller]),
        &|admin| delete(admin, 1),
    ];
    for change in changes {
        let asked = other.submit(Sqe::new(EVENT).data(0, 0x5a), &[]);
        assert_eq!(change(&mut admin), 0);
        let event = other.answer(&[]).unwrap();
        assert_eq!((event.id, event.result), (asked, 2 | 4 << 16), "see log 4");
        assert_eq!(number(&other.log(4, 4096), 0, 4), 1);
    }
    assert_eq!(create(&mut admin, HALF), 0);
    assert_eq!(number(&other.log(4, 4096), 0, 4), 0, "nobody finds it yet");
}
