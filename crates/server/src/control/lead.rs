//! How early answers leave, over the control socket: as long as the way takes that they have left.
//!
//! At its start a server measures the way over its socket. What a client sees behind a loop device,
//! a file of nbdfuse or another host is longer on its way: that is measured where the client is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Answer;
use crate::calibration::{LONG, ROUNDS, be_punctual, share};
use ssdlab_engine::buffer_pool::BufferPool;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::{Engine, Operation};
use ssdlab_engine::{LatencyCompensation, SHORT_REPLY_BYTES};

/// No longer is measured; where the pace is slow fewer rounds have to do.
const PATIENCE: Duration = Duration::from_secs(10);
/// Too few to tell, and something else reads.
const ROUNDS_MIN: usize = 10;
/// A longer way is a mistake.
const WAY_US_MAX: f64 = 1e6;

/// What is asked of the lead.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct LeadWish {
    /// A device or file of this machine whose reads come to this drive.
    through: Option<PathBuf>,
    /// So long a request and its answer with 4 KiB are on their way.
    transport_us: Option<f64>,
    /// And each byte beyond.
    ns_per_byte: Option<f64>,
}

/// Tells the lead; measures it through a device first, or takes what is said.
pub fn lead(engine: &Engine, wish: &LeadWish) -> Answer {
    let clock = engine.clock();
    if !clock.is_paced() {
        return Err("answers leave at once: the server was started without a pace".into());
    }
    match (&wish.through, wish.transport_us, wish.ns_per_byte) {
        (None, None, None) => {}
        (Some(path), None, None) => {
            let lead = measured(engine, path);
            clock.set_compensation(lead.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        (None, Some(transport_us), ns_per_byte)
            if [transport_us, ns_per_byte.unwrap_or(0.0)]
                .iter()
                .all(|each| (0.0..=WAY_US_MAX).contains(each)) =>
        {
            let round_trip = Duration::from_secs_f64(transport_us / 1e6);
            let ns_per_byte = ns_per_byte.unwrap_or(0.0);
            clock.set_compensation(LatencyCompensation {
                round_trip,
                ns_per_byte,
                ..clock.compensation()
            });
        }
        _ => {
            return Err("a lead is measured through a device or file, or said: transport_us from \
                        0 to 1000000, ns_per_byte likewise, or 0"
                .into());
        }
    }
    Ok(told(&clock.compensation()))
}

fn told(lead: &LatencyCompensation) -> Value {
    let transport_us = lead.round_trip.as_secs_f64() * 1e6;
    json!({ "transport_us": transport_us, "ns_per_byte": lead.ns_per_byte })
}

/// Measures the way by reading, with nobody else reading meanwhile.
fn measured(engine: &Engine, path: &Path) -> io::Result<LatencyCompensation> {
    be_punctual();
    let direct = OFlags::DIRECT.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(direct).open(path)?;
    let short = ways(engine, &file, (ROUNDS, SHORT_REPLY_BYTES))?.ok_or_else(|| {
        io::Error::other("reading it is not reading this drive, or somebody else reads it too")
    })?;
    // Longer ones may come in parts.
    let mut bytes = LONG.1;
    while bytes > SHORT_REPLY_BYTES {
        if let Some(long) = ways(engine, &file, (LONG.0, bytes))? {
            return Ok(engine.clock().compensation().with_round_trips(short, bytes, long));
        }
        bytes /= 2;
    }
    Ok(LatencyCompensation { round_trip: short, ns_per_byte: 0.0, ..engine.clock().compensation() })
}

/// How long the way of reads of so many bytes is: the median; `None` where they do not come as one.
fn ways(
    engine: &Engine,
    file: &File,
    (rounds, bytes): (usize, usize),
) -> io::Result<Option<Duration>> {
    let mut into = BufferPool::new(bytes).take();
    let places = (engine.parameters().capacity / bytes as u64).max(1);
    let mut found = Vec::with_capacity(rounds);
    let until = wall_clock_now() + PATIENCE;
    for round in 0..rounds as u64 {
        if round >= ROUNDS_MIN as u64 && (wall_clock_now() > until || found.is_empty()) {
            break;
        }
        found.extend(way(engine, file, (&mut into, round % places * bytes as u64))?);
    }
    Ok((found.len() >= ROUNDS_MIN / 2).then(|| share(found, 50)))
}

/// How much longer one read takes than its answer stays in this server.
fn way(
    engine: &Engine,
    file: &File,
    (into, offset): (&mut [u8], u64),
) -> io::Result<Option<Duration>> {
    let before = engine.inspect(|state| state.meter().of(Operation::Read).clone());
    let asked = wall_clock_now();
    file.read_exact_at(into, offset)?;
    let took = asked.elapsed();
    let after = engine.inspect(|state| state.meter().of(Operation::Read).clone());
    let came = (after.commands - before.commands, after.bytes - before.bytes);
    let lasted = engine.clock().wall_time(after.latency.saturating_sub(before.latency));
    let stayed = lasted.saturating_sub(engine.clock().compensation().for_bytes(into.len() as u64));
    Ok((came == (1, into.len() as u64)).then(|| took.saturating_sub(stayed)))
}
