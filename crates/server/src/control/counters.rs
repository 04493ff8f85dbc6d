//! Requests for counters and latencies.

use serde_json::{Map, Value, json};
use ssdlab_engine::Engine;
use ssdlab_time::Nanos;

use crate::state::ServerState;

/// All counters by name; null if a value is not known yet.
pub fn counters(state: &ServerState) -> Value {
    let engine = &state.engine;
    let mut counters: Map<String, Value> = engine
        .counters()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let lateness = engine.clock().reply_lateness();
    counters.insert("clients".into(), json!(state.client_count()));
    counters.insert("power_cuts".into(), json!(engine.power().status().cuts));
    counters.insert("paced_answers".into(), json!(lateness.replies));
    counters.insert("late_answers".into(), json!(lateness.late));
    counters.insert("latest_answer_us".into(), json!(lateness.max.as_secs_f64() * 1e6));
    let client_limits = state.client_limits.counters().into_iter();
    counters.extend(client_limits.map(|(name, count)| (name.to_owned(), json!(count))));
    Value::Object(counters)
}

/// Commands, bytes and latencies by kind of command. A histogram is a list of pairs: the upper
/// bound of a bucket in microseconds, and its number of commands.
pub fn meter(engine: &Engine) -> Value {
    let (kinds, in_flight) =
        engine.inspect(|state| (state.meter.by_kind().to_vec(), state.in_flight));
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
    meter.insert("in_flight".into(), json!(in_flight));
    Value::Object(meter)
}
