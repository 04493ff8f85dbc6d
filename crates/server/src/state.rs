//! `ServerState`: the drive, its snapshots and its clients; shared by all threads of a server.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use ssdlab_engine::Engine;
use ssdlab_nbd::Export;
use ssdlab_wire::{Attachments, ClientLimits, Connection, Connections};

/// The state that the connections of a server share.
pub struct ServerState {
    pub engine: Arc<Engine>,
    pub export: Export,
    pub snapshots: Snapshots,
    /// Limits on clients, shared with clones.
    pub client_limits: Arc<ClientLimits>,
    /// NBD and `NVMe` connections.
    pub clients: Attachments<Connection>,
    /// Connections to the control socket.
    pub control_connections: Arc<Connections>,
}

impl ServerState {
    /// The state of a server without clients.
    pub fn new(engine: Engine, export: Export, client_limits: Arc<ClientLimits>) -> Self {
        let engine = Arc::new(engine);
        let clients = Attachments::new(Arc::clone(&engine));
        let (snapshots, control_connections) = Default::default();
        Self { engine, export, snapshots, client_limits, clients, control_connections }
    }

    /// The number of NBD and `NVMe` connections.
    pub fn client_count(&self) -> usize {
        self.clients.connections().count()
    }
}

/// The snapshots of a drive, by name.
#[derive(Default)]
pub struct Snapshots {
    by_name: Mutex<BTreeMap<String, Engine>>,
}

impl Snapshots {
    /// Stores a snapshot, unless the name is in use.
    pub fn insert(&self, name: &str, engine: Engine) -> io::Result<()> {
        let mut snapshots = self.lock();
        if snapshots.contains_key(name) {
            return Err(io::Error::other("a snapshot of this name exists"));
        }
        snapshots.insert(name.into(), engine);
        Ok(())
    }

    pub fn try_clone(&self, name: &str) -> io::Result<Engine> {
        let missing = || io::Error::other("no snapshot has this name");
        self.lock().get(name).ok_or_else(missing)?.try_clone()
    }

    /// Deletes a snapshot; false if no snapshot has this name.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.lock().remove(name);
        removed.is_some()
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The names of all snapshots, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Engine>> {
        self.by_name.lock().expect("no panic while locked")
    }
}
