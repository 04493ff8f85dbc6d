//! `Tls`: encrypted connections. A thread decrypts for a session in this process.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::wait;

use crate::connection::{Connection, Disconnect};
use crate::spawn;

/// Bytes read from a session before they are sent to its client.
const READ_BYTES: usize = 256 << 10;
/// How long a client may take to receive what is left after its session has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server certificate with its key.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads `server-cert.pem` and `server-key.pem` in a folder; with `verifies_peers` clients need
    /// a certificate that `ca-cert.pem` has signed.
    pub fn from_folder(folder: &Path, verifies_peers: bool) -> io::Result<Self> {
        let (path, chain) = certificates(folder, "server-cert.pem")?;
        let key_path = folder.join("server-key.pem");
        let key = PrivateKeyDer::from_pem_file(&key_path).map_err(|e| wrong(&key_path, &e))?;
        let builder = ServerConfig::builder();
        let builder = if verifies_peers {
            let (path, trusted) = certificates(folder, "ca-cert.pem")?;
            let mut roots = RootCertStore::empty();
            for certificate in trusted {
                roots.add(certificate).map_err(|error| wrong(&path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(&path, &error))?)
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| wrong(&path, &error))?;
        Ok(Self { config: Arc::new(config) })
    }

    /// Starts TLS on a connection. Returns a connection that carries the plain text; a thread
    /// relays between the two.
    pub fn wrap(&self, encrypted: Connection) -> io::Result<Connection> {
        let (plain, session) = UnixStream::pair()?;
        let tls = ServerConnection::new(Arc::clone(&self.config));
        let tls = tls.map_err(io::Error::other)?;
        ioctl_fionbio(&encrypted, true)?;
        plain.set_nonblocking(true)?;
        spawn("tls", move || {
            let mut relay = Relay::new(encrypted, plain, tls);
            // Both sides are closed, whatever ended the relay.
            let _ = relay.run();
            relay.encrypted.disconnect();
            let _ = relay.plain.shutdown(Shutdown::Both);
        })?;
        Ok(Connection::new(session))
    }
}

/// Relays between a client and its session.
struct Relay {
    encrypted: Connection,
    plain: UnixStream,
    tls: ServerConnection,
    /// Plain text that has not been sent to the session.
    received: Vec<u8>,
    /// The client has shut down its sending direction; it may still receive.
    client_ended: bool,
    /// The session knows that.
    plain_ended: bool,
}

impl Relay {
    fn new(encrypted: Connection, plain: UnixStream, mut tls: ServerConnection) -> Self {
        // The relay itself limits what it buffers.
        tls.set_buffer_limit(None);
        let (received, client_ended, plain_ended) = Default::default();
        Self { encrypted, plain, tls, received, client_ended, plain_ended }
    }

    /// Relays in both directions until one side ends.
    fn run(&mut self) -> io::Result<()> {
        loop {
            let (encrypted, plain) = self.wait()?;
            if encrypted.contains(PollFlags::OUT) {
                unless_blocked(self.tls.write_tls(&mut self.encrypted))?;
            }
            if self.client_ended {
                if encrypted.intersects(PollFlags::HUP | PollFlags::ERR) {
                    return Ok(());
                }
            } else if !encrypted.is_empty() && encrypted != PollFlags::OUT {
                self.client_ended = !self.receive()?;
            }
            if plain.contains(PollFlags::OUT) && !self.received.is_empty() {
                let sent = unless_blocked(self.plain.write(&self.received))?.unwrap_or(0);
                self.received.drain(..sent);
            }
            if self.client_ended && self.received.is_empty() && !self.plain_ended {
                self.plain.shutdown(Shutdown::Write)?;
                self.plain_ended = true;
            }
            if plain.intersects(PollFlags::IN | PollFlags::HUP) && !self.send()? {
                return self.finish();
            }
        }
    }

    /// Waits until something can be relayed. Each side is read only after everything read from it
    /// before has been sent to the other.
    fn wait(&self) -> io::Result<(PollFlags, PollFlags)> {
        let mut encrypted = PollFlags::empty();
        let mut plain = PollFlags::empty();
        encrypted.set(PollFlags::IN, self.received.is_empty() && !self.client_ended);
        plain.set(PollFlags::OUT, !self.received.is_empty());
        encrypted.set(PollFlags::OUT, self.tls.wants_write());
        plain.set(PollFlags::IN, !self.tls.wants_write());
        let mut sides = [PollFd::new(&self.encrypted, encrypted), PollFd::new(&self.plain, plain)];
        loop {
            match poll(&mut sides, None) {
                Ok(_) => return Ok((sides[0].revents(), sides[1].revents())),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives from the client; false if it has ended.
    fn receive(&mut self) -> io::Result<bool> {
        if unless_blocked(self.tls.read_tls(&mut self.encrypted))? == Some(0) {
            return Ok(false);
        }
        let state = match self.tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // The alert that rustls has prepared.
                unless_blocked(self.tls.write_tls(&mut self.encrypted))?;
                return Err(io::Error::other(error));
            }
        };
        let mut bytes = vec![0; state.plaintext_bytes_to_read()];
        self.tls.reader().read_exact(&mut bytes)?;
        self.received.extend(bytes);
        Ok(!state.peer_has_closed())
    }

    /// Reads from the session; false if it has ended.
    fn send(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; READ_BYTES];
        let Some(count) = unless_blocked(self.plain.read(&mut bytes))? else { return Ok(true) };
        self.tls.writer().write_all(&bytes[..count])?;
        Ok(count > 0)
    }

