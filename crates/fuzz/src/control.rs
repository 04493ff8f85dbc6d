//! Requests on the control socket, and clients that meet their effects.

use crate::harness::{Protocol, Replies, Setup};
use crate::nbd::{check_alive, every_kind};

/// Limits the number of snapshots.
const INPUT_MAX: usize = 8 << 10;
/// The only spelling in which an input may name the socket of a clone.
const SOCKET: &str = r#""unix":""#;
/// The only spelling of the duration of a delay or a stall, and its longest value: clients wait.
const DURATION: &str = r#""for_s":"#;
const DURATION_MAX: &str = "0.01";
/// Undoes the effects of other requests: faults, a planned cut, a cut without `on`.
const RESET: &str = r#"{"do":"fault-clear"}
{"do":"power-cut"}
{"do":"power-on"}
"#;

/// Requests, one per line. With bit 5 of the setup, an NBD client reads and writes after them.
pub fn control(input: &[u8]) {
    let Some((setup, lines)) = Setup::parse(input) else { return };
    let folder = tempfile::tempdir().expect("a folder for sockets");
    let Some(sent) = sandboxed(lines, &folder.path().join("fork").to_string_lossy()) else {
        return;
    };
    let server = setup.server(false);
    let answers = check(&server.exchange(Protocol::Control, &sent));
    let lines = sent.split_inclusive(|byte| *byte == b'\n').count();
    let is_text = str::from_utf8(&sent).is_ok();
    assert!(if is_text { answers == lines } else { answers <= lines }, "{answers} of {lines}");
    if setup.has(5) && !setup.is_paced() {
        server.exchange(Protocol::Nbd, &every_kind());
    }
    server.exchange(Protocol::Control, RESET.as_bytes());
    check_alive(&server);
}

/// The input, with all sockets in `folder` and with short durations. `None` if it could name other
/// files, or plans a power cut after a time: its thread would outlive the input.
fn sandboxed(lines: &[u8], folder: &str) -> Option<Vec<u8>> {
    let has = |word: &[u8]| lines.windows(word.len()).any(|window| window == word);
    if lines.len() > INPUT_MAX || has(b"/") || has(b"\\") || has(b"power-cut") && has(b"after_s") {
        return None;
    }
    let text = String::from_utf8_lossy(lines);
    if text.matches("unix\"").count() != text.matches(SOCKET).count()
        || text.matches("for_s\"").count() != text.matches(DURATION).count()
    {
        return None;
    }
    if !text.contains(SOCKET) && !text.contains(DURATION) {
        return Some(lines.to_vec());
    }
    let text = text.replace(SOCKET, &format!("{SOCKET}{folder}"));
    let mut parts = text.split(DURATION);
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts.map(str::trim_start) {
        short.push_str(DURATION);
        let end = part.find(|byte: char| !byte.is_ascii_alphanumeric() && !"+-.".contains(byte));
        let (duration, rest) = part.split_at(end.unwrap_or(part.len()));
        let is_long = serde_json::from_str(duration).is_ok_and(|seconds: f64| seconds > 0.01);
        short.push_str(if is_long { DURATION_MAX } else { duration });
        short.push_str(rest);
    }
    Some(short.into_bytes())
}

/// Checks that each answer is a JSON object on a line of its own; returns the number of answers.
fn check(replies: &Replies) -> usize {
    let text = str::from_utf8(&replies.bytes).expect("answers are UTF-8");
    assert!(!replies.is_complete || text.is_empty() || text.ends_with('\n'), "truncated answer");
    for line in text.lines() {
        let answer: serde_json::Value = serde_json::from_str(line).expect("an answer is JSON");
        assert!(answer.is_object(), "{line}");
    }
    text.lines().count()
}
