//! A server with a toy drive for one input: what it is sent, and all that it replies.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store};
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::Secret;
use ssdlab_server::fuzz::Handed;

use crate::nbd;
use crate::toy::{CAPACITY, HONEST, Manner, Toy, UNIT};

/// The longest input that is run: it fits into a socket, so that it is sent before it is read.
pub const INPUT_MAX: usize = 64 << 10;
/// A client that hears more than this goes away.
const HEARD_MAX: usize = 8 << 20;
/// Of `Pace::Times`: the toy's 50 us become nothing, and replies still pass the queue of the paced.
const FAST: f64 = 1e6;
const SECRET: &str = "DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:";

/// The configuration that the first byte of an input chooses.
#[derive(Clone, Copy)]
pub struct Setup(u8);

impl Setup {
    /// The setup of an input, and the rest of the input; `None` where there is nothing to run.
    pub fn of(input: &[u8]) -> Option<(Self, &[u8])> {
        let (first, rest) = input.split_first()?;
        (rest.len() <= INPUT_MAX).then_some((Self(*first), rest))
    }

    /// A bit that the target gives a meaning: 5, 6 or 7.
    pub fn has(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// Whether replies wait for their time.
    pub fn is_paced(self) -> bool {
        self.has(4)
    }

    /// Whether trimmed units read as zeros.
    pub fn trims_to_zeros(self) -> bool {
        !self.has(2)
    }

    fn manner(self) -> Manner {
        Manner {
            protected: self.has(0),
            streams: if self.has(1) { 4 } else { 0 },
            trims_to_zeros: self.trims_to_zeros(),
            max_transfer: if self.has(3) { 64 << 10 } else { HONEST.max_transfer },
            life: if self.has(3) { 64 } else { u64::MAX },
            queue_depth: if self.is_paced() { 4 } else { HONEST.queue_depth },
            ..HONEST
        }
    }

    /// A drive of this setup.
    pub fn engine(self) -> Engine {
        let toy = Toy::new(self.manner());
        let store = Store::in_memory(CAPACITY, UNIT, toy.volatile_units());
        let pace = if self.is_paced() { Pace::Times(FAST) } else { Pace::None };
        Engine::new(Box::new(toy), store, Clock::start(pace, LatencyCompensation::default()))
    }

    /// A server of such a drive; where `has_secret`, hosts of `NVMe` must prove that they know it.
    pub fn server(self, has_secret: bool) -> Handed {
        let secret = has_secret.then(|| Secret::parse(SECRET).expect("a valid secret"));
        Handed::new(self.engine(), Export::new("toy", "a toy", CAPACITY, UNIT), secret)
    }
}

/// What a client heard.
pub struct Heard {
    pub bytes: Vec<u8>,
    /// Whether the server closed the connection; else the client went away.
    pub is_all: bool,
}

/// Sends bytes on a new connection, ends the sending side, and hears the replies.
///
/// # Panics
/// A thread of the server panicked.
pub fn talk(serve: impl FnOnce(UnixStream), sent: &[u8]) -> Heard {
    let mut line = Line::open(serve);
    line.say(sent);
    line.finish()
}

/// A client's end of a connection.
pub struct Line {
    stream: UnixStream,
    panics: usize,
}

impl Line {
    /// A connection that is handed to a server.
    pub fn open(serve: impl FnOnce(UnixStream)) -> Self {
        let panics = panics();
        let (stream, theirs) = UnixStream::pair().expect("a pair of sockets");
        serve(theirs);
        Self { stream, panics }
    }

    /// Sends bytes; a server that has closed the connection does not hear them.
    pub fn say(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for this number of reply bytes; returns fewer if the server closes the connection.
    pub fn hear(&mut self, count: usize) -> Vec<u8> {
        let mut heard = Vec::new();
        let _ = (&self.stream).take(count as u64).read_to_end(&mut heard);
        heard
    }

    /// Ends the sending side and hears all that is left.
    pub fn finish(self) -> Heard {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut bytes = Vec::new();
        // An error is a reset: the server closed the connection before it had read all.
        let _ = (&self.stream).take(HEARD_MAX as u64 + 1).read_to_end(&mut bytes);
        assert_eq!(panics(), self.panics, "a thread of the server panicked");
        Heard { is_all: bytes.len() <= HEARD_MAX, bytes }
    }
}

/// Checks that the drive still answers.
pub fn check_alive(server: &Handed) {
    let heard = talk(|stream| server.nbd(stream), &nbd::probe());
    assert!(nbd::probe_succeeded(&heard.bytes), "the drive does not answer any more");
}

/// How many panics there were in this process.
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
