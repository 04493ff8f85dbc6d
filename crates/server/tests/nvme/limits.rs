//! What a host may take: no command moves more than MDTS, no controller's number is given twice.

use std::sync::Arc;
use std::time::Duration;

use ssdlab_engine::Pace;
use ssdlab_nvme::{Controller, ControllerParameters, ControllerType, Identity, Subsystem};
use ssdlab_wire::Limits;

use crate::client::{
    ATTACH, BLOCKS, COMPARE, COPY, DATASET, ENABLE, FLUSH, GET_LOG, Host, KEEP_ALIVE, MANAGE, READ,
    SET_FEATURES, Sqe, Target, WRITE, engine,
};
use ssdlab_testing::DriveOptions;

/// The toy's longest transfer.
const MDTS: usize = 16 << 10;
const MANAGEMENT_RECEIVE: u8 = 0x12;
const MANAGEMENT_SEND: u8 = 0x1d;
const INVALID_FIELD: u16 = 0x02;

#[test]
fn no_command_takes_more_than_mdts_from_its_host() {
    let target = Target::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    let of_io = [WRITE, COMPARE, DATASET, COPY, MANAGEMENT_SEND];
    let of_admin = [SET_FEATURES, MANAGE, ATTACH];
    for (host, opcodes) in [(&mut io, &of_io[..]), (&mut admin, &of_admin)] {
        for opcode in opcodes {
            let sqe = Sqe::new(*opcode).namespace(1);
            for bytes in [MDTS + 4, u32::MAX as usize] {
                let answer = host.receive(sqe, bytes);
                assert_eq!(answer.code, INVALID_FIELD, "{opcode:x} of {bytes} bytes");
                assert!(answer.is_final, "to try again is in vain");
            }
        }
    }
    assert_eq!(io.receive(Sqe::new(FLUSH).namespace(1), MDTS + 4).code, 0, "it has no data");
    io.write(0, &[3; MDTS]);
    assert_eq!(io.read(0, 32), [3; MDTS], "as much as MDTS says is moved");
}

#[test]
fn no_command_moves_more_than_mdts_by_its_own_fields() {
    let target = Target::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    let words = (MDTS / 4) as u32;
    let handles = Sqe::new(MANAGEMENT_RECEIVE).namespace(1).word(10, 1);
    for numd in [words, (1 << 28) - 1, u32::MAX] {
        assert_eq!(io.receive(handles.word(11, numd), MDTS).code, INVALID_FIELD, "{numd}");
    }
    assert_eq!(io.receive(handles.word(11, words - 1), MDTS).data.len(), MDTS);
    let log = Sqe::new(GET_LOG).namespace(u32::MAX).word(10, 2 | 0xffff << 16).word(11, 0xffff);
    assert_eq!(admin.receive(log, MDTS).code, INVALID_FIELD);
    let blocks = Sqe::new(BLOCKS).namespace(1).word(12, u32::MAX).word(13, 2 << 24);
    assert_eq!(admin.receive(blocks, MDTS).code, INVALID_FIELD);
    for opcode in [READ, WRITE, COMPARE] {
        assert_eq!(io.receive(Sqe::on(opcode, 0, 33), MDTS).code, INVALID_FIELD, "{opcode:x}");
    }
}

#[test]
fn the_number_of_a_living_controller_is_not_given_again() {
    let engine = engine(DriveOptions::default(), Pace::None);
    let epoch = engine.power().epoch().unwrap();
    let subsystem = Arc::new(Subsystem::new(Arc::new(engine), Identity::new("a toy", "alone")));
    let parameters = ControllerParameters {
        cntrltype: ControllerType::Io,
        address: None,
        hostid: [0; 16],
        kato: Duration::ZERO,
        epoch,
    };
    let make = || Controller::new(&subsystem, parameters);
    let victim = make().unwrap();
    for _ in 0..70_000 {
        assert_ne!(make().unwrap().cntlid, victim.cntlid);
    }
    let mut all: Vec<Controller> = (1..0xffef).map(|_| make().unwrap()).collect();
    let busy = make().err().expect("there are as many as there are numbers");
    assert_eq!(busy.code(), 0x181, "Connect Controller Busy");
    let number = all.swap_remove(1000).cntlid;
    assert_eq!(make().unwrap().cntlid, number, "the one that is free again");
}

#[test]
fn a_host_that_does_not_connect_in_time_is_left_and_one_that_did_may_rest() {
    let limits = Limits { handshake: Duration::from_millis(100), ..Limits::default() };
    let target = Target::limited(DriveOptions::default(), Pace::None, None, limits);
    let (mut admin, mut io) = target.host(0);
    let mut silent = std::net::TcpStream::connect(target.address).unwrap();
    assert_eq!(
        std::io::Read::read(&mut silent, &mut [0; 1]).unwrap_or(0),
        0,
        "before its greeting"
    );
    let mut greeted = Host::connect(target.address, 0);
    assert!(greeted.is_closed(), "before it connects");
    assert_eq!(admin.set_property(0x14, ENABLE).code, 0);
    assert_eq!(admin.ask(Sqe::new(KEEP_ALIVE)).code, 0);
    assert_eq!(io.read(0, 1), [0; 512]);
}

#[test]
fn beyond_the_maximum_hosts_are_refused_until_others_have_left() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let target = Target::limited(DriveOptions::default(), Pace::None, None, limits);
    let (admin, mut io) = target.host(0);
    let mut third = std::net::TcpStream::connect(target.address).unwrap();
    assert_eq!(std::io::Read::read(&mut third, &mut [0; 1]).unwrap_or(0), 0, "it is refused");
    assert_eq!(target.asks("refused_connections"), 1);
    assert_eq!(io.read(0, 1), [0; 512]);
    drop((admin, io));
    while target.server.connections() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(target.host(0).1.read(0, 1), [0; 512]);
}

#[test]
fn who_does_not_send_the_data_it_was_asked_for_is_left() {
    let limits = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let target = Target::limited(DriveOptions::default(), Pace::None, None, limits);
    let (_admin, controller) = Host::admin(target.address, &target.name, 0);
    let mut silent = Host::io(target.address, &target.name, 1, controller, 0);
    let mut other = Host::io(target.address, &target.name, 2, controller, 0);
    silent.submit(Sqe::on(WRITE, 0, 32).data(MDTS, 0x5a), &[]);
    assert_eq!(silent.unit().unwrap().kind, 9, "it is asked for");
    assert!(silent.is_closed());
    other.write(0, &[1; MDTS]);
    assert_eq!(other.read(0, 32), [1; MDTS]);
}

#[test]
fn hosts_share_less_memory_than_their_data_needs() {
    let limits = Limits { payload_bytes: 8 << 10, ..Limits::default() };
    let target = Target::limited(DriveOptions::default(), Pace::None, None, limits);
    let (_admin, controller) = Host::admin(target.address, &target.name, 0);
    std::thread::scope(|scope| {
        for queue in 1..=8 {
            let (address, name) = (target.address, &target.name);
            scope.spawn(move || {
                let mut host = Host::io(address, name, queue, controller, 0);
                for round in 0..20 {
                    let data = vec![round; MDTS];
                    host.write(u64::from(queue) * 32, &data);
                    assert_eq!(host.read(u64::from(queue) * 32, 32), data);
                }
            });
        }
    });
}
