//! Connections: who may, what ends them, and that they do not harm each other.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{
    ENABLE, FLUSH, GET_FEATURES, Host, KEEP_ALIVE, READ, SET_FEATURES, Sqe, Target, WRITE,
    introduction,
};
use ssdlab_testing::DriveOptions;

#[test]
fn only_who_asks_rightly_gets_a_queue() {
    let target = Target::new(DriveOptions::default());
    let mut early = Host::connect(target.address, 0);
    assert_eq!(early.ask(Sqe::new(FLUSH).namespace(1)).code, 0x0c, "first it connects");
    assert_eq!(early.ask(Sqe::fabrics(4).word(11, 8)).code, 0x0c);
    let mut host = Host::connect(target.address, 0);
    let wrong = host.join("nqn.somebody", 0, 0xffff, 0);
    assert_eq!((wrong.code, wrong.result), (0x182, 256 | 1 << 16), "the name is in the data");
    assert_eq!(host.join(&target.name, 0, 3, 0).code, 0x182, "controllers are not chosen");
    assert_eq!(host.join(&target.name, 1, 99, 0).code, 0x182, "there is no such controller");
    let joined = host.join(&target.name, 0, 0xffff, 0);
    assert_eq!(joined.code, 0);
    assert_eq!(host.join(&target.name, 0, 0xffff, 0).code, 0x0c, "it is a queue already");
    let number = joined.result as u16;
    let mut io = Host::connect(target.address, 0);
    assert_eq!(io.join(&target.name, 1, number, 0).code, 0x0c, "it is not enabled");
    host.set_property(0x14, ENABLE);
    assert_eq!(io.join(&target.name, 65, number, 0).code, 0x182);
    assert_eq!(io.join(&target.name, 1, number, 0).code, 0);
    let mut second = Host::connect(target.address, 0);
    assert_eq!(second.join(&target.name, 1, number, 0).code, 0x182, "that queue is taken");
    assert_eq!(io.ask(Sqe::fabrics(4).word(11, 8)).code, 0x0c, "properties are the admin queue's");
}

#[test]
fn a_queue_is_no_longer_than_the_drive_says_and_its_hosts_alone() {
    let target = Target::new(DriveOptions::default());
    let (_admin, controller) = Host::admin(target.address, &target.name, 0);
    let mut io = Host::connect(target.address, 0);
    let long = Sqe::fabrics(1).word(10, 1 << 16).word(11, 128);
    let data = introduction(&target.name, controller);
    let refused = io.send_with(long, &data);
    assert_eq!((refused.code, refused.result), (0x182, 44));
    let short = Sqe::fabrics(1).word(10, 1 << 16);
    assert_eq!(io.send_with(short, &data).code, 0x182, "one entry is none");
    let mut stranger = data.clone();
    stranger[..16].fill(8);
    let refused = io.send_with(Sqe::fabrics(1).word(10, 1 << 16).word(11, 127), &stranger);
    assert_eq!((refused.code, refused.result), (0x182, 1 << 16), "the host is in the data");
    assert_eq!(io.join(&target.name, 1, controller, 0).code, 0);
}

#[test]
fn a_response_says_how_far_its_queue_was_read() {
    let target = Target::new(DriveOptions::default());
    let mut host = Host::connect(target.address, 0);
    let data = introduction(&target.name, 0xffff);
    let sqe = Sqe::fabrics(1).word(11, 3);
    assert_eq!(host.send_with(sqe, &data).code, 0);
    let mut heads = Vec::new();
    for _ in 0..5 {
        host.submit(Sqe::fabrics(4).word(11, 8).data(0, 0x5a), &[]);
        let unit = host.unit().unwrap();
        assert_eq!(unit.kind, 5);
        heads.push(u16::from_le_bytes([unit.header[16], unit.header[17]]));
    }
    assert_eq!(heads, [2, 3, 0, 1, 2], "of four entries, the first for the connect command");
}

