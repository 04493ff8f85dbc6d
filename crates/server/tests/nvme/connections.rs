//! Connections: Connect commands, properties, keep-alive, and what ends a connection.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::prelude::*;

#[test]
fn commands_sent_together_with_connect_are_executed_in_order() {
    let target = TestServer::default();
    let (_admin, cntlid) = target.admin(0);
    let connect = host_data(&target.name, cntlid);
    let mut io = Host::connect(target.address, 0).unwrap();
    let (write, read) = (Entry::on(WRITE, 0, 1).cid(1), Entry::on(READ, 0, 1).cid(2));
    let pdus = [
        capsule(Entry::connect(1).data(connect.len(), SGL_IN_CAPSULE), &connect, 0),
        capsule(write.data(512, SGL_IN_CAPSULE), &[7; 512], 0),
        capsule(read.data(512, SGL_TRANSPORT), &[], 0),
    ];
    io.stream.write_all(&pdus.concat()).unwrap();
    assert_eq!(io.complete(&[]).unwrap().status, 0, "Connect");
    // Completions of one batch may arrive in any order.
    let mut completions = [(); 2].map(|()| io.complete(&[]).unwrap());
    completions.sort_by_key(|completion| completion.cid);
    let [write, read] = completions;
    assert_eq!((write.cid, write.status), (1, 0));
    assert_eq!((read.cid, read.status, read.data), (2, 0, vec![7; 512]));
}

#[test]
fn invalid_connect_commands_are_refused() {
    let target = TestServer::default();
    let mut early = Host::connect(target.address, 0).unwrap();
    // No command is allowed before Connect.
    assert_eq!(early.command(Entry::new(FLUSH).nsid(1)).status, COMMAND_SEQUENCE_ERROR);
    let property = Entry::fabrics(PROPERTY_GET).cdw(11, 8);
    assert_eq!(early.command(property).status, COMMAND_SEQUENCE_ERROR);
    let mut host = Host::connect(target.address, 0).unwrap();
    let wrong = host.connect_queue("nqn.other", 0, NEW_CONTROLLER, 0);
    // SUBNQN in the data is invalid.
    assert_eq!((wrong.status, wrong.result), (0x182, 256 | 1 << 16));
    // A host cannot select its controller.
    assert_eq!(host.connect_queue(&target.name, 0, 3, 0).status, CONNECT_INVALID_PARAMETERS);
    // The controller does not exist.
    assert_eq!(host.connect_queue(&target.name, 1, 99, 0).status, CONNECT_INVALID_PARAMETERS);
    let connected = host.connect_queue(&target.name, 0, NEW_CONTROLLER, 0);
    assert_eq!(connected.status, 0);
    let again = host.connect_queue(&target.name, 0, NEW_CONTROLLER, 0);
    assert_eq!(again.status, COMMAND_SEQUENCE_ERROR, "the connection is already a queue");
    let number = connected.result as u16;
    let mut io = Host::connect(target.address, 0).unwrap();
    // The controller is not enabled.
    assert_eq!(io.connect_queue(&target.name, 1, number, 0).status, COMMAND_SEQUENCE_ERROR);
    host.set_property(CC, CC_ENABLE);
    assert_eq!(io.connect_queue(&target.name, 65, number, 0).status, CONNECT_INVALID_PARAMETERS);
    assert_eq!(io.connect_queue(&target.name, 1, number, 0).status, 0);
    let mut second = Host::connect(target.address, 0).unwrap();
    // The queue is already connected.
    assert_eq!(second.connect_queue(&target.name, 1, number, 0).status, CONNECT_INVALID_PARAMETERS);
    // Properties are for the admin queue only.
    assert_eq!(io.command(property).status, COMMAND_SEQUENCE_ERROR);
}

#[test]
fn queue_sizes_and_host_identifiers_are_checked() {
    let target = TestServer::default();
    let (_admin, controller) = target.admin(0);
    let mut io = Host::connect(target.address, 0).unwrap();
    let long = Entry::fabrics(CONNECT).cdw(10, 1 << 16).cdw(11, 128);
    let data = host_data(&target.name, controller);
    let refused = io.command_out(long, &data);
    assert_eq!((refused.status, refused.result), (CONNECT_INVALID_PARAMETERS, 44));
    let short = Entry::fabrics(CONNECT).cdw(10, 1 << 16);
    // A queue has two entries or more.
    assert_eq!(io.command_out(short, &data).status, CONNECT_INVALID_PARAMETERS);
    let mut other_host = data.clone();
    other_host[..16].fill(8);
    let refused = io.command_out(Entry::connect(1), &other_host);
    // HOSTID in the data is invalid.
    assert_eq!((refused.status, refused.result), (CONNECT_INVALID_PARAMETERS, 1 << 16));
    assert_eq!(io.connect_queue(&target.name, 1, controller, 0).status, 0);
}

