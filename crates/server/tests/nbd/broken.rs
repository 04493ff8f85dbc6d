//! Clients that break the protocol, vanish or stall: they harm nobody but themselves.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::net::UnixStream;

use proptest::collection::vec;
use proptest::prelude::*;
use ssdlab_engine::Pace;

use crate::client::{Client, READ, WRITE, command, go};
use crate::served::Served;
use ssdlab_testing::DriveOptions;

/// What a well-behaved client sends, to be mutated.
fn handshake() -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    for (option, data) in [(8_u32, Vec::new()), (3, Vec::new()), (7, go(b"toy"))] {
        bytes.extend(b"IHAVEOPT");
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

fn whole_talk() -> Vec<u8> {
    let mut bytes = handshake();
    for number in 0..8_u64 {
        bytes.extend(command((WRITE, 0), number, (number * 4096, 512), &[1; 512]));
        bytes.extend(command((number as u16, 0), number, (number * 4096, 4096), b""));
    }
    bytes
}

/// How many; `SSDLAB_FUZZ=100000` for a long run.
fn talks() -> u32 {
    std::env::var("SSDLAB_FUZZ").map_or(3000, |count| count.parse().expect("a number"))
}

#[test]
fn a_mutated_talk_harms_no_other_client() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let witness = RefCell::new(Client::go(&served.socket, false));
    let talk = whole_talk();
    let mutations = vec((0..talk.len(), any::<u8>()), 1..6);
    proptest!(ProptestConfig::with_cases(talks()), |(changed in mutations, keep in 0..talk.len())| {
        let mut mutated = talk.clone();
        for (at, byte) in changed {
            mutated[at] = byte;
        }
        let mut stream = UnixStream::connect(&served.socket).unwrap();
        // The server may hang up in the middle.
        let _ = stream.write_all(&mutated[..keep.max(1)]);
        drop(stream);
        assert_eq!(witness.borrow_mut().read(7 << 20, 4096).len(), 4096);
    });
    while served.server.connections() > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn noise_is_hung_up_on() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    for noise in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0xff; 64], &[0; 64]] {
        let mut client = UnixStream::connect(&served.socket).unwrap();
        let _ = client.write_all(noise);
        let mut client = Client::over(client);
        client.take(18);
        assert!(client.is_closed());
    }
}

#[test]
fn half_a_request_and_a_vanished_client_leave_the_others_served() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut half = Client::go(&served.socket, false);
    let asked = command((WRITE, 0), 1, (0, 1 << 20), &[1; 100]);
    half.stream.write_all(&asked).unwrap();
    let mut other = Client::go(&served.socket, false);
    assert_eq!(other.read(0, 512), [0; 512]);
    drop(half);
    assert_eq!(other.read(0, 512), [0; 512], "half a write was none");
}

#[test]
fn sixty_four_clients_at_once_are_all_served() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    std::thread::scope(|scope| {
        for number in 0..64_u64 {
            let socket = &served.socket;
            scope.spawn(move || {
                let mut client = Client::go(socket, number % 2 == 0);
                for round in 0..50 {
                    let bytes = vec![(number + round) as u8; 4096];
                    client.write(number * 8192, &bytes);
                    assert_eq!(client.read(number * 8192, 4096), bytes);
                }
            });
        }
    });
    assert_eq!(served.count("writes"), 64 * 50);
}

#[test]
fn a_write_without_end_is_hung_up_on_and_a_long_one_refused() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut client = Client::go(&served.socket, false);
    client.send((WRITE, 0), 1, (0, 33 << 20), &vec![1; 33 << 20]);
    assert_eq!(client.reply(0).errno, 75);
    assert_eq!(client.ask((READ, 0), (0, 512), b"").errno, 0);
    client.stream.write_all(&command((WRITE, 0), 1, (0, u32::MAX), b"")).unwrap();
    assert!(client.is_closed());
}

#[test]
fn a_server_that_stops_breaks_off_its_clients_and_removes_its_socket() {
    let mut served = Served::new(DriveOptions::default(), Pace::None);
    let mut client = Client::go(&served.socket, false);
    served.server.stop();
    assert!(client.is_closed());
    assert!(!served.socket.exists());
}
