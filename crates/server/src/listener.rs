//! `Listener`: accepts connections at an address, on a thread of its own.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};
use ssdlab_engine::failpoints::{self, Point};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::sleep_until;
use ssdlab_wire::{ClientLimits, Connection, Notice, OnExhaustion, spawn};

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

/// A nonblocking listening socket with its address.
#[derive(Debug)]
struct Socket {
    socket: OwnedFd,
    address: Address,
}

/// A listener; dropping it closes it.
#[derive(Debug)]
pub struct Listener {
    socket: Arc<Socket>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Binds an address. Connections wait until `start`.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let (address, socket): (_, OwnedFd) = match address {
            Address::Unix(path) => (address.clone(), UnixListener::bind(path)?.into()),
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted)?;
                (Address::Tcp(listener.local_addr()?), listener.into())
            }
        };
        ioctl_fionbio(&socket, true)?;
        let socket = Arc::new(Socket { socket, address });
        Ok(Self { socket, closing: Arc::default(), thread: None })
    }

    /// Starts to accept connections, and passes each to `serve`. `exhausted` says what to do with
    /// a connection if the process has no file descriptor left.
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
                        client_limits.log.print(
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
        &self.socket.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        if let Address::Unix(path) = &self.socket.address {
            // An error means that the file was removed already.
            let _ = std::fs::remove_file(path);
        }
        let Some(thread) = self.thread.take() else { return };
        // This wakes the thread and needs no descriptor. If it fails, the thread ends with the next
        // tick.
        let _ = shutdown(&self.socket.socket, Shutdown::Both);
        thread.join().expect("the listener does not panic");
    }
}

impl Socket {
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
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(1..) => {}
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        match client_limits.descriptors.accept(exhausted, || self.accept()) {
            Ok(None) => {
                client_limits.refuse(Notice::Descriptors, "no file descriptor is left");
                Ok(None)
            }
            Err(error) if IGNORED.contains(&error.kind()) => Ok(None),
            accepted => accepted,
        }
    }

    fn accept(&self) -> io::Result<Connection> {
        failpoints::check(Point::Accept)?;
        let accepted = accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        if let Address::Tcp(_) = self.address {
            set_tcp_nodelay(&accepted, true)?;
        }
        Ok(Connection::new(accepted))
    }
}
