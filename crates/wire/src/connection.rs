//! `Connection`: a client's connection, over a unix socket or TCP; `BusyPoll`: one that is polled.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, read, readv, writev};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendFlags, Shutdown, getpeername, getsockname, recvmsg, send,
    shutdown,
};
use ssdlab_engine::PIECES_MAX;
use ssdlab_engine::failpoints::{self, Point};
use ssdlab_engine::pacing::{Clock, wall_clock_now};
use ssdlab_engine::wait::wait;

/// Bytes of the socket's send buffer if replies are paced: sending must not wait for a slow client.
/// The system may allow less.
const SEND_BUFFER_PACED: usize = 4 << 20;
/// Without pacing, a send buffer that fits into a processor's cache is faster.
const SEND_BUFFER: usize = 256 << 10;
/// How long `BusyPoll` polls before sleeping.
const POLL_TIME: Duration = Duration::from_micros(200);

/// A connection that can be disconnected from another thread.
pub trait Disconnect: Clone {
    /// Shuts it down in both directions: no reply is sent after this returns.
    fn disconnect(&self);
}

/// A connection; a clone shares the file descriptor.
#[derive(Clone, Debug)]
pub struct Connection(Arc<OwnedFd>);

impl Disconnect for Connection {
    fn disconnect(&self) {
        // An error means that the peer has closed the connection already.
        let _ = shutdown(self, Shutdown::Both);
    }
}

impl Connection {
    /// A connection over a connected stream socket.
    pub fn new(socket: impl Into<OwnedFd>) -> Self {
        Self(Arc::new(socket.into()))
    }

    /// Sets the size of the send buffer, so that sending a batch of replies seldom blocks.
    pub fn set_send_buffer(&self, is_paced: bool) -> io::Result<()> {
        let bytes = if is_paced { SEND_BUFFER_PACED } else { SEND_BUFFER };
        Ok(set_socket_send_buffer_size(self, bytes)?)
    }

    /// Sets a timeout after which a read fails with `WouldBlock`.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        Ok(set_socket_timeout(self, Timeout::Recv, Some(timeout))?)
    }

    /// The local address of a TCP connection.
    pub fn local_address(&self) -> Option<SocketAddr> {
        getsockname(self).ok()?.try_into().ok()
    }

    /// The peer, for messages.
    pub fn peer(&self) -> String {
        match getpeername(self) {
            Ok(peer) => peer
                .and_then(|peer| SocketAddr::try_from(peer).ok())
                .map_or_else(|| "a unix socket".into(), |peer| peer.to_string()),
            Err(error) => error.to_string(),
        }
    }

    /// Reads what has arrived, without waiting: `None` if nothing has.
    pub fn try_read(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let mut ancillary = RecvAncillaryBuffer::default();
        let count = slices.len().min(PIECES_MAX);
        loop {
            match failpoints::check(Point::Read) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            match recvmsg(self, &mut slices[..count], &mut ancillary, RecvFlags::DONTWAIT) {
                Ok(received) => return Ok(Some(received.bytes)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until bytes can be read or a time is reached; returns whether bytes can be read.
    /// `spin` as in `wait_precisely`.
    pub fn wait_readable(&self, until: Instant, spin: Duration) -> io::Result<bool> {
        wait(&mut [PollFd::new(self, PollFlags::IN)], until, spin)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        failpoints::check(Point::Read)?;
        Ok(read(self, into)?)
    }

    fn read_vectored(&mut self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        failpoints::check(Point::Read)?;
        Ok(readv(self, pieces)?)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        failpoints::check(Point::Write)?;
        Ok(send(self, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        failpoints::check(Point::Write)?;
        Ok(writev(self, pieces)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that is polled without sleeping while its client sends at short intervals. At first
/// it sleeps until bytes arrive.
///
/// To wake up a thread on an idle processor takes longer than to answer a request, and costs the
/// client time too. This limits a client that sends one request at a time.
#[derive(Debug)]
pub struct BusyPoll {
    /// The connection.
    pub connection: Connection,
    is_polling: bool,
}

impl BusyPoll {
    /// Receives from a connection.
    pub fn new(connection: Connection) -> Self {
        Self { connection, is_polling: false }
    }

    /// Bytes have arrived after a wait that began at `since`. After a short wait the next one
    /// polls, unless replies are paced: the pacing accounts for wake-up latency.
    pub fn note_wait(&mut self, since: Instant, clock: &Clock) {
        let waited = wall_clock_now().saturating_duration_since(since);
        self.is_polling = waited < POLL_TIME && !clock.is_paced();
    }

    /// Stops polling unless it pays.
    pub fn keep_polling_if(&mut self, pays: bool) {
        self.is_polling &= pays;
    }
}

impl Read for BusyPoll {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if self.is_polling {
            let until = wall_clock_now() + POLL_TIME;
            while wall_clock_now() < until {
                if let Some(received) = self.connection.try_read(slices)? {
                    return Ok(received);
                }
                // A client on the same processor can run.
                std::thread::yield_now();
            }
            self.is_polling = false;
        }
        self.connection.read_vectored(slices)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSliceMut, Write};
    use std::os::unix::net::UnixStream;

    use ssdlab_engine::PIECES_MAX;

    use super::Connection;

    #[test]
    fn try_read_fills_any_number_of_slices_and_does_not_wait() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let server = Connection::new(server);
        let mut bytes = [0; PIECES_MAX + 100];
        let read = |into: &mut [u8]| {
            let mut pieces: Vec<_> = into.chunks_mut(1).map(IoSliceMut::new).collect();
            server.try_read(&mut pieces).unwrap()
        };
        assert_eq!(read(&mut bytes), None);
        client.write_all(&[7; PIECES_MAX + 10]).unwrap();
        assert_eq!(read(&mut bytes), Some(PIECES_MAX));
        assert_eq!(read(&mut bytes[PIECES_MAX..]), Some(10));
        assert_eq!(bytes[..PIECES_MAX + 11], [&[7; PIECES_MAX + 10][..], &[0]].concat());
        drop(client);
        assert_eq!(read(&mut bytes), Some(0), "the end");
    }
}
