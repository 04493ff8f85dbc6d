//! What a twin is and what it has counted, as JSON.

use serde_json::{Map, Value, json};
use ssdlab_flash::Interface;

use crate::series::COLUMNS;
use crate::state::State;

/// The dimensions of the drive, and the names of counters and columns.
pub fn drive(state: &State) -> Value {
    let profile = &state.profile;
    let geometry = &profile.geometry;
    let unit = geometry.unit_bytes();
    let counters = state.ssd.counters().named();
    json!({
        "model": profile.model,
        "interface": if profile.link.interface == Interface::Nvme { "nvme" } else { "sata" },
        "capacity_bytes": profile.capacity,
        "flash_bytes": geometry.bytes(),
        "spare": profile.spare(),
        "channels": geometry.channels,
        "dies": geometry.dies(),
        "planes": geometry.planes,
        "page_bytes": u64::from(geometry.page_units) * unit,
        "chunk_bytes": u64::from(geometry.chunk_units) * unit,
        "stripe_bytes": u64::from(geometry.stripe_units()) * unit,
        "superblock_bytes": geometry.superblock_bytes(),
        "superblocks": geometry.blocks_per_plane,
        "buffer_bytes": profile.buffer.size,
        "power_loss_protection": profile.buffer.power_loss_protection,
        "slc_bytes": profile.slc.as_ref().map_or(0, |slc| slc.bytes(geometry)),
        "unit_bytes": unit,
        "superblock_units": geometry.superblock_units(),
        "pages_per_block": geometry.pages_per_block,
        "counters": counters.map(|(name, _)| name),
        "series": COLUMNS,
    })
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
