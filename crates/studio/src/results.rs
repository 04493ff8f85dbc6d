//! `StepResult`: the result of one step, as JSON.

use serde_json::{Value, json};
use ssdlab_flash::PowerCut;
use ssdlab_time::Nanos;
use ssdlab_workload::Outcome;

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult(pub Value);

impl StepResult {
    /// A job, with the power cut that ended it, if one did.
    pub fn job(outcome: &Outcome, cut: Option<&PowerCut>) -> Self {
        let record = &outcome.record;
        let latency: Vec<_> = outcome.latency(None).buckets().map(|row| json!(row)).collect();
        let mut result = json!({
            "kind": "job",
            "start_ns": record.start.get(),
            "end_ns": record.end.get(),
            "requests": record.requests,
            "bytes": record.bytes,
            "errors": record.errors,
            "first_errno": record.first_errno,
            "unserved": record.unserved,
            "stopped": outcome.stopped,
            "failure": outcome.failure.as_ref().map(ToString::to_string),
            "latency": latency,
        });
        if let Some(cut) = cut {
            result["power_cut"] = loss(cut);
        }
        Self(result)
    }

    /// A rest.
    pub fn rest(start: Nanos, end: Nanos) -> Self {
        Self(json!({"kind": "rest", "start_ns": start.get(), "end_ns": end.get()}))
    }

    /// A power cut between jobs.
    pub fn power_cut(cut: &PowerCut) -> Self {
        let mut result = loss(cut);
        result["kind"] = json!("power_cut");
        Self(result)
    }

    /// A new drive.
    pub fn new_drive() -> Self {
        Self(json!({"kind": "new_drive"}))
    }

    /// A step that could not be run.
    pub fn failed(message: &str) -> Self {
        Self(json!({"kind": "failed", "message": message}))
    }
}

fn loss(cut: &PowerCut) -> Value {
    json!({
        "lost_units": cut.lost.len(),
        "lost_writes": cut.lost.iter().map(|unit| u64::from(unit.writes)).sum::<u64>(),
        "unanswered": cut.unanswered.len(),
    })
}
