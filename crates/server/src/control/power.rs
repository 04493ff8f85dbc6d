//! Power over the control socket.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use ssdlab_time::Random;

use super::Answer;
use super::ask::{Chance, CutWish};
use crate::server::Shared;
use ssdlab_engine::PowerCutLoss;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::sleep_until;
use ssdlab_engine::{PowerCutPlan, PowerStatus};
use ssdlab_wire::spawn;

/// A cut that is longer off is a mistake.
const AFTER_S_MAX: f64 = 1e6;

/// Cuts the power or plans to.
pub fn cut(shared: &Arc<Shared>, wish: &CutWish) -> Answer {
    let then_on = wish.on;
    match (wish.after_writes, wish.after_s, &wish.random) {
        (None, None, None) => match shared.power_cut(then_on) {
            Some(cut) => Ok(json!({ "cut": cut_told(&cut) })),
            None => Err("there is no power to cut".into()),
        },
        (Some(after_writes), None, None) if after_writes > 0 => {
            Ok(plan(shared, PowerCutPlan { after_writes, share: 0.5, then_on }))
        }
        (None, None, Some(Chance { seed, writes })) if *writes > 0 => {
            let mut random = Random::new(*seed, "power cuts");
            let after_writes = 1 + random.below(*writes);
            Ok(plan(shared, PowerCutPlan { after_writes, share: random.unit(), then_on }))
        }
        (None, Some(after_s), None) if (0.0..AFTER_S_MAX).contains(&after_s) => {
            cut_later(shared, after_s, then_on)
        }
        _ => {
            Err("a power cut has one of after_writes (1 or more), after_s (0 or more) and random \
                  (a seed, and writes: 1 or more), or none of them"
                .into())
        }
    }
}

/// Turns the power on.
pub fn on(shared: &Shared) -> Answer {
    if shared.engine.power().turn_on() {
        Ok(told(&shared.engine.power().status()))
    } else {
        Err("the power is on".into())
    }
}

/// The power's state as JSON.
pub fn told(power: &PowerStatus) -> Value {
    json!({
        "power": if power.is_on { "on" } else { "off" },
        "cuts": power.cuts,
        "planned": power.plan.as_ref().map(plan_told),
        "last": power.last.as_ref().map(cut_told),
    })
}

fn plan(shared: &Shared, plan: PowerCutPlan) -> Value {
    shared.engine.power().plan_cut(Some(plan));
    json!({ "planned": plan_told(&plan) })
}

fn cut_later(shared: &Arc<Shared>, after_s: f64, then_on: bool) -> Answer {
    let when = wall_clock_now() + Duration::from_secs_f64(after_s);
    // A server that has ended meanwhile is none that is held up.
    let weak = Arc::downgrade(shared);
    let started = spawn("power cut", move || {
        if sleep_until(when).is_ok()
            && let Some(shared) = weak.upgrade()
        {
            shared.power_cut(then_on);
        }
    });
    match started {
        Ok(_) => Ok(json!({ "planned": { "after_s": after_s, "on": then_on } })),
        Err(error) => Err(format!("no cut is planned: there is no thread to wait in ({error})")),
    }
}

fn plan_told(plan: &PowerCutPlan) -> Value {
    json!({ "after_writes": plan.after_writes, "share": plan.share, "on": plan.then_on })
}

/// What a cut did, as JSON.
pub fn cut_told(cut: &PowerCutLoss) -> Value {
    let writes: u64 = cut.lost.iter().map(|each| u64::from(each.writes)).sum();
    json!({ "lost_units": cut.lost.len(), "lost_writes": writes, "unanswered": cut.unanswered })
}
