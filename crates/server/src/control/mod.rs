//! The control socket: a JSON request per line, answered by a line; docs/serve.md lists them.

mod clones;
mod counters;
mod faults;
mod latency_compensation;
mod power;
mod request;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::state::ServerState;
use request::ControlRequest;
use ssdlab_engine::{Engine, MARK_MAX};
use ssdlab_wire::Connection;

/// Maximum length of a request.
const LINE_MAX: u64 = 64 << 10;

/// The answer to a request, or an error message.
type Answer = Result<Value, String>;

/// What the server does for a request: it alone starts and ends clones and threads.
pub trait Host {
    fn state(&self) -> &ServerState;

    /// Cuts the power after some seconds of wall-clock time; turns it on again if `then_on`.
    fn cut_power_after(&self, seconds: f64, then_on: bool) -> io::Result<()>;

    /// Serves a clone. Returns the path of its control socket.
    fn serve_clone(&self, engine: Engine, socket: &Path) -> io::Result<PathBuf>;

    /// Stops serving a clone; false if none is served on this socket.
    fn end_clone(&self, socket: &Path) -> bool;

    /// The sockets of all clones.
    fn clone_sockets(&self) -> Vec<PathBuf>;
}

/// Answers the requests of a connection until the peer closes it.
pub fn serve(connection: Connection, host: &impl Host) -> io::Result<()> {
    let mut output = connection.clone();
    let mut input = BufReader::new(connection);
    let mut line = String::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => answer(host, request),
            Err(error) => Err(error.to_string()),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
        output.write_all(format!("{answer}\n").as_bytes())?;
    }
}

fn answer(host: &impl Host, request: ControlRequest) -> Answer {
    let state = host.state();
    let engine = &state.engine;
    match request {
        ControlRequest::Counters {} => Ok(counters::counters(state)),
        ControlRequest::Meter {} => Ok(counters::meter(engine)),
        ControlRequest::Power {} => Ok(power::status(&engine.power().status())),
        ControlRequest::PowerCut(request) => power::cut(host, &request),
        ControlRequest::PowerOn {} => power::on(engine),
        ControlRequest::LatencyCompensation(request) => latency_compensation::set(engine, &request),
        ControlRequest::Fault(request) => faults::add(engine, request),
        ControlRequest::Faults {} => Ok(faults::list(engine)),
        ControlRequest::FaultClear { fault } => faults::clear(engine, fault),
        ControlRequest::Mark { name } => mark(engine, &name),
        ControlRequest::Snapshot { name } => clones::snapshot(state, &name),
        ControlRequest::SnapshotDrop { name } => clones::drop_snapshot(state, &name),
        ControlRequest::Fork(request) => clones::serve(host, &request),
        ControlRequest::ForkEnd { unix } => clones::end(host, &unix),
        ControlRequest::Forks {} => Ok(clones::list(host)),
    }
}

fn mark(engine: &Engine, name: &str) -> Answer {
    if name.len() > MARK_MAX {
        return Err(format!("name has {} bytes; {MARK_MAX} at most", name.len()));
    }
    match engine.content().mark(name) {
        Ok(true) => Ok(json!({ "marked": name })),
        Ok(false) => Err("the server writes no log; start it with --log".into()),
        Err(error) => Err(error.to_string()),
    }
}