#[test]
fn a_result_beside_data_has_a_response_also_without_flow_control() {
    let target = Target::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let mut host = Host::connect(target.address, 0);
    let data = introduction(&target.name, 0xffff);
    assert_eq!(host.send_with(Sqe::fabrics(1).word(11, 31 | 1 << 18), &data).code, 0);
    assert_eq!(host.set_property(0x14, ENABLE).code, 0);
    let events = Sqe::new(GET_FEATURES).namespace(1).word(10, 0x1e).word(11, 2 << 16);
    let answer = host.receive(events, 4);
    assert_eq!((answer.result, answer.data), (2, vec![0, 0, 3, 0]));
    host.submit(Sqe::new(crate::client::IDENTIFY).word(10, 1).data(4096, 0x5a), &[]);
    let unit = host.unit().unwrap();
    assert_eq!((unit.kind, unit.flags & 8), (7, 8), "data alone, where there is no more to tell");
    assert_eq!(host.ask(Sqe::new(KEEP_ALIVE)).code, 0);
}

#[test]
fn registers_are_as_a_host_expects_them() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, _) = Host::admin(target.address, &target.name, 0);
    let capabilities = admin.property(0);
    assert_eq!(capabilities & 0xffff, 127);
    assert_eq!((capabilities >> 16 & 1, capabilities >> 37 & 1), (1, 1));
    assert_eq!((admin.property(8), admin.property(0x14)), (0x0002_0000, ENABLE));
    assert_eq!(admin.property(0x1c), 1);
    assert_eq!(admin.set_property(0x14, ENABLE | 1 << 14).code, 0);
    assert_eq!(admin.property(0x1c) >> 2 & 3, 2, "it has shut down");
    for (offset, wide) in [(0x30, 0), (0, 0), (8, 1)] {
        let sqe = Sqe::fabrics(4).word(10, wide).word(11, offset);
        assert_eq!(admin.ask(sqe).code, 2, "{offset:x}");
    }
    assert_eq!(admin.set_property(0x1c, 0).code, 2);
    admin.set_property(0x14, 0);
    admin.set_property(0x14, ENABLE | 1 << 20);
    assert_eq!(admin.property(0x1c) & 3, 2, "entries of 32 bytes cannot be");
}

#[test]
fn a_normal_shutdown_loses_nothing() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut io) = target.host(0);
    io.write(0, &[1; 512]);
    admin.set_property(0x14, ENABLE | 1 << 14);
    assert!(io.is_closed(), "its queues are gone");
    assert!(target.server.power_cut(true).unwrap().lost.is_empty());
    assert_eq!(target.host(0).1.read(0, 1), [1; 512]);
}

#[test]
fn thirty_two_connections_read_back_what_each_wrote() {
    let target = Target::new(DriveOptions::default());
    let (_admin, controller) = Host::admin(target.address, &target.name, 0);
    thread::scope(|scope| {
        for queue in 1..=32_u16 {
            let (address, name) = (target.address, &target.name);
            scope.spawn(move || {
                let mut host = Host::io(address, name, queue, controller, queue as u8 % 4);
                for round in 0..20_u8 {
                    let first = u64::from(queue) * 64;
                    let written = vec![queue as u8 ^ round; 12288];
                    host.write(first, &written);
                    assert_eq!(host.read(first, 24), written);
                }
            });
        }
    });
    assert_eq!(target.count("writes"), 32 * 20);
}

