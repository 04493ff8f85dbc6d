//! Power cuts: their triggers; flushed data is kept, and other writes are rolled back.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::json;
use ssdlab_time::{Nanos, Random};

use crate::prelude::*;

fn is_on(control: &mut Control) -> bool {
    control.verb("power")["power"] == "on"
}

fn cut(server: &TestServer) -> usize {
    server.server.power_cut(true).unwrap().lost.len()
}

/// Whether the server greets a new client.
fn is_served(socket: &Path) -> bool {
    let mut client = Client::over(UnixStream::connect(socket).unwrap());
    !client.is_closed()
}

#[test]
fn no_client_is_served_between_a_power_cut_and_power_on() {
    let (server, mut control, mut client) = TestServer::with_control();
    client.write(0, &[1; 4096]);
    client.flush();
    client.write(0, &[2; 4096]);
    client.write(0, &[3; 4096]);
    let reply = control.verb("power-cut");
    assert_eq!(reply["cut"], json!({ "lost_units": 1, "lost_writes": 2, "unanswered": 0 }));
    assert!(client.is_closed());
    assert!(!is_served(&server.socket));
    assert!(control.verb("power-cut")["error"].is_string());
    assert_eq!(control.verb("power-on")["cuts"], 1);
    assert!(control.verb("power-on")["error"].is_string());
    assert_eq!(server.client().read(0, 4096), [1; 4096]);
}

#[test]
fn a_planned_cut_comes_in_the_middle_of_the_nth_write() {
    for most_at_once in [1, 5] {
        let (server, mut control, mut client) = TestServer::with_control();
        let plan = control.call("power-cut", json!({ "after_writes": 7 }));
        assert_eq!(plan["planned"]["after_writes"], 7);
        let mut answered = 0;
        'writes: for first in (0_u64..).step_by(most_at_once) {
            let numbers = first..first + most_at_once as u64;
            let all = numbers.flat_map(|number| {
                request((CMD_WRITE, 0), number, (number * UNIT, 4096), &[number as u8 + 1; 4096])
            });
            client.stream.write_all(&all.collect::<Vec<_>>()).unwrap();
            for _ in 0..most_at_once {
                if client.try_reply(0).is_err() {
                    break 'writes;
                }
                answered += 1;
            }
        }
        // Writes of the same batch as the last one are not acknowledged either.
        assert!((7 - most_at_once..7).contains(&answered), "{answered} answered");
        wait_until(|| !is_on(&mut control));
        assert_eq!(server.count("writes"), 7, "no write follows the seventh");
        let last = &control.verb("power")["last"];
        assert_eq!(last["lost_writes"], 7, "nothing was flushed");
        assert_eq!(last["unanswered"], 7 - answered);
    }
}

#[test]
fn a_random_cut_is_the_same_for_the_same_seed_and_power_can_return_at_once() {
    let writes_until_cut = |seed: u64| {
        let (server, mut control, mut client) = TestServer::with_control();
        let random = json!({ "seed": seed, "writes": 50 });
        control.call("power-cut", json!({ "random": random, "on": true }));
        loop {
            client.send((CMD_WRITE, 0), 1, (0, 4096), &[1; 4096]);
            if client.try_reply(0).is_err() {
                break;
            }
        }
        let writes = server.count("writes");
        wait_until(|| control.verb("power")["cuts"] != 0);
        assert_eq!(server.client().read(0, 512), [0; 512]);
        assert!((1..=50).contains(&writes));
        writes
    };
    let writes: Vec<u64> = (0..8).map(writes_until_cut).collect();
    assert_eq!(writes, (0..8).map(writes_until_cut).collect::<Vec<_>>());
    assert!(writes.iter().any(|each| *each != writes[0]));
}

#[test]
fn a_delayed_cut_comes_and_the_drive_clock_stops_without_power() {
    let slow = DriveOptions { latency: Nanos::from_secs(3600), ..DriveOptions::default() };
    let server = TestServer::paced(slow, 1.0);
    let mut control = server.control();
    let mut client = server.client();
    client.send((CMD_WRITE, 0), 1, (0, 4096), &[1; 4096]);
    wait_until(|| server.count("writes") != 0);
    control.call("power-cut", json!({ "after_s": 0.05 }));
    assert!(client.is_closed(), "the cut ends the connection");
    wait_until(|| !is_on(&mut control));
    assert_eq!(control.verb("power")["last"]["unanswered"], 1);
    control.verb("power-on");
    assert_eq!(server.server.engine().power().status().cuts, 1);
}

