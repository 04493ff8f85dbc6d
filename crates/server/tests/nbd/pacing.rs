//! Pacing: replies are sent when they are due, in that order, and a full queue holds back requests.

use serde_json::json;
use ssdlab_time::Nanos;

use crate::prelude::*;

#[test]
fn a_reply_is_not_sent_before_it_is_due() {
    let slow = DriveOptions { latency: Nanos::from_millis(30), ..DriveOptions::default() };
    let server = TestServer::paced(slow, 1.0);
    let mut client = server.client();
    for _ in 0..5 {
        client.read(0, 4096);
    }
    let lag = server.server.engine().clock.reply_lateness();
    assert_eq!(lag.replies, 5);
    // The drive's clock runs like the wall clock: five replies of 30 ms, one after the other.
    let mut again = server.client();
    again.read(0, 512);
    assert_eq!(server.count("reads"), 6);
}

#[test]
fn at_ten_times_the_pace_all_replies_take_a_tenth_of_the_time() {
    let slow = DriveOptions {
        latency: Nanos::from_millis(100),
        queue_depth: 4,
        ..DriveOptions::default()
    };
    let server = TestServer::paced(slow, 10.0);
    let mut client = Client::go(&server.socket, true).unwrap();
    for cookie in 0..32 {
        client.send((CMD_READ, 0), cookie, (cookie * 4096, 4096), b"");
    }
    let cookies: Vec<u64> = (0..32).map(|_| client.reply(4096).cookie).collect();
    // Replies with equal latencies keep their order.
    assert_eq!(cookies, (0..32).collect::<Vec<_>>());
    assert_eq!(server.server.engine().clock.reply_lateness().replies, 32);
}

#[test]
fn a_request_of_more_parts_than_the_queue_depth_completes() {
    let server =
        TestServer::paced(DriveOptions { queue_depth: 2, ..DriveOptions::default() }, 10.0);
    let mut client = server.client();
    client.write(0, &[7; 4 * 4096]);
    // Zeros at both ends, a trim between them, and a flush.
    assert_eq!(client.request((CMD_WRITE_ZEROES, FUA), (512, 3 * 4096), b"").errno, 0);
    assert_eq!(client.read(0, 4 * 4096), runs(&[(7, 512), (0, 3 * 4096), (7, 3584)]));
}

#[test]
fn requests_in_flight_get_no_reply_after_a_power_cut() {
    let slow = DriveOptions { latency: Nanos::from_secs(3600), ..DriveOptions::default() };
    let server = TestServer::paced(slow, 1.0);
    let mut client = server.client();
    client.send((CMD_READ, 0), 1, (0, 4096), b"");
    wait_until(|| server.count("reads") != 0);
    assert_eq!(server.server.power_cut(true).unwrap().unanswered, 1);
    assert!(client.is_closed());
}

#[test]
fn a_reply_is_sent_earlier_by_the_latency_compensation() {
    let slow = DriveOptions { latency: Nanos::from_secs(20), ..DriveOptions::default() };
    let server = TestServer::paced(slow, 1.0);
    let mut control = server.control();
    let reply = control.call("lead", json!({ "transport_us": 7.5, "ns_per_byte": 1e6 }));
    assert_eq!(reply, json!({ "transport_us": 7.5, "ns_per_byte": 1e6 }));
    assert_eq!(control.verb("lead"), reply);
    let mut client = Client::go(&server.socket, true).unwrap();
    client.send((CMD_READ, 0), 1, (0, 4096), b"");
    client.send((CMD_READ, 0), 2, (0, 1 << 20), b"");
    // The compensation of a million bytes is a thousand seconds, longer than the drive's latency.
    assert_eq!(client.reply(1 << 20).cookie, 2);
    assert_eq!(control.call("lead", json!({ "transport_us": 3 }))["ns_per_byte"], 0.0);
}

#[test]
fn invalid_latency_compensations_are_refused() {
    let server = TestServer::paced(DriveOptions::default(), 1.0);
    let mut control = server.control();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, vec![1; 8 << 20]).unwrap();
    for (arguments, word) in [
        (json!({ "through": "/does/not/exist" }), "/does/not/exist"),
        (json!({ "through": other }), "other"),
        (json!({ "through": other, "transport_us": 1.0 }), "give through"),
        (json!({ "ns_per_byte": 1.0 }), "give through"),
        (json!({ "transport_us": -1.0 }), "give through"),
        (json!({ "transport_us": 1.0, "ns_per_byte": 1e7 }), "give through"),
    ] {
        let reply = control.call("lead", arguments);
        assert!(reply["error"].as_str().unwrap().contains(word), "{reply}");
    }
    assert_eq!(control.verb("lead")["transport_us"], 0.0);
    let unpaced = TestServer::default();
    let reply = unpaced.control().call("lead", json!({ "transport_us": 1.0 }));
    assert!(reply["error"].as_str().unwrap().contains("--pace"));
}