#[test]
fn a_reset_in_the_middle_of_much_ends_its_queues_and_the_next_host_is_served() {
    let target = Target::new(DriveOptions::default());
    for round in 0..10 {
        let (mut admin, mut io) = target.host(round % 4);
        for first in 0..64 {
            io.submit(Sqe::on(WRITE, first, 1).data(512, 1), &[9; 512]);
            io.submit(Sqe::on(READ, first, 8).data(4096, 0x5a), &[]);
            // Data that was asked for and never comes.
            io.submit(Sqe::on(WRITE, first, 16).data(8192, 0x5a), &[]);
        }
        assert_eq!(admin.set_property(0x14, ENABLE - 1).code, 0);
        assert!(io.is_closed());
        assert_eq!(admin.property(0x1c) & 1, 0);
        assert_eq!(admin.set_property(0x14, ENABLE).code, 0);
        assert_eq!(admin.property(0x1c) & 1, 1);
    }
    let (_admin, mut io) = target.host(0);
    io.write(0, &[1; 512]);
    assert_eq!(io.read(0, 1), [1; 512]);
}

#[test]
fn a_host_that_is_not_heard_of_loses_its_queues() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, controller) = Host::admin(target.address, &target.name, 0);
    let mut io = Host::io(target.address, &target.name, 1, controller, 0);
    let patience = Sqe::new(SET_FEATURES).word(10, 15).word(11, 50);
    assert_eq!(admin.ask(patience).code, 0);
    assert!(admin.is_closed(), "nothing was sent");
    assert!(io.is_closed());
    let mut late = Host::connect(target.address, 0);
    assert_eq!(late.join(&target.name, 1, controller, 0).code, 0x182);
}

#[test]
fn a_host_says_when_it_connects_how_long_it_may_be_silent() {
    let target = Target::new(DriveOptions::default());
    let mut host = Host::connect(target.address, 0);
    assert_eq!(host.join(&target.name, 0, 0xffff, 50).code, 0);
    assert!(host.is_closed());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a stalled machine is told from a silent host")]
fn traffic_on_any_queue_keeps_a_host_alive() {
    let target = Target::new(DriveOptions::default());
    let patience = Duration::from_millis(400);
    let silent = Sqe::new(SET_FEATURES).word(10, 15).word(11, patience.as_millis() as u32);
    // Whether its connections lasted; `None` where the machine stalled, and was silent with that.
    let lasts = || {
        let (mut admin, controller) = Host::admin(target.address, &target.name, 0);
        let mut io = Host::io(target.address, &target.name, 1, controller, 0);
        assert_eq!(admin.identify(1, 0)[96] >> 6 & 1, 1, "that it does is what it says");
        let begun = Instant::now();
        let (mut last, mut is_there) = (begun, admin.tries(silent).is_ok());
        while is_there && begun.elapsed() < 4 * patience {
            thread::sleep(patience / 20);
            let asked = Instant::now();
            is_there = io.tries(Sqe::new(FLUSH).namespace(1)).is_ok();
            if last.elapsed() >= patience {
                return None;
            }
            last = asked;
        }
        let is_there = is_there && admin.tries(Sqe::new(KEEP_ALIVE)).is_ok();
        (last.elapsed() < patience).then_some(is_there)
    };
    let lasted = (0..1000).find_map(|_| lasts());
    assert_eq!(lasted, Some(true), "its other queue was in use");
}

#[test]
fn an_admin_queue_that_ends_takes_its_others_along() {
    let target = Target::new(DriveOptions::default());
    let (admin, mut io) = target.host(0);
    drop(admin);
    assert!(io.is_closed());
}

#[test]
fn a_host_that_vanishes_in_the_middle_of_a_unit_harms_nobody() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut io) = target.host(0);
    for length in [1, 8, 40, 100] {
        let (_other, mut vanishing) = target.host(0);
        let mut unit = vec![4, 0, 72, 72, 0, 0, 0, 0];
        unit[4..8].copy_from_slice(&(72_u32 + 512).to_le_bytes());
        unit.extend(Sqe::on(WRITE, 0, 1).data(512, 1).0);
        unit.resize(72 + 512, 3);
        vanishing.stream.write_all(&unit[..length]).unwrap();
    }
    assert_eq!(io.read(0, 1), [0; 512]);
    io.write(0, &[1; 512]);
}
