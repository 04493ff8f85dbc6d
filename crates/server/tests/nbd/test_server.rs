//! A running NBD server with a fake drive.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store, WriteLog, restore};
use ssdlab_nbd::Export;
use ssdlab_server::{Address, Server};
use ssdlab_testing::{CAPACITY, DriveOptions, FakeDrive, UNIT, counter, engine};
use ssdlab_wire::Limits;
use tempfile::TempDir;

/// A running server; its sockets are removed when it is dropped.
pub struct TestServer {
    pub server: Server,
    pub socket: PathBuf,
    pub control: PathBuf,
    _folder: TempDir,
}

impl TestServer {
    pub fn new(options: DriveOptions, pace: Pace) -> Self {
        Self::start(engine(options, pace), Limits::default())
    }

    /// A server of a drive with this data, which may write a log.
    pub fn with_store(drive: FakeDrive, pace: Pace, store: Store, log: Option<&Path>) -> Self {
        let clock = Clock::start(pace, LatencyCompensation::default());
        let mut engine = Engine::new(Box::new(drive), store, clock);
        if let Some(path) = log {
            engine = engine.with_log(WriteLog::create(path).unwrap());
        }
        Self::start(engine, Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self::start(Engine::in_memory(FakeDrive::default()), limits)
    }

    fn start(engine: Engine, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (socket, control) = (folder.path().join("socket"), folder.path().join("control"));
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        let mut server = Server::with_limits(engine, export, limits);
        server.listen_nbd(&Address::Unix(socket.clone())).unwrap();
        server.listen_control(&control).unwrap();
        Self { server, socket, control, _folder: folder }
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
        Self::with_store(drive, Pace::None, store.with_complete_map(is_complete), None)
    }

    /// A counter of the drive.
    pub fn count(&self, name: &str) -> u64 {
        counter(self.server.engine(), name)
    }
}
