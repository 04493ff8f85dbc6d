//! Faults by trigger: what goes wrong, when it was to, and nothing else.

use serde_json::{Value, json};
use ssdlab_engine::Pace;

use crate::client::{Client, FLUSH, READ, TRIM, WRITE};
use crate::control::Control;
use crate::served::Served;
use ssdlab_testing::{DriveOptions, UNIT};

const EPERM: u32 = 1;
const EIO: u32 = 5;

fn served() -> (Served, Control, Client) {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let (control, client) = (Control::to(&served), Client::go(&served.socket, false));
    (served, control, client)
}

fn fault(control: &mut Control, wish: Value) {
    let mut asked = wish;
    asked["do"] = json!("fault");
    let told = control.ask(&asked);
    assert!(told["fault"].is_u64(), "{told}");
}

fn errnos(client: &mut Client, kind: u16, count: u64) -> Vec<u32> {
    let data: &[u8] = if kind == WRITE { &[1; UNIT as usize] } else { b"" };
    (0..count).map(|unit| client.ask((kind, 0), (unit * UNIT, UNIT as u32), data).errno).collect()
}

#[test]
fn an_error_befalls_only_commands_of_its_kind_and_range_and_only_so_often() {
    let (_served, mut control, mut client) = served();
    fault(&mut control, json!({ "kind": "eio", "op": "read", "range": [4096, 8704], "times": 3 }));
    assert_eq!(errnos(&mut client, WRITE, 4), [0; 4]);
    assert_eq!(errnos(&mut client, READ, 4), [0, EIO, EIO, 0]);
    assert_eq!(errnos(&mut client, READ, 4), [0, EIO, 0, 0]);
    let told = control.ask(&json!({ "do": "faults" }));
    assert_eq!(told["faults"][0]["befell"], 3);
    assert_eq!(control.ask(&json!({ "do": "fault-clear" })), json!({ "cleared": 1 }));
    fault(&mut control, json!({ "kind": "eio", "op": "write", "at": 2 }));
    fault(&mut control, json!({ "kind": "eio", "op": "flush" }));
    assert_eq!(errnos(&mut client, WRITE, 4), [0, EIO, 0, 0]);
    assert_eq!(client.ask((FLUSH, 0), (0, 0), b"").errno, EIO);
    assert!(control.ask(&json!({ "do": "fault-clear", "fault": 1 }))["error"].is_string());
    assert_eq!(control.ask(&json!({ "do": "fault-clear", "fault": 3 }))["cleared"], 1);
    assert_eq!(client.ask((FLUSH, 0), (0, 0), b"").errno, 0);
}

#[test]
fn chance_is_the_same_for_the_same_seed() {
    let befallen = |seed: u64| {
        let (_served, mut control, mut client) = served();
        fault(&mut control, json!({ "kind": "eio", "probability": 0.3, "seed": seed }));
        errnos(&mut client, WRITE, 200)
    };
    let first = befallen(1);
    assert_eq!(first, befallen(1));
    assert_ne!(first, befallen(2));
    let share = first.iter().filter(|errno| **errno == EIO).count();
    assert!((30..90).contains(&share), "{share} of 200");
}

#[test]
fn a_die_takes_what_lay_on_it_and_what_is_written_later_goes_elsewhere() {
    let (_served, mut control, mut client) = served();
    assert_eq!(errnos(&mut client, WRITE, 8), [0; 8]);
    fault(&mut control, json!({ "kind": "die", "die": 1 }));
    let one_in_four = [0, EIO, 0, 0, 0, EIO, 0, 0];
    assert_eq!(errnos(&mut client, READ, 8), one_in_four);
    assert_eq!(control.ask(&json!({ "do": "faults" }))["faults"][0]["dead_units"], 2);
    let (part, whole, far) = ((UNIT, 512), (UNIT, 4096), (9 * UNIT, 4096));
    assert_eq!(client.ask((WRITE, 0), part, &[2; 512]).errno, EIO, "the rest is gone");
    assert_eq!(client.ask((WRITE, 0), whole, &[2; 4096]).errno, 0);
    assert_eq!(client.read(UNIT, 4096), [2; 4096]);
    assert_eq!(client.ask((WRITE, 0), far, &[2; 4096]).errno, 0);
    assert_eq!(client.read(9 * UNIT, 4096), [2; 4096], "it was written after the die's end");
    assert_eq!(client.ask((TRIM, 0), (5 * UNIT, 4096), b"").errno, 0);
    assert_eq!(errnos(&mut client, READ, 8), [0; 8]);
}

