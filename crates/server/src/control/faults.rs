//! Requests about injected faults.

use std::time::Duration;

use serde_json::{Value, json};
use ssdlab_engine::{Engine, Fault, FaultKind, FaultSpec, OperationKind};

use super::Answer;
use super::request::{FaultName, FaultRequest};

/// Longest delay, stall, or time before a fault.
const TIME_S_MAX: f64 = 1e6;

pub fn add(engine: &Engine, request: FaultRequest) -> Answer {
    let spec = request.spec()?;
    Ok(json!({ "fault": engine.faults(|faults| faults.add(spec)) }))
}

pub fn list(engine: &Engine) -> Value {
    let faults: Vec<_> = engine.faults(|faults| faults.all().iter().map(to_json).collect());
    json!({ "faults": faults })
}

/// Removes one fault, or all.
pub fn clear(engine: &Engine, number: Option<u64>) -> Answer {
    let cleared = engine.faults(|faults| faults.clear(number));
    if cleared == 0 && number.is_some() {
        return Err("no fault has this number".into());
    }
    Ok(json!({ "cleared": cleared }))
}

impl FaultRequest {
    fn spec(self) -> Result<FaultSpec, String> {
        let kind = self.fault_kind()?;
        let probability_fits = self.probability.is_none_or(|share| (0.0..=1.0).contains(&share));
        let counts_fit = self.at != Some(0) && self.times != Some(0);
        let range_fits = self.range.is_none_or(|(start, end)| start < end);
        if !probability_fits || !counts_fit || !range_fits {
            return Err(
                "at and times must be 1 or more, probability 0 to 1, and a range must end \
                        after its start"
                    .into(),
            );
        }
        let defaults_to_once =
            self.at.is_some() || matches!(kind, FaultKind::Die(_) | FaultKind::Stall(_));
        Ok(FaultSpec {
            kind,
            range: self.range.map(|(start, end)| start..end),
            operation_kind: self.op,
            nth: self.at,
            start_after: self.after_s.map(duration).transpose()?,
            probability: self.probability,
            seed: self.seed,
            max_hits: self.times.or(defaults_to_once.then_some(1)),
        })
    }

    fn fault_kind(&self) -> Result<FaultKind, String> {
        let needs_duration = matches!(self.kind, FaultName::Delay | FaultName::Stall);
        if self.for_s.is_some() != needs_duration
            || self.die.is_some() != (self.kind == FaultName::Die)
        {
            return Err("for_s is for delay and stall only, and they need it; die is for die \
                        only, and it needs it"
                .into());
        }
        let lasting = self.for_s.map(duration).transpose()?.unwrap_or_default();
        Ok(match self.kind {
            FaultName::Eio => FaultKind::Eio,
            FaultName::ReadOnly => FaultKind::ReadOnly,
            FaultName::Delay => FaultKind::Delay(lasting),
            FaultName::Stall => FaultKind::Stall(lasting),
            FaultName::Die => FaultKind::Die(self.die.unwrap_or_default()),
            FaultName::Torn => FaultKind::Torn,
            FaultName::Misdirected => FaultKind::Misdirected,
            FaultName::Lost => FaultKind::Lost,
        })
    }
}

fn duration(seconds: f64) -> Result<Duration, String> {
    if (0.0..TIME_S_MAX).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("{seconds} s is out of range: 0 to 1e6"))
    }
}

fn to_json(fault: &Fault) -> Value {
    let spec = &fault.spec;
    let (for_s, die) = match spec.kind {
        FaultKind::Delay(time) | FaultKind::Stall(time) => (Some(time.as_secs_f64()), None),
        FaultKind::Die(die) => (None, Some(die)),
        _ => (None, None),
    };
    json!({
        "fault": fault.number,
        "kind": spec.kind.name(),
        "befell": fault.hits,
        "range": spec.range.as_ref().map(|range| [range.start, range.end]),
        "op": spec.operation_kind.map(OperationKind::name),
        "at": spec.nth,
        "after_s": spec.start_after.map(|after| after.as_secs_f64()),
        "probability": spec.probability,
        "seed": spec.seed,
        "times": spec.max_hits,
        "for_s": for_s,
        "die": die,
        "dead_units": fault.dead_units(),
    })
}
