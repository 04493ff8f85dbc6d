//! Paced service: answers leave at their time, in its order, and a full queue holds back.

use ssdlab_serve::Pace;
use ssdlab_time::Nanos;

use crate::client::{Client, FUA, READ, WRITE_ZEROES};
use crate::served::Served;
use crate::toy::{HONEST, Manner};

#[test]
fn an_answer_does_not_leave_before_its_time() {
    let slow = Manner { latency: Nanos::from_millis(30), ..HONEST };
    let served = Served::new(slow, Pace::Times(1.0));
    let mut client = Client::go(&served.socket, false);
    for _ in 0..5 {
        client.read(0, 4096);
    }
    let lag = served.server.engine().lag();
    assert_eq!(lag.answers, 5);
    // The toy's clock is the wall's: five answers of 30 ms, one after the other.
    let mut again = Client::go(&served.socket, false);
    again.read(0, 512);
    assert_eq!(served.count("reads"), 6);
}

#[test]
fn ten_times_the_pace_answers_in_a_tenth_of_the_time_and_none_is_lost() {
    let slow = Manner { latency: Nanos::from_millis(100), queue_depth: 4, ..HONEST };
    let served = Served::new(slow, Pace::Times(10.0));
    let mut client = Client::go(&served.socket, true);
    for cookie in 0..32 {
        client.send((READ, 0), cookie, (cookie * 4096, 4096), b"");
    }
    let cookies: Vec<u64> = (0..32).map(|_| client.reply(4096).cookie).collect();
    assert_eq!(cookies, (0..32).collect::<Vec<_>>(), "equal latencies keep their order");
    assert_eq!(served.server.engine().lag().answers, 32);
}

#[test]
fn a_request_of_more_parts_than_the_queue_holds_is_answered() {
    let served = Served::new(Manner { queue_depth: 2, ..HONEST }, Pace::Times(10.0));
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
    let slow = Manner { latency: Nanos::from_secs(3600), ..HONEST };
    let served = Served::new(slow, Pace::Times(1.0));
    let mut client = Client::go(&served.socket, false);
    client.send((READ, 0), 1, (0, 4096), b"");
    while served.count("reads") == 0 {
        std::thread::yield_now();
    }
    assert_eq!(served.server.power_cut(true).unwrap().unanswered, 1);
    assert!(client.is_closed());
}
