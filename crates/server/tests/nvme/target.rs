//! A toy served as an `NVMe` drive.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store};
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_server::{Address, Server};
use ssdlab_wire::Limits;
use tempfile::TempDir;

use crate::client::Host;
use ssdlab_testing::{CAPACITY, DriveOptions, FakeDrive, UNIT};

/// A toy as an `NVMe` drive.
pub struct Target {
    pub server: Server,
    pub address: SocketAddr,
    pub name: String,
    pub control: PathBuf,
    _folder: TempDir,
}

impl Target {
    pub fn new(manner: DriveOptions) -> Self {
        Self::paced(manner, Pace::None)
    }

    pub fn paced(manner: DriveOptions, pace: Pace) -> Self {
        Self::guarded(manner, pace, None)
    }

    /// One whose hosts have to know a secret.
    pub fn guarded(manner: DriveOptions, pace: Pace, secret: Option<DhchapKey>) -> Self {
        Self::limited(manner, pace, secret, Limits::default())
    }

    /// One whose hosts may take so much.
    pub fn limited(
        manner: DriveOptions,
        pace: Pace,
        secret: Option<DhchapKey>,
        limits: Limits,
    ) -> Self {
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        let mut server = Server::with_limits(engine(manner, pace), export, limits);
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("control");
        server.listen_control(&control).unwrap();
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let (address, identity) = server.listen_nvme_tcp(&any, "test", secret).unwrap();
        let Address::Tcp(address) = address else { panic!("it listens on a port") };
        Self { server, address, name: identity.subnqn, control, _folder: folder }
    }

    /// An admin queue and an I/O queue of one controller.
    pub fn host(&self, digests: u8) -> (Host, Host) {
        let (admin, controller) = Host::admin(self.address, &self.name, digests);
        let io = Host::io(self.address, &self.name, 1, controller, digests);
        (admin, io)
    }

    /// A counter, as the control socket tells it.
    pub fn asks(&self, name: &str) -> u64 {
        let mut control = UnixStream::connect(&self.control).unwrap();
        control.write_all(b"{\"do\": \"counters\"}\n").unwrap();
        let mut answer = String::new();
        BufReader::new(control).read_line(&mut answer).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        answer[name].as_u64().unwrap()
    }

    pub fn count(&self, name: &str) -> u64 {
        let found = self.server.engine().counters().into_iter().find(|(each, _)| *each == name);
        found.and_then(|(_, value)| value).unwrap_or(0.0) as u64
    }
}

/// A toy and its bytes.
pub fn engine(manner: DriveOptions, pace: Pace) -> Engine {
    let toy = FakeDrive::new(manner);
    let store = Store::in_memory(CAPACITY, UNIT, toy.volatile_units());
    Engine::new(Box::new(toy), store, Clock::start(pace, LatencyCompensation::default()))
}
