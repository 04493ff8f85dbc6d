//! `Door`: listens at an address on a thread of its own, and hands on who comes.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::Shutdown;

use ssdlab_engine::failpoints::{self, Point};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::sleep_until;
use ssdlab_wire::Connection;
use ssdlab_wire::{Accepted, Exhausted, Notice, Resources};

/// Pause after accept(2) fails for lack of resources.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How accepting fails where the client has left, or nothing is to be done about it.
const GONE: [ErrorKind; 3] =
    [ErrorKind::WouldBlock, ErrorKind::ConnectionAborted, ErrorKind::Interrupted];

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// A socket in the file system; it must not exist yet, and is removed at the end.
    Unix(PathBuf),
    /// A host's address and port; port 0 takes a free one.
    Tcp(SocketAddr),
}

/// What accepts connections; it does not wait for them.
#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// An open door; dropping it closes it.
#[derive(Debug)]
pub struct Door {
    address: Address,
    listener: Arc<Listener>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Who comes to a door.
#[derive(Clone, Copy, Debug)]
pub struct Visitors {
    /// Its thread's name.
    pub name: &'static str,
    /// What becomes of them when no file descriptor is left.
    pub exhausted: Exhausted,
}

impl Door {
    /// Listens; `take` gets each connection.
    ///
    /// # Errors
    /// The address or a thread cannot be had.
    pub fn open(
        visitors: Visitors,
        address: &Address,
        resources: &Arc<Resources>,
        take: impl Fn(Connection) + Send + 'static,
    ) -> io::Result<Self> {
        let (address, listener) = Listener::bind(address)?;
        let (listener, closing) = (Arc::new(listener), Arc::new(AtomicBool::new(false)));
        let mut door = Self { address, listener, closing, thread: None };
        let (listener, closing) = (Arc::clone(&door.listener), Arc::clone(&door.closing));
        let resources = Arc::clone(resources);
        let accept = move || {
            while !closing.load(Ordering::SeqCst) {
                resources.break_off_expired();
                match listener.next(visitors.exhausted, &resources) {
                    Ok(Some(link)) => take(link),
                    Err(error) if !closing.load(Ordering::SeqCst) => {
                        resources.notices.tell(
                            Notice::Descriptors,
                            format_args!("no connection can be accepted: {error}"),
                        );
                        // Where the system cannot wait, it is tried again at once.
                        let _ = sleep_until(wall_clock_now() + BACK_OFF);
                    }
                    Ok(None) | Err(_) => {}
                }
            }
        };
        door.thread = Some(spawn(visitors.name, accept)?);
        Ok(door)
    }

    /// Where it listens; with the port that it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Takes no more connections; removes its socket.
    pub fn close(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        if let Address::Unix(path) = &self.address {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
        let Some(thread) = self.thread.take() else { return };
        // It wakes the thread, which needs no descriptor; where it fails, the next tick does.
        let _ = rustix::net::shutdown(&*self.listener, Shutdown::Both);
        thread.join().expect("the listener does not panic");
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.close();
    }
}

impl Listener {
    fn bind(address: &Address) -> io::Result<(Address, Self)> {
        match address {
            Address::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok((address.clone(), Self::Unix(listener)))
            }
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted)?;
                listener.set_nonblocking(true)?;
                Ok((Address::Tcp(listener.local_addr()?), Self::Tcp(listener)))
            }
        }
    }

    /// The next connection, where one comes within a tick.
    fn next(&self, exhausted: Exhausted, resources: &Resources) -> io::Result<Option<Connection>> {
        let tick = resources.tick();
        let timeout =
            Timespec { tv_sec: tick.as_secs().cast_signed(), tv_nsec: tick.subsec_nanos().into() };
        failpoints::check(Point::Wait)?;
        match poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&timeout)) {
            Ok(1..) => {}
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        match resources.descriptors.accept(exhausted, || self.accept()) {
            Ok(Accepted::Connection(link)) => Ok(Some(link)),
            Ok(Accepted::Refused) => {
                resources.refuse(Notice::Descriptors, "no file descriptor is left");
                Ok(None)
            }
            // One that was gone before it was accepted needs nothing.
            Err(error) if GONE.contains(&error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn accept(&self) -> io::Result<Connection> {
        failpoints::check(Point::Accept)?;
        match self {
            Self::Unix(listener) => Ok(Connection::unix(listener.accept()?.0)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Connection::tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Runs something on a thread of its own.
///
/// # Errors
/// The system has no thread left; nothing was run.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    failpoints::check(Point::Thread)?;
    std::thread::Builder::new().name(name.into()).spawn(run)
}
