//! Faults over the control socket.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Answer;
use crate::server::Shared;
use ssdlab_engine::{FaultKind as Kind, FaultSpec, FaultStatus, OperationKind};

/// A longer time is a mistake.
const TIME_S_MAX: f64 = 1e6;

/// What goes wrong, by name.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Eio,
    ReadOnly,
    Delay,
    Stall,
    Die,
    Torn,
    Misdirected,
    Lost,
}

#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
enum Op {
    Read,
    Write,
    Trim,
    Flush,
}

/// A fault as it is asked for; all triggers that are given have to be met.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct FaultWish {
    kind: Name,
    /// First byte and end.
    range: Option<(u64, u64)>,
    op: Option<Op>,
    /// From the Nth of these commands on; 1 is the next.
    at: Option<u64>,
    after_s: Option<f64>,
    probability: Option<f64>,
    #[serde(default)]
    seed: u64,
    times: Option<u64>,
    /// Of a delay or a stall.
    #[serde(rename = "for_s")]
    seconds: Option<f64>,
    /// Of `die`: its number.
    die: Option<u32>,
}

/// Lets something go wrong.
pub fn add(shared: &Shared, wish: FaultWish) -> Answer {
    let wish = wish.checked()?;
    Ok(json!({ "fault": shared.engine.faults(|faults| faults.add(wish)) }))
}

/// All faults.
pub fn all(shared: &Shared) -> Value {
    let faults = shared.engine.faults(|faults| faults.statuses());
    json!({ "faults": faults.iter().map(told).collect::<Vec<_>>() })
}

/// Clears one or all.
pub fn clear(shared: &Shared, number: Option<u64>) -> Answer {
    let cleared = shared.engine.faults(|faults| faults.clear(number));
    if cleared == 0 && number.is_some() {
        return Err("there is no such fault".into());
    }
    Ok(json!({ "cleared": cleared }))
}

impl FaultWish {
    fn checked(self) -> Result<FaultSpec, String> {
        let kind = self.kind()?;
        let chance = self.probability.is_none_or(|share| (0.0..=1.0).contains(&share));
        let first = self.at.is_none_or(|at| at > 0) && self.times.is_none_or(|times| times > 0);
        let ranged = self.range.is_none_or(|(start, end)| start < end);
        if !chance || !first || !ranged {
            return Err("a fault has at and times of 1 or more, a probability of 0 to 1, and a \
                        range that ends behind its start"
                .into());
        }
        // One that is asked for at a moment, and one that lasts, come once.
        let once = self.at.is_some() || matches!(kind, Kind::Die(_) | Kind::Stall(_));
        Ok(FaultSpec {
            kind,
            range: self.range.map(|(start, end)| start..end),
            operation_kind: self.op.map(Op::which),
            nth: self.at,
            start_after: self.after_s.map(duration).transpose()?,
            probability: self.probability,
            seed: self.seed,
            max_hits: self.times.or(once.then_some(1)),
        })
    }

    fn kind(&self) -> Result<Kind, String> {
        let lasts = matches!(self.kind, Name::Delay | Name::Stall);
        if self.seconds.is_some() != lasts || self.die.is_some() != matches!(self.kind, Name::Die) {
            return Err("delay and stall have for_s, die has die, and no other fault has".into());
        }
        let lasting = self.seconds.map(duration).transpose()?.unwrap_or_default();
        Ok(match self.kind {
            Name::Eio => Kind::Eio,
            Name::ReadOnly => Kind::ReadOnly,
            Name::Delay => Kind::Delay(lasting),
            Name::Stall => Kind::Stall(lasting),
            Name::Die => Kind::Die(self.die.unwrap_or_default()),
            Name::Torn => Kind::Torn,
            Name::Misdirected => Kind::Misdirected,
            Name::Lost => Kind::Lost,
        })
    }
}

impl Op {
    fn which(self) -> OperationKind {
        match self {
            Self::Read => OperationKind::Read,
            Self::Write => OperationKind::Write,
            Self::Trim => OperationKind::Trim,
            Self::Flush => OperationKind::Flush,
        }
    }
}

fn duration(seconds: f64) -> Result<Duration, String> {
    if (0.0..TIME_S_MAX).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("{seconds} s is no time to wait"))
    }
}

fn told(fault: &FaultStatus) -> Value {
    let spec = &fault.spec;
    let (for_s, die) = match spec.kind {
        Kind::Delay(time) | Kind::Stall(time) => (Some(time.as_secs_f64()), None),
        Kind::Die(die) => (None, Some(die)),
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
        "dead_units": fault.dead_units,
    })
}