#[test]
fn a_completion_has_the_submission_queue_head() {
    let target = TestServer::default();
    let mut host = Host::connect(target.address, 0).unwrap();
    let data = host_data(&target.name, NEW_CONTROLLER);
    let entry = Entry::fabrics(CONNECT).cdw(11, 3);
    assert_eq!(host.command_out(entry, &data).status, 0);
    let mut heads = Vec::new();
    for _ in 0..5 {
        host.submit(Entry::fabrics(PROPERTY_GET).cdw(11, 8).data(0, SGL_TRANSPORT), &[]);
        let pdu = host.receive_pdu().unwrap();
        assert_eq!(pdu.kind, CAPSULE_RESP);
        heads.push(u16::from_le_bytes([pdu.header[16], pdu.header[17]]));
    }
    assert_eq!(heads, [2, 3, 0, 1, 2], "of four entries; Connect took the first");
}

#[test]
fn a_command_with_data_and_a_result_gets_a_response_without_flow_control_too() {
    let target = TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let mut host = Host::connect(target.address, 0).unwrap();
    let data = host_data(&target.name, NEW_CONTROLLER);
    assert_eq!(host.command_out(Entry::fabrics(CONNECT).cdw(11, 31 | 1 << 18), &data).status, 0);
    assert_eq!(host.set_property(CC, CC_ENABLE).status, 0);
    let events = Entry::new(GET_FEATURES).nsid(1).cdw(10, 0x1e).cdw(11, 2 << 16);
    let completion = host.command_in(events, 4);
    assert_eq!((completion.result, completion.data), (2, vec![0, 0, 3, 0]));
    host.submit(Entry::new(IDENTIFY).cdw(10, 1).data(4096, SGL_TRANSPORT), &[]);
    let pdu = host.receive_pdu().unwrap();
    // The data has the SUCCESS flag if the result is zero.
    assert_eq!((pdu.kind, pdu.flags & 8), (7, 8));
    assert_eq!(host.command(Entry::new(KEEP_ALIVE)).status, 0);
}

#[test]
fn properties_have_the_values_of_the_specification() {
    let target = TestServer::default();
    let (mut admin, _) = target.admin(0);
    let capabilities = admin.property(0);
    assert_eq!(capabilities & 0xffff, 127);
    assert_eq!((capabilities >> 16 & 1, capabilities >> 37 & 1), (1, 1));
    assert_eq!((admin.property(8), admin.property(CC)), (0x0002_0000, CC_ENABLE));
    assert_eq!(admin.property(0x1c), 1);
    assert_eq!(admin.set_property(CC, CC_ENABLE | 1 << 14).status, 0);
    assert_eq!(admin.property(0x1c) >> 2 & 3, 2, "shutdown is complete");
    for (offset, wide) in [(0x30, 0), (0, 0), (8, 1)] {
        let entry = Entry::fabrics(PROPERTY_GET).cdw(10, wide).cdw(11, offset);
        assert_eq!(admin.command(entry).status, INVALID_FIELD, "{offset:x}");
    }
    assert_eq!(admin.set_property(0x1c, 0).status, INVALID_FIELD);
    admin.set_property(CC, 0);
    admin.set_property(CC, CC_ENABLE | 1 << 20);
    assert_eq!(admin.property(0x1c) & 3, 2, "entries of 32 bytes are not supported");
}

#[test]
fn a_normal_shutdown_loses_no_data() {
    let (target, mut admin, mut io) = TestServer::with_host();
    io.write(0, &[1; 512]);
    admin.set_property(CC, CC_ENABLE | 1 << 14);
    assert!(io.is_closed(), "the I/O queues are disconnected");
    assert!(target.server.power_cut(true).unwrap().lost.is_empty());
    assert_eq!(target.host(0).1.read(0, 1), [1; 512]);
}

