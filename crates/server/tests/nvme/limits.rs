//! Limits on hosts: MDTS, connections, memory.

use std::time::Duration;

use ssdlab_wire::Limits;

use crate::prelude::*;

/// Maximum data transfer size of the fake drive.
const MDTS: usize = 16 << 10;

#[test]
fn no_command_transfers_more_than_mdts() {
    let target = TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    let of_io = [WRITE, COMPARE, DATASET_MANAGEMENT, COPY, IO_MANAGEMENT_SEND];
    let of_admin = [SET_FEATURES, NAMESPACE_MANAGEMENT, NAMESPACE_ATTACHMENT];
    for (host, opcodes) in [(&mut io, &of_io[..]), (&mut admin, &of_admin)] {
        for opcode in opcodes {
            let entry = Entry::new(*opcode).nsid(1);
            for bytes in [MDTS + 4, u32::MAX as usize] {
                let completion = host.command_in(entry, bytes);
                assert_eq!(completion.status, INVALID_FIELD, "{opcode:x} of {bytes} bytes");
                assert!(completion.dnr, "Do Not Retry");
            }
        }
    }
    assert_eq!(io.command_in(Entry::new(FLUSH).nsid(1), MDTS + 4).status, 0, "a flush has no data");
    io.write(0, &[3; MDTS]);
    assert_eq!(io.read(0, 32), [3; MDTS], "a transfer of MDTS bytes is allowed");
}

#[test]
fn no_command_covers_more_than_mdts_by_its_own_fields() {
    let target = TestServer::new(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut admin, mut io) = target.host(0);
    let words = (MDTS / 4) as u32;
    let handles = Entry::new(IO_MANAGEMENT_RECEIVE).nsid(1).cdw(10, 1);
    for numd in [words, (1 << 28) - 1, u32::MAX] {
        assert_eq!(io.command_in(handles.cdw(11, numd), MDTS).status, INVALID_FIELD, "{numd}");
    }
    assert_eq!(io.command_in(handles.cdw(11, words - 1), MDTS).data.len(), MDTS);
    let log = Entry::new(GET_LOG_PAGE).nsid(u32::MAX).cdw(10, 2 | 0xffff << 16).cdw(11, 0xffff);
    assert_eq!(admin.command_in(log, MDTS).status, INVALID_FIELD);
    let blocks = Entry::new(GET_LBA_STATUS).nsid(1).cdw(12, u32::MAX).cdw(13, 2 << 24);
    assert_eq!(admin.command_in(blocks, MDTS).status, INVALID_FIELD);
    for opcode in [READ, WRITE, COMPARE] {
        let status = io.command_in(Entry::on(opcode, 0, 33), MDTS).status;
        assert_eq!(status, INVALID_FIELD, "{opcode:x}");
    }
}

#[test]
fn a_slow_handshake_is_closed_and_an_idle_host_is_not() {
    let limits = Limits { handshake: Duration::from_millis(100), ..Limits::default() };
    let target = TestServer::with_limits(limits);
    let (mut admin, mut io) = target.host(0);
    let mut silent = std::net::TcpStream::connect(target.address).unwrap();
    assert_eq!(std::io::Read::read(&mut silent, &mut [0; 1]).unwrap_or(0), 0, "before ICReq");
    let mut silent = Host::connect(target.address, 0).unwrap();
    assert!(silent.is_closed(), "before Connect");
    assert_eq!(admin.set_property(CC, CC_ENABLE).status, 0);
    assert_eq!(admin.command(Entry::new(KEEP_ALIVE)).status, 0);
    assert_eq!(io.read(0, 1), [0; 512]);
}

#[test]
fn hosts_beyond_the_maximum_are_refused_until_others_leave() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let target = TestServer::with_limits(limits);
    let (admin, mut io) = target.host(0);
    let mut third = std::net::TcpStream::connect(target.address).unwrap();
    // The connection is refused.
    assert_eq!(std::io::Read::read(&mut third, &mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(target.server_count("refused_connections"), 1);
    assert_eq!(io.read(0, 1), [0; 512]);
    drop((admin, io));
    wait_until(|| target.server.connections() == 0);
    assert_eq!(target.host(0).1.read(0, 1), [0; 512]);
}

#[test]
fn a_host_that_does_not_send_the_data_of_an_r2t_is_disconnected() {
    let limits = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let target = TestServer::with_limits(limits);
    let (_admin, controller) = target.admin(0);
    let mut silent = target.io(1, controller, 0);
    let mut other = target.io(2, controller, 0);
    silent.submit(Entry::on(WRITE, 0, 32).data(MDTS, SGL_TRANSPORT), &[]);
    assert_eq!(silent.receive_pdu().unwrap().kind, R2T, "R2T");
    assert!(silent.is_closed());
    other.write(0, &[1; MDTS]);
    assert_eq!(other.read(0, 32), [1; MDTS]);
}

#[test]
fn all_writes_complete_with_less_memory_than_they_need_together() {
    let limits = Limits { payload_bytes: 8 << 10, ..Limits::default() };
    let target = TestServer::with_limits(limits);
    let (_admin, controller) = target.admin(0);
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
