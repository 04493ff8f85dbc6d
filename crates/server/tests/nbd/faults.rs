//! Injected faults: their kinds, conditions and limits.

use serde_json::{Value, json};

use crate::prelude::*;

const EPERM: u32 = 1;
const EIO: u32 = 5;

fn fault(control: &mut Control, arguments: Value) {
    let reply = control.call("fault", arguments);
    assert!(reply["fault"].is_u64(), "{reply}");
}

fn errnos(client: &mut Client, kind: u16, count: u64) -> Vec<u32> {
    let data: &[u8] = if kind == CMD_WRITE { &[1; UNIT as usize] } else { b"" };
    (0..count)
        .map(|unit| client.request((kind, 0), (unit * UNIT, UNIT as u32), data).errno)
        .collect()
}

#[test]
fn a_fault_hits_commands_of_its_kind_and_range_up_to_its_limit() {
    let (_served, mut control, mut client) = TestServer::with_control();
    fault(&mut control, json!({ "kind": "eio", "op": "read", "range": [4096, 8704], "times": 3 }));
    assert_eq!(errnos(&mut client, CMD_WRITE, 4), [0; 4]);
    assert_eq!(errnos(&mut client, CMD_READ, 4), [0, EIO, EIO, 0]);
    assert_eq!(errnos(&mut client, CMD_READ, 4), [0, EIO, 0, 0]);
    let reply = control.verb("faults");
    assert_eq!(reply["faults"][0]["befell"], 3);
    assert_eq!(control.verb("fault-clear"), json!({ "cleared": 1 }));
    fault(&mut control, json!({ "kind": "eio", "op": "write", "at": 2 }));
    fault(&mut control, json!({ "kind": "eio", "op": "flush" }));
    assert_eq!(errnos(&mut client, CMD_WRITE, 4), [0, EIO, 0, 0]);
    assert_eq!(client.request((CMD_FLUSH, 0), (0, 0), b"").errno, EIO);
    assert!(control.call("fault-clear", json!({ "fault": 1 }))["error"].is_string());
    assert_eq!(control.call("fault-clear", json!({ "fault": 3 }))["cleared"], 1);
    assert_eq!(client.request((CMD_FLUSH, 0), (0, 0), b"").errno, 0);
}

#[test]
fn a_probability_gives_the_same_faults_for_the_same_seed() {
    let errnos = |seed: u64, at: u64| {
        let (_served, mut control, mut client) = TestServer::with_control();
        // Without `times`, a fault with `at` hits one command.
        let mut arguments = json!({ "kind": "eio", "probability": 0.3, "seed": seed, "at": at });
        arguments["times"] = json!(1000);
        fault(&mut control, arguments);
        errnos(&mut client, CMD_WRITE, 200)
    };
    let first = errnos(1, 1);
    assert_eq!(first, errnos(1, 1));
    assert_ne!(first, errnos(2, 1));
    let from_the_101st = errnos(1, 101);
    assert_eq!(from_the_101st[..100], [0; 100]);
    assert_eq!(from_the_101st[100..], first[100..], "chance is drawn for every matching command");
    let share = first.iter().filter(|errno| **errno == EIO).count();
    assert!((30..90).contains(&share), "{share} of 200");
}

#[test]
fn data_on_a_failed_die_is_unreadable_until_it_is_written_again() {
    let (_served, mut control, mut client) = TestServer::with_control();
    assert_eq!(errnos(&mut client, CMD_WRITE, 8), [0; 8]);
    fault(&mut control, json!({ "kind": "die", "die": 1 }));
    let one_in_four = [0, EIO, 0, 0, 0, EIO, 0, 0];
    assert_eq!(errnos(&mut client, CMD_READ, 8), one_in_four);
    assert_eq!(control.verb("faults")["faults"][0]["dead_units"], 2);
    let (part, whole, far) = ((UNIT, 512), (UNIT, 4096), (9 * UNIT, 4096));
    // The rest of the unit is unreadable.
    assert_eq!(client.request((CMD_WRITE, 0), part, &[2; 512]).errno, EIO);
    assert_eq!(client.request((CMD_WRITE, 0), whole, &[2; 4096]).errno, 0);
    assert_eq!(client.read(UNIT, 4096), [2; 4096]);
    assert_eq!(client.request((CMD_WRITE, 0), far, &[2; 4096]).errno, 0);
    assert_eq!(client.read(9 * UNIT, 4096), [2; 4096], "written after the die failed");
    assert_eq!(client.request((CMD_TRIM, 0), (5 * UNIT, 4096), b"").errno, 0);
    assert_eq!(errnos(&mut client, CMD_READ, 8), [0; 8]);
}