#[test]
fn thirty_two_connections_read_back_what_each_wrote() {
    let target = TestServer::default();
    let (_admin, controller) = target.admin(0);
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
fn a_reset_under_load_ends_the_queues_and_the_next_host_is_served() {
    let target = TestServer::default();
    for round in 0..10 {
        let (mut admin, mut io) = target.host(round % 4);
        for first in 0..64 {
            io.submit(Entry::on(WRITE, first, 1).data(512, SGL_IN_CAPSULE), &[9; 512]);
            io.submit(Entry::on(READ, first, 8).data(4096, SGL_TRANSPORT), &[]);
            // The data for the R2T is never sent.
            io.submit(Entry::on(WRITE, first, 16).data(8192, SGL_TRANSPORT), &[]);
        }
        assert_eq!(admin.set_property(CC, CC_ENABLE - 1).status, 0);
        assert!(io.is_closed());
        assert_eq!(admin.property(0x1c) & 1, 0);
        assert_eq!(admin.set_property(CC, CC_ENABLE).status, 0);
        assert_eq!(admin.property(0x1c) & 1, 1);
    }
    let (_admin, mut io) = target.host(0);
    io.write(0, &[1; 512]);
    assert_eq!(io.read(0, 1), [1; 512]);
}

#[test]
fn a_host_loses_its_queues_after_the_keep_alive_timeout() {
    let target = TestServer::default();
    let (mut admin, controller) = target.admin(0);
    let mut io = target.io(1, controller, 0);
    let patience = Entry::new(SET_FEATURES).cdw(10, 15).cdw(11, 50);
    assert_eq!(admin.command(patience).status, 0);
    assert!(admin.is_closed(), "the host sent nothing");
    assert!(io.is_closed());
    let mut late = Host::connect(target.address, 0).unwrap();
    let late = late.connect_queue(&target.name, 1, controller, 0);
    assert_eq!(late.status, CONNECT_INVALID_PARAMETERS);
}

#[test]
fn connect_sets_the_keep_alive_timeout() {
    let target = TestServer::default();
    let mut host = Host::connect(target.address, 0).unwrap();
    assert_eq!(host.connect_queue(&target.name, 0, NEW_CONTROLLER, 50).status, 0);
    assert!(host.is_closed());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "detects that the machine has stalled")]
fn traffic_on_any_queue_keeps_a_host_alive() {
    let target = TestServer::default();
    let patience = Duration::from_millis(400);
    let silent = Entry::new(SET_FEATURES).cdw(10, 15).cdw(11, patience.as_millis() as u32);
    // Whether the connections lasted; `None` if the machine stalled, so that the host was silent.
    let lasts = || {
        let (mut admin, controller) = target.admin(0);
        let mut io = target.io(1, controller, 0);
        // Identify reports traffic-based keep-alive.
        assert_eq!(admin.identify(1, 0)[96] >> 6 & 1, 1);
        let begun = Instant::now();
        let (mut last, mut is_there) = (begun, admin.try_command(silent).is_ok());
        while is_there && begun.elapsed() < 4 * patience {
            thread::sleep(patience / 20);
            let request = Instant::now();
            is_there = io.try_command(Entry::new(FLUSH).nsid(1)).is_ok();
            if last.elapsed() >= patience {
                return None;
            }
            last = request;
        }
        let is_there = is_there && admin.try_command(Entry::new(KEEP_ALIVE)).is_ok();
        (last.elapsed() < patience).then_some(is_there)
    };
    let lasted = (0..1000).find_map(|_| lasts());
    assert_eq!(lasted, Some(true), "its I/O queue had traffic");
}

#[test]
fn the_end_of_the_admin_queue_ends_the_io_queues() {
    let (_target, admin, mut io) = TestServer::with_host();
    drop(admin);
    assert!(io.is_closed());
}

#[test]
fn a_host_that_disconnects_within_a_pdu_does_not_affect_others() {
    let (target, _admin, mut io) = TestServer::with_host();
    for length in [1, 8, 40, 100] {
        let (_other, mut vanishing) = target.host(0);
        let mut pdu = vec![4, 0, 72, 72, 0, 0, 0, 0];
        pdu[4..8].copy_from_slice(&(72_u32 + 512).to_le_bytes());
        pdu.extend(Entry::on(WRITE, 0, 1).data(512, SGL_IN_CAPSULE).0);
        pdu.resize(72 + 512, 3);
        vanishing.stream.write_all(&pdu[..length]).unwrap();
    }
    assert_eq!(io.read(0, 1), [0; 512]);
    io.write(0, &[1; 512]);
}
