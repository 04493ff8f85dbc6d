//! Long writes, which are received where they are to stay, are as whole as short ones.

use std::io::Write;

use serde_json::json;
use ssdlab_engine::Pace;

use crate::client::{Client, WRITE, command};
use crate::control::Control;
use crate::served::Served;
use ssdlab_testing::DriveOptions;

const LONG: u64 = 1 << 20;

/// Bytes that differ from page to page.
fn content(of: u64) -> Vec<u8> {
    (0..LONG).map(|at| (at / 512 + at * of) as u8).collect()
}

#[test]
fn long_writes_that_come_in_pieces_with_others_between_are_whole() {
    for piece in [7, 10_007, 300_000] {
        let served = Served::new(DriveOptions::default(), Pace::None);
        let mut client = Client::go(&served.socket, true);
        let mut sent = Vec::new();
        for number in 0..3 {
            let (offset, short) = (number * 2 * LONG, [number as u8; 512]);
            sent.extend(command((WRITE, 0), number, (offset, LONG as u32), &content(number)));
            sent.extend(command((WRITE, 0), 10 + number, (offset + LONG, 512), &short));
            let apart = (offset + LONG + 512, LONG as u32 - 4096);
            sent.extend(command((WRITE, 0), 20 + number, apart, &content(9)[4096..]));
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
            assert!(long == content(number), "the {number}th in pieces of {piece}");
            assert_eq!(rest[..512], [number as u8; 512]);
            assert!(rest[512..][..LONG as usize - 4096] == content(9)[4096..]);
        }
    }
}

#[test]
fn half_a_long_write_is_none() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut half = Client::go(&served.socket, false);
    let asked = command((WRITE, 0), 1, (0, LONG as u32), &content(1));
    half.stream.write_all(&asked[..asked.len() / 2]).unwrap();
    drop(half);
    while served.server.connections() > 0 {
        std::thread::yield_now();
    }
    let mut other = Client::go(&served.socket, false);
    assert!(other.read(0, LONG as u32).iter().all(|byte| *byte == 0));
    assert_eq!(served.count("writes"), 0);
}

#[test]
fn what_a_long_write_replaced_is_back_after_a_cut() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut client = Client::go(&served.socket, false);
    client.write(0, &content(1));
    client.flush();
    for _ in 0..2 {
        client.write(0, &content(2));
        client.write(4096, &[3; 512]);
        client.write(LONG / 2, &content(4));
        assert!(served.server.power_cut(true).unwrap().lost.len() > 256);
        client = Client::go(&served.socket, false);
        let there = client.read(0, 2 * LONG as u32);
        assert!(there[..LONG as usize] == content(1));
        assert!(there[LONG as usize..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_long_write_is_lost_or_torn_or_goes_astray_as_a_short_one_does() {
    for kind in ["lost", "torn", "misdirected"] {
        let served = Served::new(DriveOptions::default(), Pace::None);
        let mut control = Control::to(&served);
        let mut client = Client::go(&served.socket, false);
        control.ask(&json!({ "do": "fault", "kind": kind, "at": 1, "seed": 3 }));
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
