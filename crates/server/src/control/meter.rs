//! What a drive does, over the control socket: commands, bytes, latencies.

use serde_json::{Map, Value, json};

use crate::server::Shared;

/// By kind of command; a histogram is a list of pairs: up to so many microseconds, commands.
pub fn told(shared: &Shared) -> Value {
    let (kinds, in_flight) =
        shared.engine.inspect(|state| (state.meter().by_kind().to_vec(), state.in_flight()));
    let mut told = Map::new();
    for kind in kinds {
        let micros = |time: ssdlab_time::Nanos| time.get() as f64 / 1e3;
        let histogram: Vec<_> = kind.histogram().map(|(up, n)| json!([micros(up), n])).collect();
        let all = json!({
            "commands": kind.commands,
            "failed": kind.failed,
            "bytes": kind.bytes,
            "latency_us": micros(kind.latency),
            "histogram_us": histogram,
        });
        told.insert(kind.kind.name().into(), all);
    }
    told.insert("in_flight".into(), json!(in_flight));
    Value::Object(told)
}
