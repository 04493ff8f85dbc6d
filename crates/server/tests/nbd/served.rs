//! A running NBD server of a toy.

use std::path::PathBuf;
use std::time::Duration;

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store, WriteLog, restore};
use ssdlab_nbd::Export;
use ssdlab_server::{Address, Server};
use ssdlab_wire::Limits;
use tempfile::TempDir;

use ssdlab_testing::{CAPACITY, DriveOptions, FakeDrive, UNIT};

/// A running server with a toy; its socket is gone when it is dropped.
pub struct Served {
    pub server: Server,
    pub socket: PathBuf,
    pub control: PathBuf,
    _folder: TempDir,
}

impl Served {
    pub fn new(manner: DriveOptions, pace: Pace) -> Self {
        let volatile = FakeDrive::new(manner).volatile_units();
        Self::with_store(manner, pace, Store::in_memory(CAPACITY, UNIT, volatile))
    }

    fn with_store(manner: DriveOptions, pace: Pace, store: Store) -> Self {
        Self::with_toy(FakeDrive::new(manner), pace, store, None)
    }

    /// A server of a toy; with a log where there is a path for one.
    pub fn with_toy(
        toy: FakeDrive,
        pace: Pace,
        store: Store,
        log: Option<&std::path::Path>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let clock = Clock::start(pace, LatencyCompensation::default());
        let mut engine = Engine::new(Box::new(toy), store, clock);
        if let Some(path) = log {
            engine = engine.with_log(WriteLog::create(path).unwrap());
        }
        Self::started(engine, Limits::default(), (folder, socket))
    }

    /// A server of an honest toy whose clients may take so much.
    pub fn limited(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let toy = FakeDrive::default();
        let store = Store::in_memory(CAPACITY, UNIT, toy.volatile_units());
        let clock = Clock::start(Pace::None, LatencyCompensation::default());
        Self::started(Engine::new(Box::new(toy), store, clock), limits, (folder, socket))
    }

    fn started(engine: Engine, limits: Limits, (folder, socket): (TempDir, PathBuf)) -> Self {
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        let mut server = Server::with_limits(engine, export, limits);
        server.listen_nbd(&Address::Unix(socket.clone())).unwrap();
        let control = folder.path().join("control");
        server.listen_control(&control).unwrap();
        Self { server, socket, control, _folder: folder }
    }

    /// A server whose content lies in a file, once an earlier one's last connection is gone.
    pub fn in_file(file: &std::path::Path) -> Self {
        let volatile = FakeDrive::default().volatile_units();
        let mut tries = (0..60_000).map(|_| {
            std::thread::park_timeout(Duration::from_millis(10));
            Store::in_file(file, CAPACITY, UNIT, volatile)
        });
        let store = tries.find_map(Result::ok).expect("the file is free at last");
        let mut toy = FakeDrive::default();
        let whole = restore(&mut toy, store.allocated()).unwrap();
        Self::with_toy(toy, Pace::None, store.with_complete_map(whole), None)
    }

    pub fn count(&self, name: &str) -> u64 {
        let counters = self.server.engine().counters();
        let found = counters.into_iter().find(|(each, _)| *each == name);
        found.and_then(|(_, value)| value).unwrap_or(0.0) as u64
    }
}
