//! What a twin is and what it has counted, as JSON.

use serde_json::{Map, Value, json};
use ssdlab_flash::Interface;

use crate::series::COLUMNS;
use crate::state::State;

/// The dimensions of the drive, and the names of counters and columns.
pub fn drive(state: &State) -> Value {
    let profile = &state.profile;
    let mut description = json!({
        "model": profile.model,
        "interface": if profile.link.interface == Interface::Nvme { "nvme" } else { "sata" },
        "spare": profile.spare(),
        "power_loss_protection": profile.buffer.power_loss_protection,
        "counters": state.ssd.counters().named().map(|(name, _)| name),
        "series": COLUMNS,
    });
    for (name, value) in profile.dimensions() {
        description[name] = json!(value);
    }
    description
}

/// The counters by name, as Python's `Drive.counters` has them.
pub fn counters(state: &State) -> Value {
    let ssd = &state.ssd;
    let (wear, service) = (ssd.wear(), ssd.service());
    let named = ssd.counters().named().map(|(name, count)| (name.to_owned(), json!(count)));
    let mut counters: Map<String, Value> = named.into_iter().collect();
    for (name, value) in [
        ("waf", json!(ssd.counters().waf())),
        ("erases_least", json!(wear.erases_least)),
        ("erases_mean", json!(wear.erases_mean)),
        ("erases_most", json!(wear.erases_most)),
        ("percentage_used", json!(wear.percentage_used)),
        ("available_spare_percent", json!(service.spare_percent())),
        ("read_only", json!(service.read_only)),
    ] {
        counters.insert(name.to_owned(), value);
    }
    Value::Object(counters)
}
