//! A running server with a fake drive for `NVMe` hosts.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ssdlab_engine::Pace;
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_server::{Address, Server};
use ssdlab_wire::Limits;
use tempfile::TempDir;

use crate::client::Host;
use ssdlab_testing::{CAPACITY, DriveOptions, UNIT, counter, engine};

/// A running server; dropping it stops it.
pub struct Target {
    pub server: Server,
    pub address: SocketAddr,
    pub name: String,
    pub control: PathBuf,
    _folder: TempDir,
}

impl Target {
    pub fn new(options: DriveOptions) -> Self {
        Self::paced(options, Pace::None)
    }

    pub fn paced(options: DriveOptions, pace: Pace) -> Self {
        Self::with_key(options, pace, None)
    }

    /// A server whose hosts must authenticate if there is a key.
    pub fn with_key(options: DriveOptions, pace: Pace, key: Option<DhchapKey>) -> Self {
        Self::with_limits(options, pace, key, Limits::default())
    }

    pub fn with_limits(
        options: DriveOptions,
        pace: Pace,
        key: Option<DhchapKey>,
        limits: Limits,
    ) -> Self {
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        let mut server = Server::with_limits(engine(options, pace), export, limits);
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("control");
        server.listen_control(&control).unwrap();
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let (address, identity) = server.listen_nvme_tcp(&any, "test", key).unwrap();
        let Address::Tcp(address) = address else { panic!("the address has a port") };
        Self { server, address, name: identity.subnqn, control, _folder: folder }
    }

    /// Connects an admin queue and an I/O queue of one controller.
    pub fn host(&self, digests: u8) -> (Host, Host) {
        let (admin, controller) = Host::admin(self.address, &self.name, digests);
        let io = Host::io(self.address, &self.name, 1, controller, digests);
        (admin, io)
    }

    /// A counter of the server, from the control socket.
    pub fn server_count(&self, name: &str) -> u64 {
        let mut control = UnixStream::connect(&self.control).unwrap();
        control.write_all(b"{\"do\": \"counters\"}\n").unwrap();
        let mut answer = String::new();
        BufReader::new(control).read_line(&mut answer).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        answer[name].as_u64().unwrap()
    }

    /// A counter of the drive.
    pub fn count(&self, name: &str) -> u64 {
        counter(self.server.engine(), name)
    }
}
