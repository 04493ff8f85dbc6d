//! Snapshots and forks over the control socket.

use std::io;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Answer;
use crate::server::Shared;

/// A fork as it is asked for.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct ForkWish {
    /// The socket that it is served on.
    unix: PathBuf,
    /// The snapshot that it begins from; none for now.
    from: Option<String>,
    /// Whether it goes on as the drive is; else its power was cut at that moment.
    #[serde(default)]
    as_is: bool,
}

/// Keeps the drive as it is now.
pub fn snapshot(shared: &Shared, name: &str) -> Answer {
    let kept = shared.engine.try_clone().and_then(|engine| shared.forks.keep(name, engine));
    kept.map(|()| json!({ "snapshot": name })).map_err(|error| error.to_string())
}

/// Gives a snapshot up.
pub fn drop_snapshot(shared: &Shared, name: &str) -> Answer {
    if shared.forks.drop_snapshot(name) {
        Ok(json!({ "dropped": name }))
    } else {
        Err("there is no such snapshot".into())
    }
}

/// Serves a drive that was this one until now or until a snapshot.
pub fn fork(shared: &Shared, wish: &ForkWish) -> Answer {
    serve(shared, wish).map_err(|error| format!("{}: {error}", wish.unix.display()))
}

/// Ends a fork.
pub fn end(shared: &Shared, unix: &PathBuf) -> Answer {
    if shared.forks.end(unix) {
        Ok(json!({ "ended": unix }))
    } else {
        Err("there is no such fork".into())
    }
}

/// Snapshots and forks that there are.
pub fn all(shared: &Shared) -> Value {
    let (snapshots, forks) = shared.forks.told();
    json!({ "snapshots": snapshots, "forks": forks })
}

fn serve(shared: &Shared, wish: &ForkWish) -> io::Result<Value> {
    let engine = match &wish.from {
        None => shared.engine.try_clone()?,
        Some(name) => shared.forks.of_snapshot(name)?,
    };
    let lost = if !wish.as_is && engine.power().begin_cut(true) {
        engine.power().finish_cut()
    } else {
        None
    };
    let control = shared.forks.serve(shared.forked(engine), &wish.unix)?;
    let cut = lost.as_ref().map(super::power::cut_told);
    Ok(json!({ "unix": wish.unix, "control": control, "cut": cut }))
}
