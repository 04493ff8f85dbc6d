//! A server with a fake drive for one input: the input is sent to it, and its replies are received.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use ssdlab_engine::{Engine, Pace};
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::{DhchapKey, Target};
use ssdlab_server::Server;
use ssdlab_wire::Connection;

use ssdlab_testing::{CAPACITY, DriveOptions, UNIT, engine};

/// Longest input that is run. It fits into a socket buffer, so that it can be sent as a whole
/// before the replies are read.
pub const INPUT_MAX: usize = 64 << 10;
/// A client disconnects after this many bytes of replies.
const REPLIES_MAX: usize = 8 << 20;
/// A reply that takes longer is lost, and its loss is a finding.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pace of a paced drive: its latency of 50 us becomes negligible, but replies are still queued.
const FAST: f64 = 1e6;
const SECRET: &str = "DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:";

/// The configuration that the first byte of an input selects.
#[derive(Clone, Copy)]
pub struct Setup(u8);

impl Setup {
    /// The setup of an input, and the rest of the input; `None` if it is empty or too long.
    pub fn parse(input: &[u8]) -> Option<(Self, &[u8])> {
        let (first, rest) = input.split_first()?;
        (rest.len() <= INPUT_MAX).then_some((Self(*first), rest))
    }

    /// Bit 5, 6 or 7, which each target defines for itself.
    pub fn has(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }

    pub fn is_paced(self) -> bool {
        self.has(4)
    }

    /// Whether trimmed units read as zeros.
    pub fn trims_to_zeros(self) -> bool {
        !self.has(2)
    }

    fn drive(self) -> DriveOptions {
        DriveOptions {
            power_loss_protection: self.has(0),
            streams: if self.has(1) { 4 } else { 0 },
            trims_to_zeros: self.trims_to_zeros(),
            max_transfer: if self.has(3) { 64 << 10 } else { DriveOptions::default().max_transfer },
            endurance_writes: if self.has(3) { 64 } else { u64::MAX },
            queue_depth: if self.is_paced() { 4 } else { DriveOptions::default().queue_depth },
            ..DriveOptions::default()
        }
    }

    /// An engine with a drive of this setup.
    pub fn engine(self) -> Engine {
        let pace = if self.is_paced() { Pace::Scaled(FAST) } else { Pace::None };
        engine(self.drive(), pace)
    }

    /// A server with such a drive. If `has_secret`, `NVMe` hosts must authenticate.
    pub fn server(self, has_secret: bool) -> TestServer {
        let secret = has_secret.then(|| DhchapKey::parse(SECRET).expect("a valid secret"));
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        let server = Server::new(self.engine(), export);
        let target = Arc::new(server.nvme_target("fuzz", secret));
        TestServer { server, target }
    }
}

/// A server without listeners; `Client` connects to it by socket pairs. Except for the listener,
/// all code is that of `ssdlab serve`, with its threads.
pub struct TestServer {
    server: Server,
    target: Arc<Target>,
}

#[derive(Clone, Copy)]
pub enum Protocol {
    Nbd,
    NvmeTcp,
    Control,
}

impl TestServer {
    /// The qualified name of the `NVMe` subsystem.
    pub fn nvme_name(&self) -> &str {
        &self.target.subsystem.identity.subnqn
    }

    /// Sends bytes on a new connection and receives all replies.
    pub fn exchange(&self, protocol: Protocol, sent: &[u8]) -> Replies {
        let mut client = Client::connect(self, protocol);
        client.send(sent);
        client.finish()
    }
}

pub struct Replies {
    pub bytes: Vec<u8>,
    /// Whether the server closed the connection. Otherwise the client disconnected.
    pub is_complete: bool,
}

/// The client's end of a connection.
pub struct Client {
    stream: UnixStream,
    panics: usize,
}

impl Client {
    pub fn connect(server: &TestServer, protocol: Protocol) -> Self {
        let panics = panics();
        let (stream, of_server) = UnixStream::pair().expect("a socket pair");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket option");
        let connection = Connection::new(of_server);
        match protocol {
            Protocol::Nbd => server.server.serve_nbd(connection),
            Protocol::NvmeTcp => server.server.serve_nvme_tcp(connection, &server.target),
            Protocol::Control => server.server.serve_control(connection),
        }
        Self { stream, panics }
    }

    /// Sends bytes; the server may have closed the connection.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Receives this number of bytes, or fewer if the server closes the connection.
    pub fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = (&self.stream).take(count as u64).read_to_end(&mut bytes);
        bytes
    }

    /// Shuts down the sending side and receives all remaining replies.
    pub fn finish(self) -> Replies {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut bytes = Vec::new();
        // An error is a reset: the server closed the connection before it had read everything.
        let _ = (&self.stream).take(REPLIES_MAX as u64 + 1).read_to_end(&mut bytes);
        assert_eq!(panics(), self.panics, "a thread of the server panicked");
        Replies { is_complete: bytes.len() <= REPLIES_MAX, bytes }
    }
}

/// The number of panics in this process so far.
fn panics() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            COUNT.fetch_add(1, Ordering::SeqCst);
            before(panic);
        }));
    });
    COUNT.load(Ordering::SeqCst)
}
