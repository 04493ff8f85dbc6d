//! `Listener`: accepts connections at an address, on a thread of its own.

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
use ssdlab_wire::{AcceptOutcome, ClientLimits, Connection, Notice, OnExhaustion, spawn};

/// Pause after accept(2) fails for lack of resources.
const BACK_OFF: Duration = Duration::from_millis(50);
/// Errors of accept(2) that need no action: the client has left, or a signal came.
const IGNORED: [ErrorKind; 3] =
    [ErrorKind::WouldBlock, ErrorKind::ConnectionAborted, ErrorKind::Interrupted];

/// The address of a listener.
// The identity of an NVMe drive is derived from the debug output.
#[derive(Clone, Debug)]
pub enum Address {
    /// A Unix socket. It must not exist; the server creates it, and removes it at the end.
    Unix(PathBuf),
    /// IP address and port; port 0 selects a free port.
    Tcp(SocketAddr),
}

/// A listening socket, nonblocking.
#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A listener; dropping it closes it.
#[derive(Debug)]
pub struct Listener {
    address: Address,
    socket: Arc<Socket>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Binds an address. Connections wait until `start`.
    ///
    /// # Errors
    /// The address is not available.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let (address, socket) = Socket::bind(address)?;
        let (socket, closing) = (Arc::new(socket), Arc::new(AtomicBool::new(false)));
        Ok(Self { address, socket, closing, thread: None })
    }

    /// Starts to accept connections, and passes each to `serve`. `exhausted` says what to do with
    /// a connection if the process has no file descriptor left.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        &mut self,
        name: &'static str,
        exhausted: OnExhaustion,
        client_limits: &Arc<ClientLimits>,
        serve: impl Fn(Connection) + Send + 'static,
    ) -> io::Result<()> {
        let (socket, closing) = (Arc::clone(&self.socket), Arc::clone(&self.closing));
        let client_limits = Arc::clone(client_limits);
        let accept = move || {
            while !closing.load(Ordering::SeqCst) {
                client_limits.disconnect_expired();
                match socket.next(exhausted, &client_limits) {
                    Ok(Some(connection)) => serve(connection),
                    Err(error) if !closing.load(Ordering::SeqCst) => {
                        client_limits.notices.print(
                            Notice::Descriptors,
                            format_args!("no connection can be accepted: {error}"),
                        );
                        // If the system cannot wait, the next attempt follows at once.
                        let _ = sleep_until(wall_clock_now() + BACK_OFF);
                    }
                    Ok(None) | Err(_) => {}
                }
            }
        };
        self.thread = Some(spawn(name, accept)?);
        Ok(())
    }

    /// The address, with the port that was selected.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        if let Address::Unix(path) = &self.address {
            // An error means that the file was removed already.
            let _ = std::fs::remove_file(path);
        }
        let Some(thread) = self.thread.take() else { return };
        // This wakes the thread and needs no descriptor. If it fails, the thread ends with the next
        // tick.
        let _ = rustix::net::shutdown(&*self.socket, Shutdown::Both);
        thread.join().expect("the listener does not panic");
    }
}

impl Socket {
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

    /// The next connection, if one arrives within a tick.
    fn next(
        &self,
        exhausted: OnExhaustion,
        client_limits: &ClientLimits,
    ) -> io::Result<Option<Connection>> {
        let tick = client_limits.check_period();
        let timeout =
            Timespec { tv_sec: tick.as_secs().cast_signed(), tv_nsec: tick.subsec_nanos().into() };
        failpoints::check(Point::Wait)?;
        match poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&timeout)) {
            Ok(1..) => {}
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        match client_limits.descriptors.accept(exhausted, || self.accept()) {
            Ok(AcceptOutcome::Connection(connection)) => Ok(Some(connection)),
            Ok(AcceptOutcome::Refused) => {
                client_limits.refuse(Notice::Descriptors, "no file descriptor is left");
                Ok(None)
            }
            Err(error) if IGNORED.contains(&error.kind()) => Ok(None),
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

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}
