//! The control socket: power cuts and their triggers, and errors for invalid requests.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use ssdlab_engine::Pace;
use ssdlab_time::Nanos;

use crate::client::{CMD_WRITE, Client, request};
use crate::test_server::TestServer;
use ssdlab_testing::{DriveOptions, UNIT};

/// A connection to the control socket.
pub struct Control(BufReader<UnixStream>);

impl Control {
    pub fn to(server: &TestServer) -> Self {
        Self::at(&server.control)
    }

    pub fn at(socket: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    pub fn request(&mut self, request: &Value) -> Value {
        self.send_line(&request.to_string())
    }

    fn send_line(&mut self, line: &str) -> Value {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn is_on(&mut self) -> bool {
        self.request(&json!({ "do": "power" }))["power"] == "on"
    }
}

/// Whether the server greets a new client.
fn is_served(socket: &Path) -> bool {
    let mut client = Client::over(UnixStream::connect(socket).unwrap());
    !client.is_closed()
}

#[test]
fn no_client_is_served_between_a_power_cut_and_power_on() {
    let server = TestServer::new(DriveOptions::default(), Pace::None);
    let mut control = Control::to(&server);
    let mut client = Client::go(&server.socket, false);
    client.write(0, &[1; 4096]);
    client.flush();
    client.write(0, &[2; 4096]);
    client.write(0, &[3; 4096]);
    let reply = control.request(&json!({ "do": "power-cut" }));
    assert_eq!(reply["cut"], json!({ "lost_units": 1, "lost_writes": 2, "unanswered": 0 }));
    assert!(client.is_closed());
    assert!(!is_served(&server.socket));
    assert!(control.request(&json!({ "do": "power-cut" }))["error"].is_string());
    assert_eq!(control.request(&json!({ "do": "power-on" }))["cuts"], 1);
    assert!(control.request(&json!({ "do": "power-on" }))["error"].is_string());
    assert_eq!(Client::go(&server.socket, false).read(0, 4096), [1; 4096]);
}

#[test]
fn a_planned_cut_comes_in_the_middle_of_the_nth_write() {
    for most_at_once in [1, 5] {
        let server = TestServer::new(DriveOptions::default(), Pace::None);
        let mut control = Control::to(&server);
        let plan = json!({ "do": "power-cut", "after_writes": 7 });
        assert_eq!(control.request(&plan)["planned"]["after_writes"], 7);
        let mut client = Client::go(&server.socket, false);
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
        while control.is_on() {
            std::thread::yield_now();
        }
        assert_eq!(server.count("writes"), 7, "no write follows the seventh");
        let last = &control.request(&json!({ "do": "power" }))["last"];
        assert_eq!(last["lost_writes"], 7, "nothing was flushed");
        assert_eq!(last["unanswered"], 7 - answered);
    }
}

#[test]
fn a_random_cut_is_the_same_for_the_same_seed_and_power_can_return_at_once() {
    let writes_until_cut = |seed: u64| {
        let server = TestServer::new(DriveOptions::default(), Pace::None);
        let mut control = Control::to(&server);
        let random = json!({ "seed": seed, "writes": 50 });
        control.request(&json!({ "do": "power-cut", "random": random, "on": true }));
        let mut client = Client::go(&server.socket, false);
        loop {
            client.send((CMD_WRITE, 0), 1, (0, 4096), &[1; 4096]);
            if client.try_reply(0).is_err() {
                break;
            }
        }
        let writes = server.count("writes");
        while control.request(&json!({ "do": "power" }))["cuts"] == 0 {
            std::thread::yield_now();
        }
        assert_eq!(Client::go(&server.socket, false).read(0, 512), [0; 512]);
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
    let server = TestServer::new(slow, Pace::Scaled(1.0));
    let mut control = Control::to(&server);
    let mut client = Client::go(&server.socket, false);
    client.send((CMD_WRITE, 0), 1, (0, 4096), &[1; 4096]);
    while server.count("writes") == 0 {
        std::thread::yield_now();
    }
    control.request(&json!({ "do": "power-cut", "after_s": 0.05 }));
    assert!(client.is_closed(), "the cut ends the connection");
    while control.is_on() {
        std::thread::yield_now();
    }
    assert_eq!(control.request(&json!({ "do": "power" }))["last"]["unanswered"], 1);
    control.request(&json!({ "do": "power-on" }));
    assert_eq!(server.server.engine().power().status().cuts, 1);
}

#[test]
fn invalid_requests_get_an_error() {
    let server = TestServer::new(DriveOptions::default(), Pace::None);
    let mut control = Control::to(&server);
    for line in ["", "{", "[]", "{}", "{\"do\":\"dance\"}", "{\"do\":\"power\",\"x\":1}"] {
        assert!(control.send_line(line)["error"].is_string(), "{line}");
    }
    for arguments in [
        json!({ "after_writes": 0 }),
        json!({ "after_s": -1.0 }),
        json!({ "after_writes": 1, "after_s": 1.0 }),
        json!({ "random": { "seed": 1, "writes": 0 } }),
    ] {
        let mut request = arguments;
        request["do"] = json!("power-cut");
        assert!(control.request(&request)["error"].as_str().unwrap().contains("after_writes"));
    }
    assert_eq!(control.request(&json!({ "do": "counters" }))["clients"], 0);
    assert!(control.is_on());
}
