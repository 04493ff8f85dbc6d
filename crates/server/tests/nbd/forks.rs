//! Snapshots and forks: drives that were this one until a moment.

use serde_json::{Value, json};
use ssdlab_engine::Pace;

use crate::client::Client;
use crate::control::Control;
use crate::served::Served;
use ssdlab_testing::DriveOptions;

/// Forks a drive as is asked; what the first 4096 bytes of each of its first units begin with.
fn fork(served: &Served, name: &str, more: &Value) -> Client {
    let socket = served.socket.with_file_name(name);
    let mut asked = json!({ "do": "fork", "unix": socket });
    for (key, value) in more.as_object().unwrap() {
        asked[key] = value.clone();
    }
    let told = Control::to(served).ask(&asked);
    assert_eq!(told["unix"], json!(socket), "{told}");
    Client::go(&socket, false)
}

#[test]
fn a_fork_has_what_a_cut_now_would_leave_and_goes_its_own_way() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let mut client = Client::go(&served.socket, false);
    client.write(0, &[1; 8192]);
    client.flush();
    client.write(4096, &[2; 4096]);
    let mut after_cut = fork(&served, "cut", &json!({}));
    let mut as_is = fork(&served, "as-is", &json!({ "as_is": true }));
    client.write(0, &[3; 4096]);
    assert_eq!(after_cut.read(0, 8192), [1; 8192]);
    assert_eq!(as_is.read(0, 8192), [[1; 4096], [2; 4096]].concat());
    after_cut.write(0, &[4; 4096]);
    assert_eq!(client.read(0, 8192), [[3; 4096], [2; 4096]].concat());
    assert_eq!(served.server.engine().power().status().cuts, 0, "the drive itself had none");
    let mut control = Control::to(&served);
    let forks = control.ask(&json!({ "do": "forks" }));
    assert_eq!(forks["forks"].as_array().unwrap().len(), 2);
    let socket = served.socket.with_file_name("cut");
    control.ask(&json!({ "do": "fork-end", "unix": socket }));
    assert!(after_cut.is_closed() && !socket.exists());
}

#[test]
fn a_fork_of_a_fork_loses_at_a_cut_what_the_first_one_had_not_flushed() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    Client::go(&served.socket, false).write(0, &[1; 4096]);
    let mut first = fork(&served, "first", &json!({ "as_is": true }));
    first.write(0, &[2; 4096]);
    let control = served.socket.with_file_name("first.control");
    let second = served.socket.with_file_name("second");
    let told = Control::at(&control).ask(&json!({ "do": "fork", "unix": second }));
    assert_eq!(told["cut"]["lost_writes"], 2, "{told}");
    assert_eq!(Client::go(&second, false).read(0, 4096), [0; 4096]);
}

#[test]
fn a_snapshot_keeps_its_moment_until_it_is_dropped() {
    let served = Served::new(DriveOptions::default(), Pace::None);
    let (mut client, mut control) = (Client::go(&served.socket, false), Control::to(&served));
    for moment in 1..=3_u8 {
        client.write(0, &[moment; 4096]);
        control.ask(&json!({ "do": "snapshot", "name": moment.to_string() }));
    }
    let snapshot = json!({ "do": "snapshot", "name": "2" });
    assert!(control.ask(&snapshot)["error"].is_string(), "the name is taken");
    for moment in 1..=3_u8 {
        let name = moment.to_string();
        let mut as_is = fork(&served, &name, &json!({ "from": name, "as_is": true }));
        assert_eq!(as_is.read(0, 4096), [moment; 4096]);
    }
    control.ask(&json!({ "do": "snapshot-drop", "name": "2" }));
    let socket = served.socket.with_file_name("none");
    for wish in [
        json!({ "do": "fork", "unix": socket, "from": "2" }),
        json!({ "do": "fork", "unix": served.socket }),
        json!({ "do": "fork-end", "unix": socket }),
        json!({ "do": "snapshot-drop", "name": "2" }),
    ] {
        assert!(control.ask(&wish)["error"].is_string(), "{wish}");
    }
}
