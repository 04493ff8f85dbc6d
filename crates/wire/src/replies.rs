//! `Replies`: what a client is to hear, at once or at its time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use ssdlab_engine::SendBuffer;
use ssdlab_engine::pacing::{Clock, wall_clock_now};

/// The replies of one connection.
#[derive(Default)]
pub struct Replies {
    now: SendBuffer,
    /// By when they leave; of two for the same time the older one first.
    waiting: BTreeMap<(Instant, u64), SendBuffer>,
    waiting_bytes: usize,
    added: u64,
}

impl Replies {
    /// What leaves with the next sending.
    pub fn now(&mut self) -> &mut SendBuffer {
        &mut self.now
    }

    /// Adds a reply that leaves at a time, at once where there is none; `make` writes it.
    pub fn add(&mut self, due: Option<Instant>, make: impl FnOnce(&mut SendBuffer)) {
        let Some(due) = due else {
            make(&mut self.now);
            return;
        };
        let mut message = SendBuffer::default();
        make(&mut message);
        self.added += 1;
        self.waiting_bytes += message.len();
        self.waiting.insert((due, self.added), message);
    }

    /// How much waits for its time.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// When the next waiting reply is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Sends what leaves at once and what is due by now.
    ///
    /// # Errors
    /// The stream's.
    pub fn send(&mut self, stream: &mut impl Write, clock: &Clock) -> io::Result<()> {
        while self.next_due().is_some_and(|due| due <= wall_clock_now()) {
            let ((due, _), next) = self.waiting.pop_first().expect("one is due");
            clock.note_sent(due);
            self.waiting_bytes -= next.len();
            self.now.append(next);
        }
        if self.now.is_empty() { Ok(()) } else { self.now.send(stream) }
    }
}