/// How many bytes are those that were written second.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(*byte == 2)).sum()
}

#[test]
fn a_write_that_is_lost_or_torn_or_goes_astray_is_acknowledged_and_a_cut_still_finds_its_way() {
    for kind in ["lost", "torn", "misdirected"] {
        let (served, mut control, mut client) = served();
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
        served.server.power_cut(true);
        let all = Client::go(&served.socket, false).read(0, 8 << 20);
        assert_eq!(all[..8192], [1; 8192], "{kind}: what was flushed came back");
        assert!(all[8192..].iter().all(|byte| *byte == 0), "{kind}");
    }
}

/// In which order two reads are answered, of which the first is delayed.
fn answered(delay_s: f64) -> [u64; 2] {
    let (_served, mut control, mut client) = served();
    fault(&mut control, json!({ "kind": "delay", "for_s": delay_s, "at": 1 }));
    client.send((READ, 0), 1, (0, 512), b"");
    client.send((READ, 0), 2, (0, 512), b"");
    [client.reply(512).cookie, client.reply(512).cookie]
}

#[test]
fn a_late_answer_is_overtaken_and_one_of_a_stalled_drive_does_not_come() {
    // On a busy machine the second may come later than the first is late.
    assert!([0.3, 3.0, 30.0, 300.0].into_iter().any(|delay_s| answered(delay_s) == [2, 1]));
    let (_served, mut control, mut client) = served();
    fault(&mut control, json!({ "kind": "stall", "for_s": 1000.0 }));
    client.send((READ, 0), 3, (0, 512), b"");
    while control.ask(&json!({ "do": "meter" }))["read"]["commands"] != 1 {
        std::thread::yield_now();
    }
    control.ask(&json!({ "do": "power-cut" }));
    assert!(client.is_closed(), "it was not answered before the cut");
}

#[test]
fn a_drive_whose_life_is_over_is_read_and_refuses_writes() {
    let served =
        Served::new(DriveOptions { endurance_writes: 3, ..DriveOptions::default() }, Pace::None);
    let mut client = Client::go(&served.socket, false);
    assert_eq!(errnos(&mut client, WRITE, 5), [0, 0, 0, EPERM, EPERM]);
    assert_eq!(errnos(&mut client, READ, 5), [0; 5]);
    assert_eq!(client.ask((TRIM, 0), (0, 4096), b"").errno, EPERM);
    assert_eq!(client.read(0, 4096), [1; 4096]);
    let (_served, mut control, mut client) = self::served();
    fault(&mut control, json!({ "kind": "read-only", "at": 2, "times": 100 }));
    assert_eq!(errnos(&mut client, WRITE, 4), [0, EPERM, EPERM, EPERM]);
}

#[test]
fn what_makes_no_sense_as_a_fault_is_refused() {
    let (_served, mut control, _client) = served();
    for wish in [
        json!({ "kind": "gone" }),
        json!({ "kind": "die" }),
        json!({ "kind": "eio", "die": 1 }),
        json!({ "kind": "delay" }),
        json!({ "kind": "stall", "for_s": -1.0 }),
        json!({ "kind": "eio", "at": 0 }),
        json!({ "kind": "eio", "probability": 1.5 }),
        json!({ "kind": "eio", "range": [5, 5] }),
    ] {
        let mut asked = wish;
        asked["do"] = json!("fault");
        assert!(control.ask(&asked)["error"].is_string(), "{asked}");
    }
    assert_eq!(control.ask(&json!({ "do": "faults" })), json!({ "faults": [] }));
}
