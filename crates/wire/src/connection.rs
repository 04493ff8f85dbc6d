//! `Connection`: a client's connection, over a unix socket or TCP.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
use ssdlab_engine::PIECES_MAX;
use ssdlab_engine::wait::wait;

use ssdlab_engine::failpoints::{self, Point};

/// Room for answers that have left and nobody has read; the system may give less. Where answers
/// leave at their time they wait for nobody.
const SEND_BUFFER_PACED: usize = 4 << 20;
/// Where they leave at once, more than a processor's own cache holds would be read from memory.
const SEND_BUFFER: usize = 256 << 10;

/// A connection that can be broken off from another thread.
pub trait Breakable: Clone {
    /// Ends it in both directions: no reply is sent after this returns.
    fn break_off(&self);
}

/// One end of a connection; a clone is the same connection and takes no further descriptor.
#[derive(Clone, Debug)]
pub enum Connection {
    /// Within this machine, by a socket in the file system.
    Unix(Arc<UnixStream>),
    /// By an address and a port.
    Tcp(Arc<TcpStream>),
}

impl Connection {
    /// A connection over a unix socket.
    pub fn unix(stream: UnixStream) -> Self {
        Self::Unix(stream.into())
    }

    /// A connection over TCP.
    pub fn tcp(stream: TcpStream) -> Self {
        Self::Tcp(stream.into())
    }
}

impl Breakable for Connection {
    fn break_off(&self) {
        // An error means that the peer has closed the connection already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Connection {
    /// Lets a whole batch of answers be sent without waiting for who reads them.
    ///
    /// # Errors
    /// The system's.
    pub fn widen(&self, is_paced: bool) -> io::Result<()> {
        let room = if is_paced { SEND_BUFFER_PACED } else { SEND_BUFFER };
        Ok(set_socket_send_buffer_size(self, room)?)
    }

    /// Lets a read that nothing comes for end with `WouldBlock` after a while.
    ///
    /// # Errors
    /// The system's.
    pub fn limit_reads(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(Some(patience)),
            Self::Tcp(stream) => stream.set_read_timeout(Some(patience)),
        }
    }

    /// The address on this side, where it has a port.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) => stream.local_addr().ok(),
        }
    }

    /// Who is on the other side, for messages.
    pub fn peer(&self) -> String {
        match self {
            Self::Unix(_) => "a unix socket".into(),
            Self::Tcp(stream) => {
                stream.peer_addr().map_or_else(|error| error.to_string(), |peer| peer.to_string())
            }
        }
    }

    /// Reads what is there, without waiting: `None` where nothing is.
    ///
    /// # Errors
    /// The system's.
    pub fn read_at_once(&self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let mut nothing_beside = RecvAncillaryBuffer::default();
        let most = pieces.len().min(PIECES_MAX);
        loop {
            match failpoints::check(Point::Read) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            match recvmsg(self, &mut pieces[..most], &mut nothing_beside, RecvFlags::DONTWAIT) {
                Ok(received) => return Ok(Some(received.bytes)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until something can be read, or until a time; returns whether it can. `spin` as in
    /// `pause_sharply`.
    ///
    /// # Errors
    /// The system's.
    pub fn wait_until(&self, time: Instant, spin: Duration) -> io::Result<bool> {
        wait(&mut [PollFd::new(self, PollFlags::IN)], time, spin)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        failpoints::check(Point::Read)?;
        match self {
            Self::Unix(stream) => (&**stream).read(into),
            Self::Tcp(stream) => (&**stream).read(into),
        }
    }

    fn read_vectored(&mut self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        failpoints::check(Point::Read)?;
        match self {
            Self::Unix(stream) => (&**stream).read_vectored(pieces),
            Self::Tcp(stream) => (&**stream).read_vectored(pieces),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        failpoints::check(Point::Write)?;
        match self {
            Self::Unix(stream) => (&**stream).write(bytes),
            Self::Tcp(stream) => (&**stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        failpoints::check(Point::Write)?;
        match self {
            Self::Unix(stream) => (&**stream).write_vectored(pieces),
            Self::Tcp(stream) => (&**stream).write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSliceMut, Write};
    use std::os::unix::net::UnixStream;

    use ssdlab_engine::PIECES_MAX;

    use super::Connection;

    #[test]
    fn what_is_there_is_read_into_however_many_pieces_and_nothing_is_waited_for() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let server = Connection::unix(server);
        let mut bytes = [0; PIECES_MAX + 100];
        let read = |into: &mut [u8]| {
            let mut pieces: Vec<_> = into.chunks_mut(1).map(IoSliceMut::new).collect();
            server.read_at_once(&mut pieces).unwrap()
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
