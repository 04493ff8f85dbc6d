//! `Tls`: a client's connection encrypted; what it says goes on in the clear within this process.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::connection::{Breakable, Connection};
use crate::thread::spawn;

/// So much is taken from one side before it has gone to the other.
const AT_ONCE: usize = 256 << 10;

/// What a server says of itself to who wants encryption.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads `server-cert.pem` and `server-key.pem` of a folder; `verifies_peers` lets only clients
    /// in whose certificate `ca-cert.pem` vouches for.
    ///
    /// # Errors
    /// A file is missing or wrong.
    pub fn from_folder(folder: &Path, verifies_peers: bool) -> io::Result<Self> {
        let (path, chain) = certificates(folder, "server-cert.pem")?;
        let key_path = folder.join("server-key.pem");
        let key = PrivateKeyDer::from_pem_file(&key_path).map_err(|e| wrong(&key_path, &e))?;
        let builder = ServerConfig::builder();
        let builder = if verifies_peers {
            let (path, trusted) = certificates(folder, "ca-cert.pem")?;
            let mut roots = RootCertStore::empty();
            for each in trusted {
                roots.add(each).map_err(|error| wrong(&path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(&path, &error))?)
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| wrong(&path, &error))?;
        Ok(Self { config: Arc::new(config) })
    }

    /// Goes on with a connection encrypted; what is returned is its end in the clear. A thread of
    /// its own stands between.
    ///
    /// # Errors
    /// The system's.
    pub fn wrap(&self, link: Connection) -> io::Result<Connection> {
        let (ours, theirs) = UnixStream::pair()?;
        let connection = ServerConnection::new(Arc::clone(&self.config));
        let mut connection = connection.map_err(io::Error::other)?;
        // How much is held back is decided by the relay.
        connection.set_buffer_limit(None);
        ioctl_fionbio(&link, true)?;
        ours.set_nonblocking(true)?;
        spawn("tls", move || {
            let mut relay = Relay::new(link, ours, connection);
            // Whatever ended it, both sides hear of it.
            let _ = relay.run();
            relay.link.break_off();
            let _ = relay.clear.shutdown(Shutdown::Both);
        })?;
        Ok(Connection::unix(theirs))
    }
}

/// Between a client and a session.
struct Relay {
    link: Connection,
    clear: UnixStream,
    connection: ServerConnection,
    /// In the clear, and not yet with the session.
    received: Vec<u8>,
    /// The client sends no more; it may still listen.
    client_ended: bool,
}

impl Relay {
    fn new(link: Connection, clear: UnixStream, connection: ServerConnection) -> Self {
        Self { link, clear, connection, received: Vec::new(), client_ended: false }
    }

    /// Passes bytes on in both directions until one side ends.
    fn run(&mut self) -> io::Result<()> {
        loop {
            let (link, clear) = self.wait()?;
            if link.contains(PollFlags::OUT) {
                unless_blocked(self.connection.write_tls(&mut self.link))?;
            }
            if self.client_ended {
                if link.intersects(PollFlags::HUP | PollFlags::ERR) {
                    return Ok(());
                }
            } else if !link.is_empty() && link != PollFlags::OUT && !self.receive()? {
                self.end_clear()?;
            }
            if clear.contains(PollFlags::OUT) && !self.received.is_empty() {
                let sent = unless_blocked(self.clear.write(&self.received))?.unwrap_or(0);
                self.received.drain(..sent);
            }
            if clear.intersects(PollFlags::IN | PollFlags::HUP) && !self.send()? {
                return self.finish();
            }
        }
    }

    /// Waits until something can go on: from each side something is taken only if what came before
    /// has left on the other.
    fn wait(&self) -> io::Result<(PollFlags, PollFlags)> {
        let mut link = PollFlags::empty();
        let mut clear = PollFlags::empty();
        link.set(PollFlags::IN, self.received.is_empty() && !self.client_ended);
        clear.set(PollFlags::OUT, !self.received.is_empty());
        link.set(PollFlags::OUT, self.connection.wants_write());
        clear.set(PollFlags::IN, !self.connection.wants_write());
        let mut asked = [PollFd::new(&self.link, link), PollFd::new(&self.clear, clear)];
        loop {
            match poll(&mut asked, None) {
                Ok(_) => return Ok((asked[0].revents(), asked[1].revents())),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes what the client sent; false where it has ended.
    fn receive(&mut self) -> io::Result<bool> {
        if unless_blocked(self.connection.read_tls(&mut self.link))? == Some(0) {
            return Ok(false);
        }
        let state = match self.connection.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // The client is told why.
                unless_blocked(self.connection.write_tls(&mut self.link))?;
                return Err(io::Error::other(error));
            }
        };
        let mut some = vec![0; state.plaintext_bytes_to_read()];
        self.connection.reader().read_exact(&mut some)?;
        self.received.extend(some);
        Ok(!state.peer_has_closed())
    }

    /// Passes on that the client has ended, after all that it sent.
    fn end_clear(&mut self) -> io::Result<()> {
        self.client_ended = true;
        self.clear.set_nonblocking(false)?;
        self.clear.write_all(&self.received)?;
        self.received.clear();
        self.clear.shutdown(Shutdown::Write)?;
        self.clear.set_nonblocking(true)
    }

    /// Takes what the session answers; false where it has ended.
    fn send(&mut self) -> io::Result<bool> {
        let mut some = vec![0; AT_ONCE];
        let Some(count) = unless_blocked(self.clear.read(&mut some))? else { return Ok(true) };
        self.connection.writer().write_all(&some[..count])?;
        Ok(count > 0)
    }

    /// Sends what is left, and that it is all.
    fn finish(&mut self) -> io::Result<()> {
        self.connection.send_close_notify();
        ioctl_fionbio(&self.link, false)?;
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.link)?;
        }
        Ok(())
    }
}

fn certificates(folder: &Path, name: &str) -> io::Result<(PathBuf, Vec<CertificateDer<'static>>)> {
    let path = folder.join(name);
    let read = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect);
    let found: Vec<_> = read.map_err(|error| wrong(&path, &error))?;
    if found.is_empty() {
        return Err(wrong(&path, &"it has no certificate"));
    }
    Ok((path, found))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// None where it would have had to wait.
fn unless_blocked<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
