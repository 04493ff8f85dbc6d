//! `BusyPoll`: a connection that is polled without sleeping while its client sends at short
//! intervals.
//!
//! To wake up a thread on an idle processor takes longer than to answer a request, and costs the
//! client time too. This limits a client that sends one request at a time.

use std::io::{self, IoSliceMut, Read};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use ssdlab_engine::pacing::{Clock, wall_clock_now};

/// How long to poll before sleeping.
const POLL_TIME: Duration = Duration::from_micros(200);

/// A connection to receive from. At first it sleeps until bytes arrive.
#[derive(Debug)]
pub struct BusyPoll {
    connection: Connection,
    is_polling: bool,
}

impl BusyPoll {
    /// Receives from a connection.
    pub fn new(connection: Connection) -> Self {
        Self { connection, is_polling: false }
    }

    /// The connection.
    pub fn into_connection(self) -> Connection {
        self.connection
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

    /// As `Connection::wait_readable`.
    pub fn wait_readable(&self, until: Instant, spin: Duration) -> io::Result<bool> {
        self.connection.wait_readable(until, spin)
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
