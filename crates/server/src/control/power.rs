//! Requests about the power.

use serde_json::{Value, json};
use ssdlab_engine::{Engine, PowerCutLoss, PowerCutPlan, PowerStatus};
use ssdlab_time::Random;

use super::request::{PowerCutRequest, RandomCut};
use super::{Answer, Host};

/// Longest delay of a power cut.
const AFTER_S_MAX: f64 = 1e6;

/// Cuts the power, or plans to.
pub fn cut(host: &impl Host, request: &PowerCutRequest) -> Answer {
    let (state, then_on) = (host.state(), request.on);
    match (request.after_writes, request.after_s, &request.random) {
        (None, None, None) => match state.clients.power_cut(then_on) {
            Some(loss) => Ok(json!({ "cut": loss_to_json(&loss) })),
            None => Err("the power is already off".into()),
        },
        (Some(after_writes), None, None) if after_writes > 0 => {
            Ok(plan(&state.engine, PowerCutPlan { after_writes, share: 0.5, then_on }))
        }
        (None, None, Some(RandomCut { seed, writes })) if *writes > 0 => {
            let mut random = Random::new(*seed, "power cuts");
            let after_writes = 1 + random.below(*writes);
            Ok(plan(&state.engine, PowerCutPlan { after_writes, share: random.unit(), then_on }))
        }
        (None, Some(after_s), None) if (0.0..AFTER_S_MAX).contains(&after_s) => {
            match host.cut_power_after(after_s, then_on) {
                Ok(()) => Ok(json!({ "planned": { "after_s": after_s, "on": then_on } })),
                Err(error) => Err(format!("no cut is planned: cannot start a thread: {error}")),
            }
        }
        _ => Err("give at most one of after_writes (1 or more), after_s (0 to 1e6) and random \
                  (seed, and writes: 1 or more)"
            .into()),
    }
}

pub fn on(engine: &Engine) -> Answer {
    if engine.power().turn_on() {
        Ok(status(&engine.power().status()))
    } else {
        Err("the power is already on".into())
    }
}

pub fn status(power: &PowerStatus) -> Value {
    json!({
        "power": if power.is_on { "on" } else { "off" },
        "cuts": power.cuts,
        "planned": power.plan.as_ref().map(plan_to_json),
        "last": power.last.as_ref().map(loss_to_json),
    })
}

/// The data that a power cut lost.
pub fn loss_to_json(loss: &PowerCutLoss) -> Value {
    let writes: u64 = loss.lost.iter().map(|unit| u64::from(unit.writes)).sum();
    json!({ "lost_units": loss.lost.len(), "lost_writes": writes, "unanswered": loss.unanswered })
}

fn plan(engine: &Engine, plan: PowerCutPlan) -> Value {
    engine.power().plan_cut(Some(plan));
    json!({ "planned": plan_to_json(&plan) })
}

fn plan_to_json(plan: &PowerCutPlan) -> Value {
    json!({ "after_writes": plan.after_writes, "share": plan.share, "on": plan.then_on })
}