#[test]
fn invalid_requests_get_an_error() {
    let server = TestServer::default();
    let mut control = server.control();
    for line in ["", "{", "[]", "{}", "{\"do\":\"dance\"}", "{\"do\":\"power\",\"x\":1}"] {
        assert!(control.try_send(line).unwrap()["error"].is_string(), "{line}");
    }
    for arguments in [
        json!({ "after_writes": 0 }),
        json!({ "after_s": -1.0 }),
        json!({ "after_writes": 1, "after_s": 1.0 }),
        json!({ "random": { "seed": 1, "writes": 0 } }),
    ] {
        let reply = control.call("power-cut", arguments);
        assert!(reply["error"].as_str().unwrap().contains("after_writes"));
    }
    assert_eq!(control.verb("counters")["clients"], 0);
    assert!(is_on(&mut control));
}

#[test]
fn flushed_data_is_kept_and_the_rest_is_rolled_back() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &[1; 8192]);
    client.flush();
    client.write(0, &[2; 4096]);
    client.write(0, &[3; 512]);
    client.write(4096, &[4; 512]);
    assert_eq!(client.request((CMD_WRITE, FUA), (8192, 512), &[5; 512]).errno, 0);
    client.write(8192, &[6; 512]);
    assert_eq!(cut(&server), 1);
    assert!(client.is_closed());
    // A durable write of the fake drive flushes all earlier writes.
    let expected = runs(&[(3, 512), (2, 3584), (4, 512), (1, 3584), (5, 512), (0, 3584)]);
    assert_eq!(server.client().read(0, 3 * 4096), expected);
}

#[test]
fn a_drive_that_ignores_flushes_loses_data_and_a_protected_one_does_not() {
    for (options, lost, kept) in [
        (DriveOptions { honours_flush: false, ..DriveOptions::default() }, 1, 0),
        (DriveOptions { power_loss_protection: true, ..DriveOptions::default() }, 0, 9),
    ] {
        let server = TestServer::new(options);
        let mut client = server.client();
        client.write(0, &[9; 4096]);
        client.flush();
        assert_eq!(cut(&server), lost);
        assert_eq!(server.client().read(0, 512), [kept; 512]);
    }
}

#[test]
fn trimmed_data_does_not_come_back() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &[1; 4096]);
    client.flush();
    client.write(0, &[2; 4096]);
    assert_eq!(client.request((CMD_TRIM, 0), (0, 4096), b"").errno, 0);
    client.write(0, &[3; 4096]);
    assert_eq!(cut(&server), 1);
    assert_eq!(server.client().read(0, 4096), [0; 4096]);
}

#[test]
fn random_commands_with_cuts_match_a_model_of_bytes() {
    for seed in 0..20 {
        let server = TestServer::default();
        let mut random = Random::new(seed, "cuts");
        let mut safe = vec![0_u8; CAPACITY as usize];
        let mut seen = safe.clone();
        let mut client = Client::go(&server.socket, seed % 2 == 0).unwrap();
        for step in 0..200_u64 {
            let offset = random.below(CAPACITY / 512 - 64) * 512;
            let length = (1 + random.below(64)) * 512;
            let range = offset as usize..(offset + length) as usize;
            match random.below(10) {
                0 => {
                    client.flush();
                    safe.copy_from_slice(&seen);
                }
                1 => {
                    let trim = client.request((CMD_TRIM, 0), (offset, length as u32), b"");
                    assert_eq!(trim.errno, 0);
                    let whole = offset.next_multiple_of(UNIT)..(offset + length) / UNIT * UNIT;
                    if !whole.is_empty() {
                        let whole = whole.start as usize..whole.end as usize;
                        seen[whole.clone()].fill(0);
                        safe[whole].fill(0);
                    }
                }
                2 if step % 4 == 0 => {
                    cut(&server);
                    seen.copy_from_slice(&safe);
                    client = Client::go(&server.socket, seed % 2 == 0).unwrap();
                }
                3 | 4 => assert_eq!(client.read(offset, length as u32), seen[range]),
                _ => {
                    let bytes = vec![(step % 255 + 1) as u8; length as usize];
                    client.write(offset, &bytes);
                    seen[range].copy_from_slice(&bytes);
                }
            }
        }
        assert_eq!(client.read(0, CAPACITY as u32), seen, "seed {seed}");
    }
}
