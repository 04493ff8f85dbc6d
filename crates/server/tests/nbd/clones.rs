//! Snapshots and clones.

use serde_json::{Value, json};

use crate::prelude::*;

/// Serves a clone on the socket `name`; returns a client of it.
fn fork(server: &TestServer, name: &str, mut arguments: Value) -> Client {
    let socket = server.socket.with_file_name(name);
    arguments["unix"] = json!(socket);
    let reply = server.control().call("fork", arguments);
    assert_eq!(reply["unix"], json!(socket), "{reply}");
    Client::go(&socket, false).unwrap()
}

#[test]
fn a_clone_has_the_data_that_a_cut_would_leave_and_is_independent() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &[1; 8192]);
    client.flush();
    client.write(4096, &[2; 4096]);
    let mut after_cut = fork(&server, "cut", json!({}));
    let mut as_is = fork(&server, "as-is", json!({ "as_is": true }));
    client.write(0, &[3; 4096]);
    assert_eq!(after_cut.read(0, 8192), [1; 8192]);
    assert_eq!(as_is.read(0, 8192), [[1; 4096], [2; 4096]].concat());
    after_cut.write(0, &[4; 4096]);
    assert_eq!(client.read(0, 8192), [[3; 4096], [2; 4096]].concat());
    assert_eq!(server.server.engine().power().status().cuts, 0, "the original had no power cut");
    let mut control = server.control();
    let forks = control.verb("forks");
    assert_eq!(forks["forks"].as_array().unwrap().len(), 2);
    let socket = server.socket.with_file_name("cut");
    control.call("fork-end", json!({ "unix": socket }));
    assert!(after_cut.is_closed() && !socket.exists());
}

#[test]
fn a_clone_of_a_clone_loses_in_its_cut_what_was_not_flushed() {
    let server = TestServer::default();
    server.client().write(0, &[1; 4096]);
    let mut first = fork(&server, "first", json!({ "as_is": true }));
    first.write(0, &[2; 4096]);
    let control = server.socket.with_file_name("first.control");
    let second = server.socket.with_file_name("second");
    let reply = Control::connect(&control).unwrap().call("fork", json!({ "unix": second }));
    assert_eq!(reply["cut"]["lost_writes"], 2, "{reply}");
    assert_eq!(Client::go(&second, false).unwrap().read(0, 4096), [0; 4096]);
}

#[test]
fn a_snapshot_keeps_its_data_until_it_is_dropped() {
    let (server, mut control, mut client) = TestServer::with_control();
    for moment in 1..=3_u8 {
        client.write(0, &[moment; 4096]);
        control.call("snapshot", json!({ "name": moment.to_string() }));
    }
    let again = control.call("snapshot", json!({ "name": "2" }));
    assert!(again["error"].is_string(), "the name is in use");
    for moment in 1..=3_u8 {
        let name = moment.to_string();
        let mut as_is = fork(&server, &name, json!({ "from": name, "as_is": true }));
        assert_eq!(as_is.read(0, 4096), [moment; 4096]);
    }
    control.call("snapshot-drop", json!({ "name": "2" }));
    let socket = server.socket.with_file_name("none");
    for (verb, arguments) in [
        ("fork", json!({ "unix": socket, "from": "2" })),
        ("fork", json!({ "unix": server.socket })),
        ("fork-end", json!({ "unix": socket })),
        ("snapshot-drop", json!({ "name": "2" })),
    ] {
        assert!(control.call(verb, arguments)["error"].is_string(), "{verb}");
    }
}
