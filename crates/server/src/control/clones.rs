//! Requests about snapshots and clones.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::power::loss_to_json;
use super::request::CloneRequest;
use super::{Action, Answer, Outcome};
use crate::state::ServerState;
use ssdlab_engine::{Engine, PowerCutLoss};

/// A clone that is ready to be served.
pub struct NewClone {
    pub engine: Box<Engine>,
    pub socket: PathBuf,
    /// The loss of the power cut that it started with.
    pub loss: Option<PowerCutLoss>,
}

/// Takes a snapshot of the drive.
pub fn snapshot(state: &ServerState, name: &str) -> Answer {
    let taken = state.engine.try_clone().and_then(|engine| state.snapshots.insert(name, engine));
    taken.map(|()| json!({ "snapshot": name })).map_err(|error| error.to_string())
}

/// Deletes a snapshot.
pub fn drop_snapshot(state: &ServerState, name: &str) -> Answer {
    if state.snapshots.remove(name) {
        Ok(json!({ "dropped": name }))
    } else {
        Err("no snapshot has this name".into())
    }
}

/// Clones the drive or a snapshot; the server serves the clone.
pub fn prepare(state: &ServerState, request: CloneRequest) -> Outcome {
    let engine = match &request.from {
        None => state.engine.try_clone(),
        Some(name) => state.snapshots.try_clone(name),
    };
    let engine = match engine {
        Ok(engine) => engine,
        Err(error) => return Outcome::Answered(refusal(&request.unix, &error)),
    };
    let is_cut = !request.as_is && engine.power().begin_cut(true);
    let loss = if is_cut { engine.power().finish_cut() } else { None };
    Outcome::Action(Action::ServeClone(NewClone {
        engine: engine.into(),
        socket: request.unix,
        loss,
    }))
}

/// The answer to a request for a clone that cannot be served on its socket.
pub fn refusal(socket: &Path, error: &io::Error) -> Answer {
    Err(format!("{}: {error}", socket.display()))
}

/// The answer to a request for a clone that is now served.
pub fn served(socket: &Path, control: &Path, loss: Option<&PowerCutLoss>) -> Value {
    json!({ "unix": socket, "control": control, "cut": loss.map(loss_to_json) })
}

/// The answer to a request to stop serving a clone.
pub fn ended(socket: &Path, existed: bool) -> Answer {
    if existed {
        Ok(json!({ "ended": socket }))
    } else {
        Err("no fork is served on this socket".into())
    }
}

/// All snapshots, and the sockets of all clones.
pub fn list(state: &ServerState, clones: &[PathBuf]) -> Value {
    json!({ "snapshots": state.snapshots.names(), "forks": clones })
}
