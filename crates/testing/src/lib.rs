//! What tests of several crates share: a drive with simple behaviour, and clients of NBD, of
//! `NVMe`/TCP and of the control socket. Their wire formats are written down independently of the
//! crates under test.

mod drive;
pub mod nbd;
pub mod nvme;

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use ssdlab_engine::pacing::wall_clock_now;

pub use drive::{CAPACITY, DriveOptions, FakeDrive, MAX_TRANSFER, UNIT, counter, engine};

/// A server that does not reply for this long fails the test.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A number of random cases, times `SSDLAB_TEST_SCALE`, which `make test-long` sets.
pub fn scaled(cases: u32) -> u32 {
    cases * u32::try_from(variable("SSDLAB_TEST_SCALE", 1)).expect("a small number")
}

/// `SSDLAB_TEST_SEED`, from which random cases are drawn; 0 by default.
pub fn seed() -> u64 {
    variable("SSDLAB_TEST_SEED", 0)
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} is {value}; give a whole number"))
    })
}

/// Bytes in runs: the byte, and how often it is repeated.
pub fn runs(of: &[(u8, usize)]) -> Vec<u8> {
    of.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect()
}

/// Waits until a condition holds.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let end = wall_clock_now() + TIMEOUT;
    while !holds() {
        assert!(wall_clock_now() < end, "waited too long");
        std::thread::yield_now();
    }
}

/// A connection to the control socket.
pub struct Control(BufReader<UnixStream>);

impl Control {
    /// Connects.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request; returns the answer.
    pub fn call(&mut self, verb: &str, mut arguments: Value) -> Value {
        arguments["do"] = verb.into();
        self.try_send(&arguments.to_string()).unwrap()
    }

    /// Sends a request that has no arguments; returns the answer.
    pub fn verb(&mut self, verb: &str) -> Value {
        self.call(verb, json!({}))
    }

    /// Sends a line; returns the answer.
    pub fn try_send(&mut self, line: &str) -> io::Result<Value> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.0.read_line(&mut answer)?;
        // The answer is empty if the server has closed the connection.
        serde_json::from_str(&answer).map_err(io::Error::other)
    }
}
