//! `Server`: the threads that serve clients and control connections, and served clones.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::calibration::use_precise_timers;
use crate::control::{self, Host};
use crate::listener::{Address, Listener};
use crate::state::ServerState;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::sync::lock;
use ssdlab_engine::wait::sleep_until;
use ssdlab_engine::{Engine, Epoch, PowerCutLoss};
use ssdlab_nbd::Export;
use ssdlab_nvme::{Identity, Subsystem};
use ssdlab_nvme_tcp::{DhchapKey, Target};
use ssdlab_wire::{ClientLimits, Connection, Limits, Notice, OnExhaustion, Timeout, spawn};

/// Read timeout of a control connection that is served without a thread of its own.
const WITHOUT_THREAD: Duration = Duration::from_secs(1);
/// Maximum number of control connections.
const CONTROL_CONNECTIONS_MAX: usize = 64;

/// A running server; dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    nbd: Option<Listener>,
    nvme: Option<Listener>,
    control: Option<Listener>,
}

/// What the threads of a server share: its state, and the clones that it serves.
struct Shared {
    state: ServerState,
    clones: Mutex<BTreeMap<PathBuf, Server>>,
}

impl Server {
    /// A server without listeners, with the default limits on clients.
    pub fn new(engine: Engine, export: Export) -> Self {
        Self::with_limits(engine, export, Limits::default())
    }

    /// A server without listeners.
    pub fn with_limits(engine: Engine, export: Export, limits: Limits) -> Self {
        Self::with_client_limits(engine, export, ClientLimits::new(limits))
    }

    fn with_client_limits(engine: Engine, export: Export, limits: Arc<ClientLimits>) -> Self {
        let state = ServerState::new(engine, export, limits);
        let shared = Arc::new(Shared { state, clones: Mutex::default() });
        Self { shared, nbd: None, nvme: None, control: None }
    }

    /// Listens for NBD clients. Returns the address, with the port that was selected.
    pub fn listen_nbd(&mut self, address: &Address) -> io::Result<Address> {
        let (mut listener, shared) = (Listener::bind(address)?, Arc::clone(&self.shared));
        let client_limits = &self.shared.client_limits;
        listener.start("listener", OnExhaustion::Refuse, client_limits, move |connection| {
            shared.serve_nbd(connection);
        })?;
        Ok(self.nbd.insert(listener).address().clone())
    }

    /// Listens for `NVMe` hosts, which must authenticate with `key` if one is given. `origin`
    /// and the address distinguish this drive from others of its model. Returns the address, with
    /// the port that was selected, and the identity of the drive.
    pub fn listen_nvme_tcp(
        &mut self,
        address: &Address,
        origin: &str,
        key: Option<DhchapKey>,
    ) -> io::Result<(Address, Identity)> {
        let (mut listener, shared) = (Listener::bind(address)?, Arc::clone(&self.shared));
        let address = listener.address().clone();
        let target = Arc::new(self.nvme_target(&format!("{origin} {address:?}"), key));
        let identity = target.subsystem.identity.clone();
        let client_limits = &self.shared.client_limits;
        listener.start("nvme", OnExhaustion::Refuse, client_limits, move |connection| {
            shared.serve_nvme_tcp(connection, Arc::clone(&target));
        })?;
        self.nvme = Some(listener);
        Ok((address, identity))
    }

    /// Listens on a control socket.
    pub fn listen_control(&mut self, socket: &Path) -> io::Result<()> {
        let mut listener = Listener::bind(&Address::Unix(socket.into()))?;
        let (shared, client_limits) = (Arc::clone(&self.shared), &self.shared.client_limits);
        listener.start("control", OnExhaustion::Serve, client_limits, move |connection| {
            shared.serve_control(connection);
        })?;
        self.control = Some(listener);
        Ok(())
    }

    /// Serves an NBD client on an established connection, on a new thread.
    pub fn serve_nbd(&self, connection: Connection) {
        self.shared.serve_nbd(connection);
    }

    /// Serves an `NVMe` host on an established connection, on a new thread.
    pub fn serve_nvme_tcp(&self, connection: Connection, target: &Arc<Target>) {
        self.shared.serve_nvme_tcp(connection, Arc::clone(target));
    }

    /// Serves control requests on an established connection, on a new thread.
    pub fn serve_control(&self, connection: Connection) {
        self.shared.serve_control(connection);
    }

    /// The drive as a target for `NVMe` hosts. `origin` distinguishes it from others of its model.
    pub fn nvme_target(&self, origin: &str, key: Option<DhchapKey>) -> Target {
        let identity = Identity::new(&self.shared.export.description, origin);
        let subsystem = Subsystem::new(Arc::clone(&self.shared.engine), identity);
        Target::new(subsystem, key, Arc::clone(&self.shared.client_limits))
    }

    /// The drive.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The number of NBD and `NVMe` connections.
    pub fn connections(&self) -> usize {
        self.shared.client_count()
    }

