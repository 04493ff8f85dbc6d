//! A server without listeners: its connections are handed to it. For fuzz targets and their tests.
//!
//! Everything behind the listener is the code that ships, with its threads.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::{Server, Shared};
use ssdlab_engine::Engine;
use ssdlab_nbd::Export;
use ssdlab_nvme::{Identity, Subsystem};
use ssdlab_nvme_tcp::{Secret, Session, Target};
use ssdlab_wire::Connection;

/// A server that serves the connections it is handed. A connection is closed by its thread when
/// the session is over.
pub struct Handed {
    server: Server,
    target: Arc<Target>,
}

impl Handed {
    /// A server of this drive. `NVMe` hosts must prove that they know `secret`, if there is one.
    pub fn new(engine: Engine, export: Export, secret: Option<Secret>) -> Self {
        let identity = Identity::new(export.description(), "fuzz");
        let server = Server::new(engine, export);
        let subsystem = Subsystem::new(Arc::clone(&server.shared.engine), identity);
        let resources = Arc::clone(&server.shared.resources);
        Self { server, target: Target::new(subsystem, secret, resources).into() }
    }

    /// The name under which `NVMe` hosts connect to the drive.
    pub fn nvme_name(&self) -> &str {
        &self.target.subsystem.identity.subnqn
    }

    /// Serves an NBD client.
    pub fn nbd(&self, stream: UnixStream) {
        self.server.shared.welcome(Connection::unix(stream), Shared::serve_nbd);
    }

    /// Serves a connection of an `NVMe` host.
    pub fn nvme(&self, stream: UnixStream) {
        let target = Arc::clone(&self.target);
        self.server.shared.welcome(Connection::unix(stream), move |_, link, epoch, handshake| {
            Session::new(link, &target, epoch, handshake)?.run()
        });
    }

    /// Answers requests on a control connection.
    pub fn control(&self, stream: UnixStream) {
        self.server.shared.obey(Connection::unix(stream));
    }
}
