//! `Door`: listens at an address on a thread of its own, and hands on who comes.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::link::Link;

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// A socket in the file system; it must not exist yet, and is removed at the end.
    Unix(PathBuf),
    /// A host's address and port; port 0 takes a free one.
    Tcp(SocketAddr),
}

/// What accepts connections.
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// An open door; dropping it closes it.
#[derive(Debug)]
pub struct Door {
    address: Address,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Listens; `take` gets each connection.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn open(
        name: &str,
        address: &Address,
        take: impl Fn(Link) + Send + 'static,
    ) -> io::Result<Self> {
        let (address, listener) = match address {
            Address::Unix(path) => (address.clone(), Listener::Unix(UnixListener::bind(path)?)),
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted)?;
                (Address::Tcp(listener.local_addr()?), Listener::Tcp(listener))
            }
        };
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let thread = spawn(name, move || {
            loop {
                let link = listener.accept();
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                // One that was gone before it was taken: the next may do.
                if let Ok(link) = link {
                    take(link);
                }
            }
        });
        Ok(Self { address, closing, thread: Some(thread) })
    }

    /// Where it listens; with the port that it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Takes no more connections; removes its socket.
    pub fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.closing.store(true, Ordering::SeqCst);
        // A connection of our own wakes the listener.
        match &self.address {
            Address::Unix(path) => drop(UnixStream::connect(path)),
            Address::Tcp(address) => drop(TcpStream::connect(address)),
        }
        thread.join().expect("the listener does not panic");
        if let Address::Unix(path) = &self.address {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.close();
    }
}

impl Listener {
    fn accept(&self) -> io::Result<Link> {
        match self {
            Self::Unix(listener) => Ok(Link::Unix(listener.accept()?.0)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Link::Tcp(stream))
            }
        }
    }
}

/// Runs something on a thread of its own.
///
/// # Panics
/// Where the system has no thread left.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new().name(name.into()).spawn(run).expect("a thread can be had")
}
