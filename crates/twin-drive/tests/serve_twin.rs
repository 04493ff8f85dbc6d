//! The example `serve_twin` as a program: an error is one line, even if its output is closed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The example, which Cargo builds next to the tests.
fn program() -> Command {
    let test = env::current_exe().expect("the test's own program");
    let folder = test.ancestors().nth(2).expect("target/PROFILE/deps/NAME").join("examples");
    Command::new(folder.join("serve_twin"))
}

fn profile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ssdlab/profiles/toshiba-xg5.toml")
}

#[test]
fn a_closed_standard_output_is_an_error_of_one_line() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let socket = env::temp_dir().join(format!("ssdlab-serve-twin-{}.sock", std::process::id()));
    let done = program()
        .args([profile(), socket.clone()])
        .stdin(Stdio::null())
        .stdout(writer)
        .output()
        .expect("`cargo test` without --test builds it");
    let text = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(text, "serve_twin: Broken pipe (os error 32)\n");
    assert_eq!(done.status.code(), Some(2));
    assert!(!socket.exists(), "the server removes its socket");
}

#[test]
fn wrong_use_is_an_error_of_one_line() {
    let done = program().output().expect("`cargo test` without --test builds it");
    let text = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(text, "serve_twin: usage: serve_twin PROFILE SOCKET\n");
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn the_example_is_short() {
    let example = include_str!("../../../examples/serve_twin.rs");
    assert!(example.lines().count() <= 40);
}
