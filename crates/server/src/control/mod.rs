//! The control socket: a JSON request per line, answered by a line; docs/serve.md lists them.

mod clones;
mod faults;
mod latency_compensation;
mod power;
mod request;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::state::ServerState;
use request::ControlRequest;
use ssdlab_engine::{Engine, Inside, MARK_MAX};
use ssdlab_time::Nanos;
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
        ControlRequest::Counters {} => Ok(counters(state)),
        ControlRequest::Meter {} => Ok(meter(engine)),
        ControlRequest::Inside {} => inside(engine),
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
    match engine.content.mark(name) {
        Ok(true) => Ok(json!({ "marked": name })),
        Ok(false) => Err("the server writes no log; start it with --log".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// All counters by name; null if a value is not known yet.
fn counters(state: &ServerState) -> Value {
    let engine = &state.engine;
    let mut counters: Map<String, Value> = engine
        .counters()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let lateness = engine.clock.reply_lateness();
    counters.insert("clients".into(), json!(state.client_count()));
    counters.insert("power_cuts".into(), json!(engine.power().status().cuts));
    counters.insert("paced_answers".into(), json!(lateness.replies));
    counters.insert("late_answers".into(), json!(lateness.late));
    counters.insert("latest_answer_us".into(), json!(lateness.max.as_secs_f64() * 1e6));
    let client_limits = state.client_limits.counters().into_iter();
    counters.extend(client_limits.map(|(name, count)| (name.to_owned(), json!(count))));
    Value::Object(counters)
}

/// The inside of the drive; docs/serve.md describes its rows. Its clock is that of the latest
/// command.
fn inside(engine: &Engine) -> Answer {
    let (found, cuts) = engine.inspect(|state| (state.drive.inside(), state.power_cuts()));
    let Inside { model, spare, dimensions, state, counters, superblocks, dies } =
        found.ok_or("the drive does not report its inside")?;
    let object = |pairs: Vec<(&'static str, u64)>| -> Map<String, Value> {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
    };
    let mut drive = object(dimensions);
    drive.insert("model".into(), json!(model));
    drive.insert("spare".into(), json!(spare));
    let mut answer = object(state);
    answer.insert("drive".into(), Value::Object(drive));
    answer.insert("power_cuts".into(), json!(cuts));
    answer.insert("counters".into(), Value::Object(object(counters)));
    answer.insert("superblocks".into(), json!(superblocks));
    answer.insert("dies".into(), json!(dies));
    Ok(Value::Object(answer))
}

/// Commands, bytes and latencies by kind of command. A histogram is a list of pairs: the upper
/// bound of a bucket in microseconds, and its number of commands.
fn meter(engine: &Engine) -> Value {
    let kinds = engine.inspect(|state| state.meter().by_kind().to_vec());
    let micros = |time: Nanos| time.get() as f64 / 1e3;
    let mut meter = Map::new();
    for kind in kinds {
        let histogram: Vec<_> = kind.histogram().map(|(up, n)| json!([micros(up), n])).collect();
        let values = json!({
            "commands": kind.commands,
            "failed": kind.failed,
            "bytes": kind.bytes,
            "latency_us": micros(kind.latency),
            "histogram_us": histogram,
        });
        meter.insert(kind.kind.name().into(), values);
    }
    meter.insert("in_flight".into(), json!(engine.in_flight()));
    Value::Object(meter)
}