/// The number of bytes that the second write has changed.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(*byte == 2)).sum()
}

#[test]
fn a_lost_torn_or_misdirected_write_is_acknowledged_and_a_cut_rolls_it_back() {
    for kind in ["lost", "torn", "misdirected"] {
        let (server, mut control, mut client) = TestServer::with_control();
        client.write(0, &[1; 8192]);
        client.flush();
        fault(&mut control, json!({ "kind": kind, "at": 1, "seed": 3 }));
        client.write(0, &[2; 8192]);
        let there = client.read(0, 8192);
        let new = written(&there);
        match kind {
            "torn" => {
                assert!(new > 0 && new < 8192 && new.is_multiple_of(512), "{new} are new");
                assert!(there[..new].iter().all(|byte| *byte == 2));
            }
            _ => assert_eq!(there, [1; 8192], "{kind}"),
        }
        let all = client.read(0, 8 << 20);
        assert_eq!(written(&all), if kind == "misdirected" { 8192 } else { new }, "{kind}");
        server.server.power_cut(true);
        let all = server.client().read(0, 8 << 20);
        assert!(all == runs(&[(1, 8192), (0, all.len() - 8192)]), "{kind}: flushed data is left");
    }
}

/// The cookies of two reads in the order of their replies; the first read is delayed.
fn answered(delay_s: f64) -> [u64; 2] {
    let (_served, mut control, mut client) = TestServer::with_control();
    fault(&mut control, json!({ "kind": "delay", "for_s": delay_s, "at": 1 }));
    client.send((CMD_READ, 0), 1, (0, 512), b"");
    client.send((CMD_READ, 0), 2, (0, 512), b"");
    [client.reply(512).cookie, client.reply(512).cookie]
}

#[test]
fn a_delayed_reply_is_overtaken_and_a_stalled_drive_does_not_reply() {
    // On a busy machine the second read may be sent after the delay of the first.
    assert!([0.3, 3.0, 30.0, 300.0].into_iter().any(|delay_s| answered(delay_s) == [2, 1]));
    let (_served, mut control, mut client) = TestServer::with_control();
    fault(&mut control, json!({ "kind": "stall", "for_s": 1000.0 }));
    client.send((CMD_READ, 0), 3, (0, 512), b"");
    wait_until(|| control.verb("meter")["read"]["commands"] == 1);
    control.verb("power-cut");
    assert!(client.is_closed(), "no reply before the cut");
}

#[test]
fn a_drive_without_an_inside_says_so() {
    let (_served, mut control, _client) = TestServer::with_control();
    assert_eq!(control.verb("inside")["error"], "the drive does not report its inside");
}

#[test]
fn a_worn_out_drive_is_readable_and_refuses_writes() {
    let server = TestServer::new(DriveOptions { endurance_writes: 3, ..DriveOptions::default() });
    let mut client = server.client();
    assert_eq!(errnos(&mut client, CMD_WRITE, 5), [0, 0, 0, EPERM, EPERM]);
    assert_eq!(errnos(&mut client, CMD_READ, 5), [0; 5]);
    assert_eq!(client.request((CMD_TRIM, 0), (0, 4096), b"").errno, EPERM);
    assert_eq!(client.read(0, 4096), [1; 4096]);
    let (_served, mut control, mut client) = TestServer::with_control();
    fault(&mut control, json!({ "kind": "read-only", "at": 2, "times": 100 }));
    assert_eq!(errnos(&mut client, CMD_WRITE, 4), [0, EPERM, EPERM, EPERM]);
}

#[test]
fn invalid_faults_are_refused() {
    let (_served, mut control, _client) = TestServer::with_control();
    for arguments in [
        json!({ "kind": "gone" }),
        json!({ "kind": "die" }),
        json!({ "kind": "eio", "die": 1 }),
        json!({ "kind": "delay" }),
        json!({ "kind": "stall", "for_s": -1.0 }),
        json!({ "kind": "eio", "at": 0 }),
        json!({ "kind": "eio", "probability": 1.5 }),
        json!({ "kind": "eio", "range": [5, 5] }),
    ] {
        let reply = control.call("fault", arguments);
        assert!(reply["error"].is_string(), "{reply}");
    }
    assert_eq!(control.verb("faults"), json!({ "faults": [] }));
}
