//! Requests on the control socket, and clients that meet what they ask for.

use ssdlab_server::fuzz::Handed;

use crate::bed::{Heard, Setup, check_alive, talk};
use crate::nbd;

/// Longer inputs keep more snapshots than a test needs.
const INPUT_MAX: usize = 8 << 10;
/// The form in which an input may name a fork's socket.
const SOCKET: &str = r#""unix":""#;
/// It ends what requests can begin: faults, a plan for a cut, a cut that lasts.
const MENDING: &str = r#"{"do":"fault-clear"}
{"do":"power-cut"}
{"do":"power-on"}
"#;

/// Requests, one a line. With bit 5 of the setup a client reads and writes after them.
pub fn control(input: &[u8]) {
    let Some((setup, lines)) = Setup::of(input) else { return };
    let folder = tempfile::tempdir().expect("a folder for sockets");
    let Some(sent) = tame(lines, &folder.path().join("fork").to_string_lossy()) else { return };
    let server = setup.server(false);
    let heard = ask(&server, &sent);
    let answers = check(&heard);
    let lines = sent.split_inclusive(|byte| *byte == b'\n').count();
    let is_text = str::from_utf8(&sent).is_ok();
    assert!(if is_text { answers == lines } else { answers <= lines }, "{answers} of {lines}");
    if setup.has(5) && !setup.is_paced() {
        talk(|stream| server.nbd(stream), &nbd::every_kind());
    }
    ask(&server, MENDING.as_bytes());
    check_alive(&server);
}

fn ask(server: &Handed, sent: &[u8]) -> Heard {
    talk(|stream| server.control(stream), sent)
}

/// The input with sockets in a folder of its own; `None` where it could name other files, or
/// plans a cut by the clock: each is a thread that waits for longer than the input takes.
fn tame(lines: &[u8], folder: &str) -> Option<Vec<u8>> {
    let has = |word: &[u8]| lines.windows(word.len()).any(|window| window == word);
    if lines.len() > INPUT_MAX || has(b"/") || has(b"\\") || has(b"power-cut") && has(b"after_s") {
        return None;
    }
    let text = String::from_utf8_lossy(lines);
    if text.matches("unix\"").count() != text.matches(SOCKET).count() {
        return None;
    }
    if !text.contains(SOCKET) {
        return Some(lines.to_vec());
    }
    Some(text.replace(SOCKET, &format!("{SOCKET}{folder}")).into_bytes())
}

/// Checks that each answer is a JSON object on a line; returns how many there are.
fn check(heard: &Heard) -> usize {
    let text = str::from_utf8(&heard.bytes).expect("answers are text");
    assert!(!heard.is_all || text.is_empty() || text.ends_with('\n'), "an answer is cut short");
    for line in text.lines() {
        let answer: serde_json::Value = serde_json::from_str(line).expect("an answer is JSON");
        assert!(answer.is_object(), "{line}");
    }
    text.lines().count()
}
