//! The control socket: the power is cut and comes back as asked, and every mistake is answered.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use ssdlab_engine::Pace;
use ssdlab_time::Nanos;

use crate::client::{Client, WRITE, command};
use crate::served::Served;
use ssdlab_testing::{DriveOptions, UNIT};

/// A control connection.
pub struct Control(BufReader<UnixStream>);

impl Control {
    pub fn to(served: &Served) -> Self {
        Self::at(&served.control)
    }

    pub fn at(socket: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    pub fn ask(&mut self, asked: &Value) -> Value {
        self.say(&asked.to_string())
    }

    fn say(&mut self, line: &str) -> Value {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn is_on(&mut self) -> bool {
        self.ask(&json!({ "do": "power" }))["power"] == "on"
    }
}

/// Whether a client gets as far as a greeting.
fn is_served(socket: &Path) -> bool {
    let mut client = Client::over(UnixStream::connect(socket).unwrap());
    !client.is_closed()
}

#[test]
fn between_a_cut_and_power_on_nobody_is_served() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut control = Control::to(&served);
    let mut client = Client::go(&served.socket, false);
    client.write(0, &[1; 4096]);
    client.flush();
    client.write(0, &[2; 4096]);
    client.write(0, &[3; 4096]);
    let told = control.ask(&json!({ "do": "power-cut" }));
    assert_eq!(told["cut"], json!({ "lost_units": 1, "lost_writes": 2, "unanswered": 0 }));
    assert!(client.is_closed());
    assert!(!is_served(&served.socket));
    assert!(control.ask(&json!({ "do": "power-cut" }))["error"].is_string());
    assert_eq!(control.ask(&json!({ "do": "power-on" }))["cuts"], 1);
    assert!(control.ask(&json!({ "do": "power-on" }))["error"].is_string());
    assert_eq!(Client::go(&served.socket, false).read(0, 4096), [1; 4096]);
}

#[test]
fn a_planned_cut_comes_while_that_write_is_on_its_way() {
    for most_at_once in [1, 5] {
        let served = Served::new(DriveOptions::default(), Pace::None);
        let mut control = Control::to(&served);
        let asked = json!({ "do": "power-cut", "after_writes": 7 });
        assert_eq!(control.ask(&asked)["planned"]["after_writes"], 7);
        let mut client = Client::go(&served.socket, false);
        let mut answered = 0;
        'writes: for first in (0_u64..).step_by(most_at_once) {
            let numbers = first..first + most_at_once as u64;
            let all = numbers.flat_map(|number| {
                command((WRITE, 0), number, (number * UNIT, 4096), &[number as u8 + 1; 4096])
            });
            client.stream.write_all(&all.collect::<Vec<_>>()).unwrap();
            for _ in 0..most_at_once {
                if client.try_reply(0).is_err() {
                    break 'writes;
                }
                answered += 1;
            }
        }
        // Those that the drive got together with the last are not answered either.
        assert!((7 - most_at_once..7).contains(&answered), "{answered} answered");
        while control.is_on() {
            std::thread::yield_now();
        }
        assert_eq!(served.count("writes"), 7, "and none after it");
        let last = &control.ask(&json!({ "do": "power" }))["last"];
        assert_eq!(last["lost_writes"], 7, "nothing was flushed");
        assert_eq!(last["unanswered"], 7 - answered);
    }
}

#[test]
fn a_cut_by_chance_is_the_same_for_the_same_seed_and_may_turn_on_at_once() {
    let writes_until_cut = |seed: u64| {
        let served = Served::new(DriveOptions::default(), Pace::None);
        let mut control = Control::to(&served);
        let random = json!({ "seed": seed, "writes": 50 });
        control.ask(&json!({ "do": "power-cut", "random": random, "on": true }));
        let mut client = Client::go(&served.socket, false);
        loop {
            client.send((WRITE, 0), 1, (0, 4096), &[1; 4096]);
            if client.try_reply(0).is_err() {
                break;
            }
        }
        let writes = served.count("writes");
        while control.ask(&json!({ "do": "power" }))["cuts"] == 0 {
            std::thread::yield_now();
        }
        assert_eq!(Client::go(&served.socket, false).read(0, 512), [0; 512]);
        assert!((1..=50).contains(&writes));
        writes
    };
    let writes: Vec<u64> = (0..8).map(writes_until_cut).collect();
    assert_eq!(writes, (0..8).map(writes_until_cut).collect::<Vec<_>>());
    assert!(writes.iter().any(|each| *each != writes[0]));
}

#[test]
fn a_cut_after_a_time_comes_and_time_without_power_is_none_for_the_drive() {
    let slow = DriveOptions { latency: Nanos::from_secs(3600), ..DriveOptions::default() };
    let served = Served::new(slow, Pace::Times(1.0));
    let mut control = Control::to(&served);
    let mut client = Client::go(&served.socket, false);
    client.send((WRITE, 0), 1, (0, 4096), &[1; 4096]);
    while served.count("writes") == 0 {
        std::thread::yield_now();
    }
    control.ask(&json!({ "do": "power-cut", "after_s": 0.05 }));
    assert!(client.is_closed(), "it is waited for");
    while control.is_on() {
        std::thread::yield_now();
    }
    assert_eq!(control.ask(&json!({ "do": "power" }))["last"]["unanswered"], 1);
    control.ask(&json!({ "do": "power-on" }));
    assert_eq!(served.server.engine().power().status().cuts, 1);
}

#[test]
fn what_is_no_request_is_answered_with_an_error() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut control = Control::to(&served);
    for line in ["", "{", "[]", "{}", "{\"do\":\"dance\"}", "{\"do\":\"power\",\"x\":1}"] {
        assert!(control.say(line)["error"].is_string(), "{line}");
    }
    for wish in [
        json!({ "after_writes": 0 }),
        json!({ "after_s": -1.0 }),
        json!({ "after_writes": 1, "after_s": 1.0 }),
        json!({ "random": { "seed": 1, "writes": 0 } }),
    ] {
        let mut asked = wish;
        asked["do"] = json!("power-cut");
        assert!(control.ask(&asked)["error"].as_str().unwrap().contains("after_writes"));
    }
    assert_eq!(control.ask(&json!({ "do": "counters" }))["clients"], 0);
    assert!(control.is_on());
}
