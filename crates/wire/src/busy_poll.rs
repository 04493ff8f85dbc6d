//! `BusyPoll`: a client's connection whose next bytes are waited for awake, where they come soon.
//!
//! To be woken on an idle processor takes longer than to answer, and to wake somebody there costs
//! the client as much: it is that which bounds a client in turn with its server.

use std::io::{self, IoSliceMut, Read};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use ssdlab_engine::pacing::{Clock, wall_clock_now};

/// So long something is waited for awake.
const LINGER: Duration = Duration::from_micros(200);

/// A connection to receive from; it waits asleep until told otherwise.
#[derive(Debug)]
pub struct BusyPoll {
    link: Connection,
    lingers: bool,
}

impl BusyPoll {
    /// A connection that is waited for asleep.
    pub fn new(link: Connection) -> Self {
        Self { link, lingers: false }
    }

    /// The connection.
    pub fn into_link(self) -> Connection {
        self.link
    }

    /// What was waited for since then has come: the next bytes are waited for awake if it came
    /// soon; if none come soon, asleep from then on. A pace reckons with what it costs to be woken.
    pub fn note_waited(&mut self, since: Instant, clock: &Clock) {
        self.lingers =
            wall_clock_now().saturating_duration_since(since) < LINGER && !clock.is_paced();
    }

    /// Waits asleep where this is not so.
    pub fn linger_only_if(&mut self, worth_it: bool) {
        self.lingers &= worth_it;
    }

    /// As `Connection::wait_until`.
    ///
    /// # Errors
    /// The system's.
    pub fn wait_until(&self, time: Instant, spin: Duration) -> io::Result<bool> {
        self.link.wait_until(time, spin)
    }
}

impl Read for BusyPoll {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if self.lingers {
            let until = wall_clock_now() + LINGER;
            while wall_clock_now() < until {
                if let Some(received) = self.link.read_at_once(pieces)? {
                    return Ok(received);
                }
                // A client on the same processor goes on meanwhile.
                std::thread::yield_now();
            }
            self.lingers = false;
        }
        self.link.read_vectored(pieces)
    }
}
