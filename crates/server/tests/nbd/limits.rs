//! Limits on clients: connections, time for the handshake, memory for payloads.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ssdlab_wire::Limits;

use crate::prelude::*;

#[test]
fn clients_beyond_the_maximum_are_refused_until_others_leave() {
    let server = TestServer::with_limits(Limits { connections: 3, ..Limits::default() });
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    let mut refused = UnixStream::connect(&server.socket).unwrap();
    assert_eq!(refused.read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(server.server_count("refused_connections"), 1, "the control socket is not counted");
    assert_eq!(clients[0].read(0, 512), [0; 512], "other clients are still served");
    clients.pop();
    wait_until(|| server.server.connections() != 3);
    assert_eq!(server.client().read(0, 512), [0; 512]);
}

#[test]
fn the_65th_control_connection_is_refused_until_another_leaves() {
    let server = TestServer::with_limits(Limits::default());
    let answers = || -> io::Result<Control> {
        let mut control = Control::connect(&server.control)?;
        control.try_send(r#"{"do": "counters"}"#).map(|_| control)
    };
    let mut open: Vec<Control> = (0..64).map(|_| answers().unwrap()).collect();
    assert!(answers().is_err());
    assert!(open[0].verb("counters")["refused_connections"].as_u64() >= Some(1));
    open.pop();
    wait_until(|| answers().is_ok());
}

#[test]
fn at_the_maximum_the_oldest_connection_in_its_handshake_is_replaced() {
    let server = TestServer::with_limits(Limits { connections: 3, ..Limits::default() });
    let mut client = server.client();
    let mut first = UnixStream::connect(&server.socket).unwrap();
    first.read_exact(&mut [0; 18]).unwrap();
    let mut second = Client::connect(&server.socket).unwrap();
    let mut third = server.client();
    assert_eq!(first.read(&mut [0; 1]).unwrap_or(0), 0, "the oldest in its handshake is closed");
    let _ = second.option(3, b"");
    assert_eq!([client.read(0, 512), third.read(0, 512)].concat(), [0; 1024]);
}

#[test]
fn a_slow_handshake_is_closed_and_an_idle_client_is_not() {
    let handshake = Duration::from_millis(100);
    let server = TestServer::with_limits(Limits { handshake, ..Limits::default() });
    let mut client = server.client();
    let mut silent = UnixStream::connect(&server.socket).unwrap();
    silent.read_exact(&mut [0; 18]).unwrap();
    assert_eq!(silent.read(&mut [0; 1]).unwrap_or(0), 0);
    let mut slow = Client::connect(&server.socket).unwrap();
    assert!(slow.is_closed(), "the client selected no export in time");
    assert_eq!(client.read(0, 512), [0; 512]);
}

/// Resident memory of this process, which includes the server.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Clients that each send the header of a write of `bytes` bytes and the first `sent` bytes of its
/// data.
fn announcers(server: &TestServer, count: usize, bytes: u32, sent: usize) -> Vec<Client> {
    let announce = |_| {
        let mut client = server.client();
        client.stream.write_all(&request((CMD_WRITE, 0), 1, (0, bytes), &vec![1; sent])).unwrap();
        client
    };
    (0..count).map(announce).collect()
}

#[test]
fn write_headers_alone_take_no_memory() {
    let server = TestServer::with_limits(Limits::default());
    let before = resident_bytes();
    let _too_long = announcers(&server, 24, 64 << 20, 0);
    let _silent = announcers(&server, 24, CAPACITY as u32, 0);
    let mut other = server.client();
    // The server has read all headers by then.
    for _ in 0..100 {
        other.write(0, &vec![2; CAPACITY as usize]);
    }
    let more = resident_bytes().saturating_sub(before) >> 20;
    assert!(more < 256, "{more} MiB more for 48 headers");
}

#[test]
fn a_client_that_stops_sending_is_closed_and_a_slow_one_is_not() {
    let handshake = Duration::from_secs(4);
    let server = TestServer::with_limits(Limits { handshake, ..Limits::default() });
    let mut slow = announcers(&server, 1, 4 << 20, 0).pop().unwrap();
    let mut silent = announcers(&server, 1, 4 << 20, 300 << 10).pop().unwrap();
    // Each piece of 256 KiB or more is in time; all pieces together exceed the limit of one.
    for _ in 0..8 {
        std::thread::park_timeout(handshake / 8);
        slow.stream.write_all(&vec![3; 512 << 10]).unwrap();
    }
    assert_eq!(slow.reply(0).errno, 0);
    assert!(silent.is_closed());
    assert_eq!(slow.read(0, UNIT as u32), [3; UNIT as usize]);
}

#[test]
fn when_memory_is_used_up_a_client_is_served_although_others_stop_sending() {
    let server = TestServer::with_limits(Limits { payload_bytes: 1 << 20, ..Limits::default() });
    let stalled = announcers(&server, 8, 4 << 20, 512 << 10);
    let mut other = server.client();
    // A read needs no memory and does not wait.
    assert_eq!(other.request((CMD_READ, 0), (0, 512), b"").errno, 0);
    for round in 0..20 {
        other.write(0, &vec![round; 1 << 20]);
    }
    assert_eq!(other.read(0, 1 << 20), vec![19; 1 << 20]);
    drop(stalled);
}

#[test]
fn many_long_writes_complete_with_less_memory_than_one_needs() {
    let server = TestServer::with_limits(Limits { payload_bytes: 1 << 20, ..Limits::default() });
    std::thread::scope(|scope| {
        for number in 1..=8_u8 {
            let socket = &server.socket;
            scope.spawn(move || {
                let mut client = Client::go(socket, false).unwrap();
                for _ in 0..5 {
                    client.write(u64::from(number - 1) << 20, &vec![number; 1 << 20]);
                    client.write(0, &vec![9; 4 << 20]);
                    client.write(u64::from(number - 1) << 20, &vec![number; 1 << 20]);
                }
            });
        }
    });
    assert_eq!(server.count("writes"), 8 * 5 * 3);
}
