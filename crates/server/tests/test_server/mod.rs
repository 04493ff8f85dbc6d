//! A running server with a fake drive, for NBD clients and `NVMe` hosts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store, WriteLog, restore};
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_server::{Address, Server};
use ssdlab_testing::nbd::Client;
use ssdlab_testing::nvme::Host;
use ssdlab_testing::{CAPACITY, Control, DriveOptions, FakeDrive, UNIT, counter, engine};
use ssdlab_wire::Limits;
use tempfile::TempDir;

/// A running server; dropping it stops it and removes its sockets.
pub struct TestServer {
    pub server: Server,
    /// Of NBD.
    pub socket: PathBuf,
    pub control: PathBuf,
    /// Of the `NVMe` target, and its qualified name.
    pub address: SocketAddr,
    pub name: String,
    _folder: TempDir,
}

impl Default for TestServer {
    fn default() -> Self {
        Self::new(DriveOptions::default())
    }
}

impl TestServer {
    pub fn new(options: DriveOptions) -> Self {
        Self::start(engine(options, Pace::None), Limits::default(), None)
    }

    /// A server of a drive at this multiple of its pace.
    pub fn paced(options: DriveOptions, pace: f64) -> Self {
        Self::start(engine(options, Pace::Scaled(pace)), Limits::default(), None)
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self::start(engine(DriveOptions::default(), Pace::None), limits, None)
    }

    /// A server whose `NVMe` hosts must authenticate with this key.
    pub fn with_key(key: DhchapKey) -> Self {
        Self::start(engine(DriveOptions::default(), Pace::None), Limits::default(), Some(key))
    }

    /// A server that writes a log.
    pub fn with_log(path: &Path) -> Self {
        let engine = engine(DriveOptions::default(), Pace::None);
        Self::start(engine.with_log(WriteLog::create(path).unwrap()), Limits::default(), None)
    }

    /// A server with its data in a file. Waits until an earlier server has released the file.
    pub fn in_file(file: &Path) -> Self {
        let mut drive = FakeDrive::default();
        let mut attempts = (0..60_000).map(|_| {
            std::thread::park_timeout(Duration::from_millis(10));
            Store::in_file(file, &drive.parameters())
        });
        let store = attempts.find_map(Result::ok).expect("the file is released");
        let is_complete = restore(&mut drive, store.allocated()).unwrap();
        Self::with_store(drive, store.with_complete_map(is_complete))
    }

    /// A server of a drive with this data.
    pub fn with_store(drive: FakeDrive, store: Store) -> Self {
        let clock = Clock::start(Pace::None, LatencyCompensation::default());
        Self::start(Engine::new(Box::new(drive), store, clock), Limits::default(), None)
    }

    pub fn start(engine: Engine, limits: Limits, key: Option<DhchapKey>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (socket, control) = (folder.path().join("socket"), folder.path().join("control"));
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        let mut server = Server::with_limits(engine, export, limits);
        server.listen_nbd(&Address::Unix(socket.clone())).unwrap();
        server.listen_control(&control).unwrap();
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let (address, identity) = server.listen_nvme_tcp(&any, "test", key).unwrap();
        let Address::Tcp(address) = address else { panic!("the address has a port") };
        Self { server, socket, control, address, name: identity.subnqn, _folder: folder }
    }

    /// A server of the default drive, and an NBD client.
    pub fn with_client() -> (Self, Client) {
        let server = Self::default();
        let client = server.client();
        (server, client)
    }

    /// As `with_client`, with a connection to the control socket.
    pub fn with_control() -> (Self, Control, Client) {
        let (server, client) = Self::with_client();
        let control = server.control();
        (server, control, client)
    }

    /// A server of the default drive, and the admin queue and the I/O queue of an `NVMe` host.
    pub fn with_host() -> (Self, Host, Host) {
        let server = Self::default();
        let (admin, io) = server.host(0);
        (server, admin, io)
    }

    /// Connects an NBD client with simple replies.
    pub fn client(&self) -> Client {
        Client::go(&self.socket, false).unwrap()
    }

    pub fn control(&self) -> Control {
        Control::connect(&self.control).unwrap()
    }

    /// Connects an admin queue and an I/O queue of one controller.
    pub fn host(&self, digests: u8) -> (Host, Host) {
        let (admin, controller) = self.admin(digests);
        (admin, self.io(1, controller, digests))
    }

    /// Connects an admin queue and enables its controller; returns the controller identifier too.
    pub fn admin(&self, digests: u8) -> (Host, u16) {
        Host::admin(self.address, &self.name, digests)
    }

    pub fn io(&self, queue: u16, controller: u16, digests: u8) -> Host {
        Host::io(self.address, &self.name, queue, controller, digests)
    }

    /// A counter of the drive.
    pub fn count(&self, name: &str) -> u64 {
        counter(self.server.engine(), name)
    }

    /// A counter of the server, from the control socket.
    pub fn server_count(&self, name: &str) -> u64 {
        self.control().verb("counters")[name].as_u64().unwrap()
    }
}
