//! Requests about the latency compensation: how early paced replies are sent.
//!
//! When it starts, a server measures the latency of its own transport. Through a loop device, a
//! file of nbdfuse or another host the latency is higher; it must be measured at the client.

use std::time::Duration;

use serde_json::json;
use ssdlab_engine::{Engine, LatencyCompensation};

use super::Answer;
use super::request::LatencyCompensationRequest;
use crate::calibration::measure_through;

/// Highest latency, in microseconds, and highest latency of a byte, in nanoseconds.
const LATENCY_MAX: f64 = 1e6;

/// Measures the latency through a device, or sets it; returns the compensation that holds then.
pub fn set(engine: &Engine, request: &LatencyCompensationRequest) -> Answer {
    let clock = &engine.clock;
    if !clock.is_paced() {
        return Err("replies are not delayed; start the server with --pace".into());
    }
    match (&request.through, request.transport_us, request.ns_per_byte) {
        (None, None, None) => {}
        (Some(path), None, None) => {
            let measured = measure_through(engine, path);
            clock.set_compensation(
                measured.map_err(|error| format!("{}: {error}", path.display()))?,
            );
        }
        (None, Some(transport_us), ns_per_byte)
            if [transport_us, ns_per_byte.unwrap_or(0.0)]
                .iter()
                .all(|latency| (0.0..=LATENCY_MAX).contains(latency)) =>
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
            return Err("give through (a device or file), or transport_us (0 to 1e6) with or \
                        without ns_per_byte (0 to 1e6), or neither"
                .into());
        }
    }
    let LatencyCompensation { round_trip, ns_per_byte, .. } = clock.compensation();
    Ok(json!({ "transport_us": round_trip.as_secs_f64() * 1e6, "ns_per_byte": ns_per_byte }))
}
