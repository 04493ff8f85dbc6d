//! Snapshots and clones.

use serde_json::{Value, json};
use ssdlab_engine::Pace;

use crate::client::Client;
use crate::control::Control;
use crate::test_server::TestServer;
use ssdlab_testing::DriveOptions;

/// Serves a clone on the socket `name`; returns a client of it.
fn fork(server: &TestServer, name: &str, more: &Value) -> Client {
    let socket = server.socket.with_file_name(name);
    let mut request = json!({ "do": "fork", "unix": socket });
    for (key, value) in more.as_object().unwrap() {
        request[key] = value.clone();
    }
    let reply = Control::to(server).request(&request);
    assert_eq!(reply["unix"], json!(socket), "{reply}");
    Client::go(&socket, false)
}

#[test]
fn a_clone_has_the_data_that_a_cut_would_leave_and_is_independent() {
    let server = TestServer::new(DriveOptions::default(), Pace::None);
    let mut client = Client::go(&server.socket, false);
    client.write(0, &[1; 8192]);
    client.flush();
    client.write(4096, &[2; 4096]);
    let mut after_cut = fork(&server, "cut", &json!({}));
    let mut as_is = fork(&server, "as-is", &json!({ "as_is": true }));
    client.write(0, &[3; 4096]);
    assert_eq!(after_cut.read(0, 8192), [1; 8192]);
    assert_eq!(as_is.read(0, 8192), [[1; 4096], [2; 4096]].concat());
    after_cut.write(0, &[4; 4096]);
    assert_eq!(client.read(0, 8192), [[3; 4096], [2; 4096]].concat());
    assert_eq!(server.server.engine().power().status().cuts, 0, "the original had no power cut");
    let mut control = Control::to(&server);
    let forks = control.request(&json!({ "do": "forks" }));
    assert_eq!(forks["forks"].as_array().unwrap().len(), 2);
    let socket = server.socket.with_file_name("cut");
    control.request(&json!({ "do": "fork-end", "unix": socket }));
    assert!(after_cut.is_closed() && !socket.exists());
}

#[test]
fn a_clone_of_a_clone_loses_in_its_cut_what_was_not_flushed() {
    let server = TestServer::new(DriveOptions::default(), Pace::None);
    Client::go(&server.socket, false).write(0, &[1; 4096]);
    let mut first = fork(&server, "first", &json!({ "as_is": true }));
    first.write(0, &[2; 4096]);
    let control = server.socket.with_file_name("first.control");
    let second = server.socket.with_file_name("second");
    let reply = Control::at(&control).request(&json!({ "do": "fork", "unix": second }));
    assert_eq!(reply["cut"]["lost_writes"], 2, "{reply}");
    assert_eq!(Client::go(&second, false).read(0, 4096), [0; 4096]);
}

#[test]
fn a_snapshot_keeps_its_data_until_it_is_dropped() {
    let server = TestServer::new(DriveOptions::default(), Pace::None);
    let (mut client, mut control) = (Client::go(&server.socket, false), Control::to(&server));
    for moment in 1..=3_u8 {
        client.write(0, &[moment; 4096]);
        control.request(&json!({ "do": "snapshot", "name": moment.to_string() }));
    }
    let snapshot = json!({ "do": "snapshot", "name": "2" });
    assert!(control.request(&snapshot)["error"].is_string(), "the name is in use");
    for moment in 1..=3_u8 {
        let name = moment.to_string();
        let mut as_is = fork(&server, &name, &json!({ "from": name, "as_is": true }));
        assert_eq!(as_is.read(0, 4096), [moment; 4096]);
    }
    control.request(&json!({ "do": "snapshot-drop", "name": "2" }));
    let socket = server.socket.with_file_name("none");
    for arguments in [
        json!({ "do": "fork", "unix": socket, "from": "2" }),
        json!({ "do": "fork", "unix": server.socket }),
        json!({ "do": "fork-end", "unix": socket }),
        json!({ "do": "snapshot-drop", "name": "2" }),
    ] {
        assert!(control.request(&arguments)["error"].is_string(), "{arguments}");
    }
}