    /// Cuts the power, and turns it on again if `then_on`. Returns `None` if the power is off.
    /// Panics if the data file cannot be written: a power cut must not be left half done.
    pub fn power_cut(&self, then_on: bool) -> Option<PowerCutLoss> {
        self.shared.clients.power_cut(then_on)
    }

    /// Stops listening, breaks all connections, and drops snapshots and clones.
    pub fn stop(&mut self) {
        (self.nbd, self.nvme, self.control) = (None, None, None);
        self.shared.clients.connections.disconnect_all();
        self.shared.control_connections.disconnect_all();
        let clones = std::mem::take(&mut *lock(&self.shared.clones));
        drop(clones);
        self.shared.snapshots().clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Deref for Shared {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.state
    }
}

impl Shared {
    fn serve_nbd(self: &Arc<Self>, connection: Connection) {
        self.serve_client(connection, |state, connection, epoch, handshake| {
            let (clients, client_limits) = (&state.clients, &state.client_limits);
            ssdlab_nbd::serve(connection, &state.export, clients, client_limits, epoch, handshake)
        });
    }

    fn serve_nvme_tcp(self: &Arc<Self>, connection: Connection, target: Arc<Target>) {
        self.serve_client(connection, move |_, connection, epoch, handshake| {
            ssdlab_nvme_tcp::serve(connection, &target, epoch, handshake)
        });
    }

    /// Serves a client on a new thread. Without power, the client is disconnected at once.
    fn serve_client(
        self: &Arc<Self>,
        connection: Connection,
        session: impl FnOnce(&ServerState, Connection, Epoch, Timeout) -> io::Result<()>
        + Send
        + 'static,
    ) {
        let Some((attached, epoch)) = self.clients.attach(&connection) else { return };
        let Some((permit, handshake)) = self.client_limits.admit(&connection) else { return };
        let shared = Arc::clone(self);
        let started = spawn("connection", move || {
            use_precise_timers();
            let is_paced = shared.engine.clock.is_paced();
            // An error ends this connection only: the client has left, or broke the protocol.
            let _ = connection
                .set_send_buffer(is_paced)
                .and_then(|()| session(&shared, connection, epoch, handshake));
            shared.clients.finish_planned_cut();
            drop((attached, permit));
        });
        if let Err(error) = started {
            self.client_limits.refuse(Notice::Threads, format_args!("no thread for it: {error}"));
        }
    }

    /// Serves a control connection on a new thread. If the system has no thread left, the listener
    /// serves it, so that the server can be controlled whatever its clients do.
    fn serve_control(self: &Arc<Self>, connection: Connection) {
        if self.control_connections.count() >= CONTROL_CONNECTIONS_MAX {
            let reason = format_args!("{CONTROL_CONNECTIONS_MAX} control connections are open");
            self.client_limits.refuse(Notice::TooMany, reason);
            return;
        }
        let registered = self.control_connections.add(&connection);
        let (shared, of_thread) = (Arc::clone(self), connection.clone());
        let started = spawn("control", move || {
            // An error means that the peer has left.
            let _ = control::serve(of_thread, &shared);
            drop(registered);
            shared.client_limits.descriptors.refill();
        });
        if let Err(error) = started {
            let reason = format_args!("no thread for a control connection: {error}");
            self.client_limits.log.print(Notice::Threads, reason);
            let limited = connection.set_read_timeout(WITHOUT_THREAD);
            let _ = limited.and_then(|()| control::serve(connection, self));
            self.client_limits.descriptors.refill();
        }
    }
}

impl Host for Arc<Shared> {
    fn state(&self) -> &ServerState {
        &self.state
    }

    fn cut_power_after(&self, seconds: f64, then_on: bool) -> io::Result<()> {
        let due = wall_clock_now() + Duration::from_secs_f64(seconds);
        // The thread must not keep a server alive that was stopped.
        let weak = Arc::downgrade(self);
        spawn("power cut", move || {
            if sleep_until(due).is_ok()
                && let Some(shared) = weak.upgrade()
            {
                shared.clients.power_cut(then_on);
            }
        })?;
        Ok(())
    }

    /// The clone shares the limits on clients.
    fn serve_clone(&self, engine: Engine, socket: &Path) -> io::Result<PathBuf> {
        let client_limits = Arc::clone(&self.client_limits);
        let mut server = Server::with_client_limits(engine, self.export.clone(), client_limits);
        let control = PathBuf::from(format!("{}.control", socket.display()));
        server.listen_nbd(&Address::Unix(socket.into()))?;
        server.listen_control(&control)?;
        lock(&self.clones).insert(socket.into(), server);
        Ok(control)
    }

    fn end_clone(&self, socket: &Path) -> bool {
        let ended = lock(&self.clones).remove(socket);
        ended.is_some()
    }

    fn clone_sockets(&self) -> Vec<PathBuf> {
        lock(&self.clones).keys().cloned().collect()
    }
}
