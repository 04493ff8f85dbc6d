//! Paced service: answers leave at their time, in its order, and a full queue holds back.

use serde_json::json;
use ssdlab_engine::Pace;
use ssdlab_time::Nanos;

use crate::client::{Client, FUA, READ, WRITE_ZEROES};
use crate::control::Control;
use crate::served::Served;
use ssdlab_testing::DriveOptions;

#[test]
fn an_answer_does_not_leave_before_its_time() {
    let slow = DriveOptions { latency: Nanos::from_millis(30), ..DriveOptions::default() };
    let served = Served::new(slow, Pace::Times(1.0));
    let mut client = Client::go(&served.socket, false);
    for _ in 0..5 {
        client.read(0, 4096);
    }
    let lag = served.server.engine().clock().reply_lateness();
    assert_eq!(lag.replies, 5);
    // The toy's clock is the wall's: five answers of 30 ms, one after the other.
    let mut again = Client::go(&served.socket, false);
    again.read(0, 512);
    assert_eq!(served.count("reads"), 6);
}

#[test]
fn ten_times_the_pace_answers_in_a_tenth_of_the_time_and_none_is_lost() {
    let slow = DriveOptions {
        latency: Nanos::from_millis(100),
        queue_depth: 4,
        ..DriveOptions::default()
    };
    let served = Served::new(slow, Pace::Times(10.0));
    let mut client = Client::go(&served.socket, true);
    for cookie in 0..32 {
        client.send((READ, 0), cookie, (cookie * 4096, 4096), b"");
    }
    let cookies: Vec<u64> = (0..32).map(|_| client.reply(4096).cookie).collect();
    assert_eq!(cookies, (0..32).collect::<Vec<_>>(), "equal latencies keep their order");
    assert_eq!(served.server.engine().clock().reply_lateness().replies, 32);
}

#[test]
fn a_request_of_more_parts_than_the_queue_holds_is_answered() {
    let served =
        Served::new(DriveOptions { queue_depth: 2, ..DriveOptions::default() }, Pace::Times(10.0));
    let mut client = Client::go(&served.socket, false);
    client.write(0, &[7; 4 * 4096]);
    // Zeros for two edges, a trim between them, and a flush.
    assert_eq!(client.ask((WRITE_ZEROES, FUA), (512, 3 * 4096), b"").errno, 0);
    let left = client.read(0, 4 * 4096);
    assert!(left[512..512 + 3 * 4096].iter().all(|byte| *byte == 0));
    assert!(left[..512].iter().chain(&left[512 + 3 * 4096..]).all(|byte| *byte == 7));
}

#[test]
fn a_power_cut_leaves_waiting_requests_without_an_answer() {
    let slow = DriveOptions { latency: Nanos::from_secs(3600), ..DriveOptions::default() };
    let served = Served::new(slow, Pace::Times(1.0));
    let mut client = Client::go(&served.socket, false);
    client.send((READ, 0), 1, (0, 4096), b"");
    while served.count("reads") == 0 {
        std::thread::yield_now();
    }
    assert_eq!(served.server.power_cut(true).unwrap().unanswered, 1);
    assert!(client.is_closed());
}

#[test]
fn an_answer_leaves_earlier_by_the_way_that_a_control_connection_tells() {
    let slow = DriveOptions { latency: Nanos::from_secs(20), ..DriveOptions::default() };
    let served = Served::new(slow, Pace::Times(1.0));
    let mut control = Control::to(&served);
    let told = control.ask(&json!({ "do": "lead", "transport_us": 7.5, "ns_per_byte": 1e6 }));
    assert_eq!(told, json!({ "transport_us": 7.5, "ns_per_byte": 1e6 }));
    assert_eq!(control.ask(&json!({ "do": "lead" })), told);
    let mut client = Client::go(&served.socket, true);
    client.send((READ, 0), 1, (0, 4096), b"");
    client.send((READ, 0), 2, (0, 1 << 20), b"");
    // A million bytes take a thousand seconds of way, more than the drive.
    assert_eq!(client.reply(1 << 20).cookie, 2);
    assert_eq!(control.ask(&json!({ "do": "lead", "transport_us": 3 }))["ns_per_byte"], 0.0);
}

#[test]
fn a_lead_that_makes_no_sense_is_refused() {
    let served = Served::new(DriveOptions::default(), Pace::Times(1.0));
    let mut control = Control::to(&served);
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, vec![1; 8 << 20]).unwrap();
    for (wish, word) in [
        (json!({ "through": "/does/not/exist" }), "/does/not/exist"),
        (json!({ "through": other }), "other"),
        (json!({ "through": other, "transport_us": 1.0 }), "give through"),
        (json!({ "ns_per_byte": 1.0 }), "give through"),
        (json!({ "transport_us": -1.0 }), "give through"),
        (json!({ "transport_us": 1.0, "ns_per_byte": 1e7 }), "give through"),
    ] {
        let mut asked = wish;
        asked["do"] = json!("lead");
        let told = control.ask(&asked);
        assert!(told["error"].as_str().unwrap().contains(word), "{asked}: {told}");
    }
    assert_eq!(control.ask(&json!({ "do": "lead" }))["transport_us"], 0.0);
    let unpaced = Served::new(DriveOptions::default(), Pace::None);
    let told = Control::to(&unpaced).ask(&json!({ "do": "lead", "transport_us": 1.0 }));
    assert!(told["error"].as_str().unwrap().contains("--pace"));
}
