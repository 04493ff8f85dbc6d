//! Long writes, which are received into their final memory without a copy.

use std::io::Write;

use serde_json::json;

use crate::prelude::*;

const LONG: u64 = 1 << 20;

/// Data that differs from page to page.
fn content(of: u64) -> Vec<u8> {
    (0..LONG).map(|at| (at / 512 + at * of) as u8).collect()
}

#[test]
fn long_writes_are_complete_if_they_arrive_in_pieces_with_others_between() {
    for piece in [7, 10_007, 300_000] {
        let server = TestServer::default();
        let mut client = Client::go(&server.socket, true).unwrap();
        let mut sent = Vec::new();
        for number in 0..3 {
            let (offset, short) = (number * 2 * LONG, [number as u8; 512]);
            sent.extend(request((CMD_WRITE, 0), number, (offset, LONG as u32), &content(number)));
            sent.extend(request((CMD_WRITE, 0), 10 + number, (offset + LONG, 512), &short));
            let apart = (offset + LONG + 512, LONG as u32 - 4096);
            sent.extend(request((CMD_WRITE, 0), 20 + number, apart, &content(9)[4096..]));
        }
        let mut sender = client.stream.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            sent.chunks(piece).for_each(|some| sender.write_all(some).unwrap());
        });
        let answered: Vec<u64> = (0..9).map(|_| client.reply(0).cookie).collect();
        sending.join().unwrap();
        assert_eq!(answered, [0, 10, 20, 1, 11, 21, 2, 12, 22]);
        for number in 0..3 {
            let there = client.read(number * 2 * LONG, 2 * LONG as u32);
            let (long, rest) = there.split_at(LONG as usize);
            assert!(long == content(number), "write {number} in pieces of {piece} bytes");
            assert_eq!(rest[..512], [number as u8; 512]);
            assert!(rest[512..][..LONG as usize - 4096] == content(9)[4096..]);
        }
    }
}

#[test]
fn an_incomplete_long_write_changes_nothing() {
    let (server, mut half) = TestServer::with_client();
    let request = request((CMD_WRITE, 0), 1, (0, LONG as u32), &content(1));
    half.stream.write_all(&request[..request.len() / 2]).unwrap();
    drop(half);
    wait_until(|| server.server.connections() == 0);
    let mut other = server.client();
    assert!(other.read(0, LONG as u32).iter().all(|byte| *byte == 0));
    assert_eq!(server.count("writes"), 0);
}

#[test]
fn a_cut_rolls_back_a_long_write() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &content(1));
    client.flush();
    for _ in 0..2 {
        client.write(0, &content(2));
        client.write(4096, &[3; 512]);
        client.write(LONG / 2, &content(4));
        assert!(server.server.power_cut(true).unwrap().lost.len() > 256);
        client = server.client();
        let there = client.read(0, 2 * LONG as u32);
        assert!(there == [content(1), vec![0; LONG as usize]].concat());
    }
}

#[test]
fn faults_hit_long_writes_like_short_ones() {
    for kind in ["lost", "torn", "misdirected"] {
        let (_server, mut control, mut client) = TestServer::with_control();
        control.call("fault", json!({ "kind": kind, "at": 1, "seed": 3 }));
        client.write(0, &content(1));
        let written = content(1);
        let all = client.read(0, 8 << 20);
        let (there, rest) = all.split_at(LONG as usize);
        let same = there.iter().zip(content(1)).take_while(|(one, other)| **one == *other).count();
        let found = all.chunks(4096).any(|page| *page == written[..4096]);
        match kind {
            "torn" => {
                assert!(same > 512 && same < there.len(), "{same} bytes");
                assert!(there[same.next_multiple_of(512)..].iter().all(|byte| *byte == 0));
            }
            "lost" => assert!(!found),
            _ => assert!(found && there != content(1)),
        }
        assert_eq!(rest.iter().any(|byte| *byte > 0), kind == "misdirected", "{kind}");
    }
}
