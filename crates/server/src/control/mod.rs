//! The control socket: a JSON request per line, answered by a line; docs/serve.md lists them.

mod clones;
mod counters;
mod faults;
mod latency_compensation;
mod power;
mod request;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

pub use clones::{NewClone, ended, list, refusal, served};
pub use power::DelayedPowerCut;
pub use request::ControlRequest;

use crate::state::ServerState;
use ssdlab_engine::MARK_MAX;
use ssdlab_wire::Connection;

/// Maximum length of a request.
const LINE_MAX: u64 = 64 << 10;

/// The answer to a request, or an error message.
pub type Answer = Result<Value, String>;

/// The result of a request.
pub enum Outcome {
    Answered(Answer),
    /// The server acts, and then answers.
    Action(Action),
}

/// What only the server can do, because it starts or ends something or knows what it started.
pub enum Action {
    CutPowerLater(DelayedPowerCut),
    ServeClone(NewClone),
    /// Stop serving the clone on this socket.
    EndClone(PathBuf),
    ListClones,
}

/// Answers the requests of a connection until the peer closes it.
///
/// # Errors
/// The connection fails.
pub fn serve(connection: Connection, answer: impl Fn(ControlRequest) -> Answer) -> io::Result<()> {
    let mut output = connection.clone();
    let mut input = BufReader::new(connection);
    let mut line = String::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => answer(request),
            Err(error) => Err(error.to_string()),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
        output.write_all(format!("{answer}\n").as_bytes())?;
    }
}

/// Answers a request, or returns the action that it needs.
pub fn handle(state: &ServerState, request: ControlRequest) -> Outcome {
    Outcome::Answered(match request {
        ControlRequest::Counters {} => Ok(counters::counters(state)),
        ControlRequest::Meter {} => Ok(counters::meter(&state.engine)),
        ControlRequest::Power {} => Ok(power::status(&state.engine.power().status())),
        ControlRequest::PowerCut(request) => return power::cut(state, &request),
        ControlRequest::PowerOn {} => power::on(&state.engine),
        ControlRequest::LatencyCompensation(request) => {
            latency_compensation::set(&state.engine, &request)
        }
        ControlRequest::Fault(request) => faults::add(&state.engine, request),
        ControlRequest::Faults {} => Ok(faults::list(&state.engine)),
        ControlRequest::FaultClear { fault } => faults::clear(&state.engine, fault),
        ControlRequest::Mark { name } => mark(state, &name),
        ControlRequest::Snapshot { name } => clones::snapshot(state, &name),
        ControlRequest::SnapshotDrop { name } => clones::drop_snapshot(state, &name),
        ControlRequest::Fork(request) => return clones::prepare(state, request),
        ControlRequest::ForkEnd { unix } => return Outcome::Action(Action::EndClone(unix)),
        ControlRequest::Forks {} => return Outcome::Action(Action::ListClones),
    })
}

fn mark(state: &ServerState, name: &str) -> Answer {
    if name.len() > MARK_MAX {
        return Err(format!("name has {} bytes; {MARK_MAX} at most", name.len()));
    }
    match state.engine.content().mark(name) {
        Ok(true) => Ok(json!({ "marked": name })),
        Ok(false) => Err("the server writes no log; start it with --log".into()),
        Err(error) => Err(error.to_string()),
    }
}
