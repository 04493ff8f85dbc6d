//! What clients may take of the machine: connections, time for a handshake, memory for payloads.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;
use ssdlab_wire::Limits;

use crate::client::{Client, READ, WRITE, command};
use crate::control::Control;
use crate::served::Served;
use ssdlab_testing::{CAPACITY, UNIT};

fn counter(served: &Served, name: &str) -> u64 {
    Control::to(served).ask(&json!({ "do": "counters" }))[name].as_u64().unwrap()
}

#[test]
fn beyond_the_maximum_clients_are_refused_until_others_have_left() {
    let served = Served::limited(Limits { connections: 3, ..Limits::default() });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::go(&served.socket, false)).collect();
    let mut refused = UnixStream::connect(&served.socket).unwrap();
    assert_eq!(refused.read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(counter(&served, "refused_connections"), 1, "the control socket is not counted");
    assert_eq!(clients[0].read(0, 512), [0; 512], "the others go on");
    clients.pop();
    while served.server.connections() == 3 {
        std::thread::yield_now();
    }
    assert_eq!(Client::go(&served.socket, false).read(0, 512), [0; 512]);
}

#[test]
fn a_silent_stranger_gives_way_to_a_client_where_no_place_is_left() {
    let served = Served::limited(Limits { connections: 3, ..Limits::default() });
    let mut client = Client::go(&served.socket, false);
    let mut first = UnixStream::connect(&served.socket).unwrap();
    first.read_exact(&mut [0; 18]).unwrap();
    let mut second = Client::connect(&served.socket);
    let mut third = Client::go(&served.socket, false);
    assert_eq!(first.read(&mut [0; 1]).unwrap_or(0), 0, "the oldest that has not negotiated");
    let _ = second.option(3, b"");
    assert_eq!([client.read(0, 512), third.read(0, 512)].concat(), [0; 1024]);
}

#[test]
fn who_does_not_negotiate_in_time_is_left_and_who_did_may_rest() {
    let handshake = Duration::from_millis(100);
    let served = Served::limited(Limits { handshake, ..Limits::default() });
    let mut client = Client::go(&served.socket, false);
    let mut silent = UnixStream::connect(&served.socket).unwrap();
    silent.read_exact(&mut [0; 18]).unwrap();
    assert_eq!(silent.read(&mut [0; 1]).unwrap_or(0), 0);
    let mut slow = Client::connect(&served.socket);
    assert!(slow.is_closed(), "it said hello and chose nothing");
    assert_eq!(client.read(0, 512), [0; 512]);
}

/// What this process has in memory, the server among it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Clients that announce a write of so many bytes each and send a part of it.
fn announcers(served: &Served, count: usize, bytes: u32, sent: usize) -> Vec<Client> {
    let announce = |_| {
        let mut client = Client::go(&served.socket, false);
        client.stream.write_all(&command((WRITE, 0), 1, (0, bytes), &vec![1; sent])).unwrap();
        client
    };
    (0..count).map(announce).collect()
}

#[test]
fn a_write_that_is_too_long_takes_no_memory_and_neither_does_one_that_does_not_come() {
    let served = Served::limited(Limits::default());
    let before = resident_bytes();
    let _too_long = announcers(&served, 24, 64 << 20, 0);
    let _silent = announcers(&served, 24, CAPACITY as u32, 0);
    let mut other = Client::go(&served.socket, false);
    // By then all headers were read.
    for _ in 0..100 {
        other.write(0, &vec![2; CAPACITY as usize]);
    }
    let more = resident_bytes().saturating_sub(before) >> 20;
    assert!(more < 256, "{more} MiB more for 48 headers");
}

#[test]
fn who_does_not_send_what_it_announced_is_left_and_who_sends_slowly_is_not() {
    let handshake = Duration::from_secs(4);
    let served = Served::limited(Limits { handshake, ..Limits::default() });
    let mut slow = announcers(&served, 1, 4 << 20, 0).pop().unwrap();
    let mut silent = announcers(&served, 1, 4 << 20, 300 << 10).pop().unwrap();
    // Pieces of 256 KiB and more, each in time; all of it takes longer than one may.
    for _ in 0..8 {
        std::thread::park_timeout(handshake / 8);
        slow.stream.write_all(&vec![3; 512 << 10]).unwrap();
    }
    assert_eq!(slow.reply(0).errno, 0);
    assert!(silent.is_closed());
    assert_eq!(slow.read(0, UNIT as u32), [3; UNIT as usize]);
}

#[test]
fn where_the_memory_is_used_up_a_client_is_served_although_others_send_no_more() {
    let served = Served::limited(Limits { payload_bytes: 1 << 20, ..Limits::default() });
    let stalled = announcers(&served, 8, 4 << 20, 512 << 10);
    let mut other = Client::go(&served.socket, false);
    assert_eq!(other.ask((READ, 0), (0, 512), b"").errno, 0, "what needs none does not wait");
    for round in 0..20 {
        other.write(0, &vec![round; 1 << 20]);
    }
    assert_eq!(other.read(0, 1 << 20), vec![19; 1 << 20]);
    drop(stalled);
}

#[test]
fn many_clients_with_long_writes_share_less_memory_than_one_of_them_needs() {
    let served = Served::limited(Limits { payload_bytes: 1 << 20, ..Limits::default() });
    std::thread::scope(|scope| {
        for number in 1..=8_u8 {
            let socket = &served.socket;
            scope.spawn(move || {
                let mut client = Client::go(socket, false);
                for _ in 0..5 {
                    client.write(u64::from(number - 1) << 20, &vec![number; 1 << 20]);
                    client.write(0, &vec![9; 4 << 20]);
                    client.write(u64::from(number - 1) << 20, &vec![number; 1 << 20]);
                }
            });
        }
    });
    assert_eq!(served.count("writes"), 8 * 5 * 3);
}
