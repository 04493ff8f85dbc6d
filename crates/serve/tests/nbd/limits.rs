//! What clients may take of the machine: connections, time for a handshake, memory for payloads.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;
use ssdlab_serve::Limits;

use crate::client::Client;
use crate::control::Control;
use crate::served::Served;

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
