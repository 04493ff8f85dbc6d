//! `ServerState`: the drive, its snapshots and its clients; shared by all threads of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use ssdlab_engine::Engine;
use ssdlab_nbd::Export;
use ssdlab_wire::{Attachments, ClientLimits, Connection, Connections};

/// The state that the connections of a server share.
pub struct ServerState {
    pub engine: Arc<Engine>,
    pub export: Export,
    snapshots: Mutex<BTreeMap<String, Engine>>,
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

    /// The snapshots of the drive, by name.
    pub fn snapshots(&self) -> MutexGuard<'_, BTreeMap<String, Engine>> {
        self.snapshots.lock().expect("no panic while locked")
    }

    /// The number of NBD and `NVMe` connections.
    pub fn client_count(&self) -> usize {
        self.clients.connections.count()
    }
}
