//! Requests about snapshots and clones.

use std::collections::btree_map::Entry;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::power::loss_to_json;
use super::request::CloneRequest;
use super::{Answer, Host};
use crate::state::ServerState;

pub fn snapshot(state: &ServerState, name: &str) -> Answer {
    let engine = state.engine.try_clone().map_err(|error| error.to_string())?;
    match state.snapshots().entry(name.into()) {
        Entry::Occupied(_) => Err("a snapshot of this name exists".into()),
        Entry::Vacant(place) => {
            place.insert(engine);
            Ok(json!({ "snapshot": name }))
        }
    }
}

pub fn drop_snapshot(state: &ServerState, name: &str) -> Answer {
    let dropped = state.snapshots().remove(name);
    if dropped.is_some() {
        Ok(json!({ "dropped": name }))
    } else {
        Err("no snapshot has this name".into())
    }
}

/// Clones the drive or a snapshot, and serves the clone.
pub fn serve(host: &impl Host, request: &CloneRequest) -> Answer {
    let (state, socket) = (host.state(), &request.unix);
    let refusal = |error: io::Error| format!("{}: {error}", socket.display());
    let engine = match &request.from {
        None => state.engine.try_clone(),
        Some(name) => match state.snapshots().get(name) {
            Some(snapshot) => snapshot.try_clone(),
            None => Err(io::Error::other("no snapshot has this name")),
        },
    };
    let engine = engine.map_err(refusal)?;
    let is_cut = !request.as_is && engine.power().begin_cut(true);
    let loss = if is_cut { engine.power().finish_cut() } else { None };
    let control = host.serve_clone(engine, socket).map_err(refusal)?;
    let loss = loss.as_ref().map(loss_to_json);
    Ok(json!({ "unix": socket, "control": control, "cut": loss }))
}

pub fn end(host: &impl Host, socket: &Path) -> Answer {
    if host.end_clone(socket) {
        Ok(json!({ "ended": socket }))
    } else {
        Err("no fork is served on this socket".into())
    }
}

pub fn list(host: &impl Host) -> Value {
    let snapshots: Vec<String> = host.state().snapshots().keys().cloned().collect();
    json!({ "snapshots": snapshots, "forks": host.clone_sockets() })
}
