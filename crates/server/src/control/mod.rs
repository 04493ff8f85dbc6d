//! The control socket: lines of JSON, a request and its answer each; docs/serve.md has them all.

mod ask;
mod fault;
mod fork;
mod lead;
mod meter;
mod power;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::server::Shared;
use ask::ControlRequest;
use ssdlab_engine::MARK_MAX;
use ssdlab_wire::Connection;

/// The longest request.
const LINE_MAX: u64 = 64 << 10;

/// What a request is answered with; an error in words.
type Answer = Result<Value, String>;

/// Answers requests until the other end goes.
///
/// # Errors
/// The connection's.
pub fn converse(shared: &Arc<Shared>, link: Connection) -> io::Result<()> {
    let mut output = link.clone();
    let mut input = BufReader::new(link);
    let mut asked = String::new();
    loop {
        asked.clear();
        if input.by_ref().take(LINE_MAX).read_line(&mut asked)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&asked) {
            Ok(ask) => obey(shared, ask),
            Err(error) => Err(error.to_string()),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
        output.write_all(format!("{answer}\n").as_bytes())?;
    }
}

fn obey(shared: &Arc<Shared>, ask: ControlRequest) -> Answer {
    match ask {
        ControlRequest::Counters {} => Ok(counters(shared)),
        ControlRequest::Power {} => Ok(power::told(&shared.engine.power().status())),
        ControlRequest::PowerCut(wish) => power::cut(shared, &wish),
        ControlRequest::PowerOn {} => power::on(shared),
        ControlRequest::Meter {} => Ok(meter::told(shared)),
        ControlRequest::LatencyCompensation(wish) => lead::lead(&shared.engine, &wish),
        ControlRequest::Fault(wish) => fault::add(shared, wish),
        ControlRequest::Faults {} => Ok(fault::all(shared)),
        ControlRequest::FaultClear { fault } => fault::clear(shared, fault),
        ControlRequest::Mark { name } => mark(shared, &name),
        ControlRequest::Snapshot { name } => fork::snapshot(shared, &name),
        ControlRequest::SnapshotDrop { name } => fork::drop_snapshot(shared, &name),
        ControlRequest::Fork(wish) => fork::fork(shared, &wish),
        ControlRequest::ForkEnd { unix } => fork::end(shared, &unix),
        ControlRequest::Forks {} => Ok(fork::all(shared)),
    }
}

fn mark(shared: &Shared, name: &str) -> Answer {
    if name.len() > MARK_MAX {
        return Err(format!("a mark has at most {MARK_MAX} bytes"));
    }
    match shared.engine.content().mark(name) {
        Ok(true) => Ok(json!({ "marked": name })),
        Ok(false) => Err("there is no log; it is asked for when the server starts".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// What was counted, by name; null where it cannot be known yet.
fn counters(shared: &Shared) -> Value {
    let mut counted: Map<String, Value> = shared
        .engine
        .counters()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let lag = shared.engine.clock().reply_lateness();
    counted.insert("clients".into(), json!(shared.client_count()));
    counted.insert("power_cuts".into(), json!(shared.engine.power().status().cuts));
    counted.insert("paced_answers".into(), json!(lag.replies));
    counted.insert("late_answers".into(), json!(lag.late));
    counted.insert("latest_answer_us".into(), json!(lag.max.as_secs_f64() * 1e6));
    let resources = shared.resources.counters().into_iter();
    counted.extend(resources.map(|(name, count)| (name.to_owned(), json!(count))));
    Value::Object(counted)
}