    /// Sends what is left, and the close notification, to a client that receives it in time.
    fn finish(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        let deadline = wall_clock_now() + CLOSE_TIMEOUT;
        while self.tls.wants_write() {
            let mut writable = [PollFd::new(&self.encrypted, PollFlags::OUT)];
            if !wait(&mut writable, deadline, Duration::ZERO)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            unless_blocked(self.tls.write_tls(&mut self.encrypted))?;
        }
        Ok(())
    }
}

fn certificates(folder: &Path, name: &str) -> io::Result<(PathBuf, Vec<CertificateDer<'static>>)> {
    let path = folder.join(name);
    let read = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| wrong(&path, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&path, &"it has no certificate"));
    }
    Ok((path, certificates))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// `None` instead of an error because of which the call has to be repeated later.
fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags};
    use rustix::net::sockopt::set_socket_send_buffer_size;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

    use ssdlab_engine::pacing::wall_clock_now;
    use ssdlab_engine::wait::wait;

    use super::{CLOSE_TIMEOUT, Relay, Tls};
    use crate::connection::Connection;

    /// A self-signed certificate of localhost, valid until 2120, and its key.
    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBBTCBuKADAgECAgEBMAUGAytlcDAPMQ0wCwYDVQQDDAR0ZXN0MCAXDTIwMDEw
MTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQDDAR0ZXN0MCowBQYD
K2VwAyEA/XQU0BLiytKtPCNnMC2JXTIy33jzo4QP794WMzW0zSmjNzA1MBQGA1Ud
EQQNMAuCCWxvY2FsaG9zdDAdBgNVHQ4EFgQUgDE01lWoYmwLfhCV2Ui5bXmlM+ww
BQYDK2VwA0EAIyCXKzpYUgc4LQnJXBlYII2SGsXIZCwWtzwTmsGIunvn9dm5a5Pi
vtFO2OVyXV7wESUl+C1ddAxxNpJIRwU3Dw==
-----END CERTIFICATE-----";
    const KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIA2MVyYlPFE0OBO4EP6xTVTYlWEDf6SQQ74ANXwaJcQN
-----END PRIVATE KEY-----";

    /// A relay that waits for the session to receive must not keep the session from sending.
    #[test]
    fn a_client_that_ends_while_its_session_sends_receives_everything() {
        let (mut client, encrypted) = UnixStream::pair().unwrap();
        let (plain, mut session) = UnixStream::pair().unwrap();
        // The last record does not fit into this buffer.
        set_socket_send_buffer_size(&plain, 1).unwrap();
        plain.set_nonblocking(true).unwrap();
        encrypted.set_nonblocking(true).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let tls = ServerConnection::new(server().config).unwrap();
        thread::spawn(move || Relay::new(Connection::new(encrypted), plain, tls).run());
        let mut tls = handshake(&mut client);
        let sent = vec![1; 16 << 20];
        let reply = sent.clone();
        let session = thread::spawn(move || {
            session.write_all(&reply).unwrap();
            let mut received = Vec::new();
            session.read_to_end(&mut received).unwrap();
            received
        });
        tls.writer().write_all(&[2; 10_000]).unwrap();
        tls.send_close_notify();
        while tls.wants_write() {
            tls.write_tls(&mut client).unwrap();
        }
        let mut received = vec![0; sent.len()];
        rustls::Stream::new(&mut tls, &mut client).read_exact(&mut received).unwrap();
        assert!(received == sent);
        assert_eq!(session.join().unwrap(), [2; 10_000]);
    }

    /// A client that does not receive must not keep the relay's thread and its descriptors.
    #[test]
    fn a_client_that_never_receives_is_disconnected_after_its_session() {
        let (mut client, encrypted) = UnixStream::pair().unwrap();
        // What the session sends does not fit into this buffer, but into that of the session.
        set_socket_send_buffer_size(&encrypted, 1).unwrap();
        let sent = vec![1; 64 << 10];
        client.set_read_timeout(Some(CLOSE_TIMEOUT * 6)).unwrap();
        let mut session = server().wrap(Connection::new(encrypted)).unwrap();
        let mut tls = handshake(&mut client);
        session.write_all(&sent).unwrap();
        drop(session);
        let mut closed = [PollFd::new(&client, PollFlags::RDHUP)];
        assert!(wait(&mut closed, wall_clock_now() + CLOSE_TIMEOUT * 6, Duration::ZERO).unwrap());
        let mut received = Vec::new();
        let ended = rustls::Stream::new(&mut tls, &mut client).read_to_end(&mut received);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "no close_notify");
        assert!(received.len() < sent.len(), "data is left that the client has not received");
    }

    fn server() -> Tls {
        let config = ServerConfig::builder().with_no_client_auth();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        Tls { config: config.with_single_cert(vec![certificate], key).unwrap().into() }
    }

    /// A client that has verified the server's certificate.
    fn handshake(client: &mut UnixStream) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let mut tls = ClientConnection::new(config.into(), name).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(client).unwrap();
        }
        tls
    }
}
