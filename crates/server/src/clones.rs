//! `Forks`: drives that were this one until some moment, kept by name or served on their own.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::listener::Address;
use crate::server::Server;
use ssdlab_engine::Engine;

/// The snapshots and forks of a drive.
#[derive(Default)]
pub struct Forks {
    snapshots: Mutex<BTreeMap<String, Engine>>,
    served: Mutex<BTreeMap<PathBuf, Server>>,
}

impl Forks {
    /// Keeps a drive by name.
    ///
    /// # Errors
    /// The name is taken.
    pub fn keep(&self, name: &str, engine: Engine) -> io::Result<()> {
        let mut snapshots = lock(&self.snapshots);
        if snapshots.contains_key(name) {
            return Err(io::Error::other("there is such a snapshot"));
        }
        snapshots.insert(name.into(), engine);
        Ok(())
    }

    /// A fork of a snapshot.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn of_snapshot(&self, name: &str) -> io::Result<Engine> {
        let none = || io::Error::other("there is no such snapshot");
        lock(&self.snapshots).get(name).ok_or_else(none)?.try_clone()
    }

    /// Gives a snapshot up; false where there is none.
    pub fn drop_snapshot(&self, name: &str) -> bool {
        let dropped = lock(&self.snapshots).remove(name);
        dropped.is_some()
    }

    /// Serves a drive on a socket, with a control socket beside it.
    ///
    /// # Errors
    /// A socket cannot be had.
    pub fn serve(&self, mut server: Server, socket: &Path) -> io::Result<PathBuf> {
        let control = PathBuf::from(format!("{}.control", socket.display()));
        server.listen(&Address::Unix(socket.into()))?;
        server.listen_for_control(&control)?;
        lock(&self.served).insert(socket.into(), server);
        Ok(control)
    }

    /// Ends what is served on a socket; false where nothing is.
    pub fn end(&self, socket: &Path) -> bool {
        let ended = lock(&self.served).remove(socket);
        ended.is_some()
    }

    /// Ends all, and gives all up.
    pub fn clear(&self) {
        let served = std::mem::take(&mut *lock(&self.served));
        drop(served);
        lock(&self.snapshots).clear();
    }

    /// Names of snapshots, and sockets of forks.
    pub fn told(&self) -> (Vec<String>, Vec<PathBuf>) {
        let names = lock(&self.snapshots).keys().cloned().collect();
        (names, lock(&self.served).keys().cloned().collect())
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("no panic while locked")
}
