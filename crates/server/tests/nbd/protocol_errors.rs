//! Clients that violate the protocol, disconnect or stall do not affect other clients.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::net::UnixStream;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::prelude::*;

/// The bytes of a valid handshake, to be mutated.
fn handshake() -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    for (option, data) in [(8_u32, Vec::new()), (3, Vec::new()), (7, go_data(b"toy"))] {
        bytes.extend(b"IHAVEOPT");
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

fn valid_session() -> Vec<u8> {
    let mut bytes = handshake();
    for number in 0..8_u64 {
        bytes.extend(request((CMD_WRITE, 0), number, (number * 4096, 512), &[1; 512]));
        bytes.extend(request((number as u16, 0), number, (number * 4096, 4096), b""));
    }
    bytes
}

#[test]
fn a_mutated_session_does_not_affect_other_clients() {
    let server = TestServer::default();
    let witness = RefCell::new(server.client());
    let session = valid_session();
    let mutations = vec((0..session.len(), any::<u8>()), 1..6);
    let config = ProptestConfig::with_cases(scaled(500));
    proptest!(config, |(changed in mutations, keep in 0..session.len())| {
        let mut mutated = session.clone();
        for (at, byte) in changed {
            mutated[at] = byte;
        }
        let mut stream = UnixStream::connect(&server.socket).unwrap();
        // The server may close the connection early.
        let _ = stream.write_all(&mutated[..keep.max(1)]);
        drop(stream);
        assert_eq!(witness.borrow_mut().read(7 << 20, 4096).len(), 4096);
    });
    wait_until(|| server.server.connections() <= 1);
}

#[test]
fn a_client_that_does_not_speak_nbd_is_disconnected() {
    let server = TestServer::default();
    for noise in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0xff; 64], &[0; 64]] {
        let mut client = UnixStream::connect(&server.socket).unwrap();
        let _ = client.write_all(noise);
        let mut client = Client::over(client);
        client.receive(18);
        assert!(client.is_closed());
    }
}

#[test]
fn other_clients_are_served_after_one_disconnects_within_a_request() {
    let (server, mut half) = TestServer::with_client();
    let request = request((CMD_WRITE, 0), 1, (0, 1 << 20), &[1; 100]);
    half.stream.write_all(&request).unwrap();
    let mut other = server.client();
    assert_eq!(other.read(0, 512), [0; 512]);
    drop(half);
    assert_eq!(other.read(0, 512), [0; 512], "an incomplete write changes nothing");
}

#[test]
fn sixty_four_concurrent_clients_are_all_served() {
    let server = TestServer::default();
    std::thread::scope(|scope| {
        for number in 0..64_u64 {
            let socket = &server.socket;
            scope.spawn(move || {
                let mut client = Client::go(socket, number % 2 == 0).unwrap();
                for round in 0..50 {
                    let bytes = vec![(number + round) as u8; 4096];
                    client.write(number * 8192, &bytes);
                    assert_eq!(client.read(number * 8192, 4096), bytes);
                }
            });
        }
    });
    assert_eq!(server.count("writes"), 64 * 50);
}

#[test]
fn a_write_far_beyond_the_limit_disconnects_and_a_long_one_is_refused() {
    let (_server, mut client) = TestServer::with_client();
    client.send((CMD_WRITE, 0), 1, (0, 33 << 20), &vec![1; 33 << 20]);
    assert_eq!(client.reply(0).errno, 75);
    assert_eq!(client.request((CMD_READ, 0), (0, 512), b"").errno, 0);
    client.stream.write_all(&request((CMD_WRITE, 0), 1, (0, u32::MAX), b"")).unwrap();
    assert!(client.is_closed());
}

#[test]
fn a_stopping_server_disconnects_its_clients_and_removes_its_socket() {
    let mut server = TestServer::default();
    let mut client = server.client();
    server.server.stop();
    assert!(client.is_closed());
    assert!(!server.socket.exists());
}
