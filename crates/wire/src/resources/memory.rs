//! `PayloadMemory`: memory for payloads that are being received, bounded over all connections.
//!
//! A payload takes memory piece by piece as its bytes arrive, so that an announcement alone takes
//! next to none. Where the limit is reached a connection waits; the one that has waited the longest
//! goes on beyond the limit, alone, so that connections never wait for each other in a circle.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::deadlines::{Deadline, Deadlines};
use crate::connection::Connection;
use ssdlab_engine::pacing::wall_clock_now;

/// The first piece of a payload, and the longest.
const PIECE: (usize, usize) = (256 << 10, 4 << 20);
/// While others wait for memory, a piece has to arrive in this time.
const CONTENDED: Duration = Duration::from_secs(1);
/// How often those who wait look for pieces that did not.
const LOOK: Duration = Duration::from_millis(100);

/// How much the next piece of a payload may be, of which so much is there.
pub fn next_piece(received: usize, missing: usize) -> usize {
    received.clamp(PIECE.0, PIECE.1).min(missing)
}

/// Memory for payloads.
#[derive(Debug)]
pub struct PayloadMemory {
    limit: usize,
    /// How long a client may take for a piece.
    patience: Duration,
    taken: AtomicUsize,
    queue: Mutex<Queue>,
    given_back: Condvar,
    deadlines: Arc<Deadlines>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Who waits, the first comer first.
    waiting: VecDeque<u64>,
    /// Who may go beyond the limit.
    beyond: Option<u64>,
    last: u64,
}

/// What one connection has taken; it is given back when this is dropped.
#[derive(Debug)]
pub struct Payload {
    memory: Arc<PayloadMemory>,
    link: Connection,
    bytes: usize,
    /// By which it is told from others, once it has waited.
    number: Option<u64>,
}

impl PayloadMemory {
    /// So much memory, of which nothing is taken; a client may take so long for a piece.
    pub fn new(limit: usize, patience: Duration) -> Arc<Self> {
        let (taken, queue, given_back, deadlines) = Default::default();
        Self { limit, patience, taken, queue, given_back, deadlines }.into()
    }

    /// What a connection takes, which is nothing yet.
    pub fn payload(self: &Arc<Self>, link: &Connection) -> Payload {
        Payload { memory: Arc::clone(self), link: link.clone(), bytes: 0, number: None }
    }

    /// Breaks off the connections whose time for a piece is over.
    pub fn break_off_expired(&self) {
        self.deadlines.break_off_due_by(wall_clock_now());
    }

    /// Takes so much if the limit allows it.
    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| Some(taken + bytes).filter(|taken| *taken <= self.limit);
        self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic while locked")
    }
}

impl Payload {
    /// Takes memory for the next piece of a payload, waiting for it where there is none. From then
    /// on the client has to send that piece in time, until what is returned is dropped.
    pub fn next(&mut self, bytes: usize) -> Deadline {
        if !self.memory.take(bytes) {
            self.wait_for(bytes);
        }
        self.bytes += bytes;
        self.deadline()
    }

    /// Gives the client as much time as for a piece.
    pub fn deadline(&self) -> Deadline {
        self.memory.deadlines.add(&self.link, self.memory.patience)
    }

    fn wait_for(&mut self, bytes: usize) {
        let memory = &self.memory;
        let mut queue = memory.lock();
        queue.last += 1;
        let number = *self.number.get_or_insert(queue.last);
        queue.waiting.push_back(number);
        loop {
            if memory.take(bytes) {
                break;
            }
            let is_next = queue.beyond.is_none() && queue.waiting.front() == Some(&number);
            if is_next || queue.beyond == Some(number) {
                queue.beyond = Some(number);
                memory.taken.fetch_add(bytes, Ordering::SeqCst);
                break;
            }
            let waited = memory.given_back.wait_timeout(queue, LOOK);
            queue = waited.expect("no panic while locked").0;
            // Older pieces than that have less of their time left.
            let left = memory.patience.saturating_sub(CONTENDED);
            memory.deadlines.break_off_due_by(wall_clock_now() + left);
        }
        queue.waiting.retain(|each| *each != number);
        drop(queue);
        // The next one may fit, or go beyond the limit.
        memory.given_back.notify_all();
    }

    /// Gives back all but so much.
    pub fn give_back_to(&mut self, kept: usize) {
        let given = self.bytes.saturating_sub(kept);
        if given == 0 {
            return;
        }
        self.bytes -= given;
        self.memory.taken.fetch_sub(given, Ordering::SeqCst);
        let mut queue = self.memory.lock();
        if self.bytes == 0 && self.number.is_some() && queue.beyond == self.number {
            queue.beyond = None;
        }
        if !queue.waiting.is_empty() {
            self.memory.given_back.notify_all();
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.give_back_to(0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::PayloadMemory;
    use crate::connection::Connection;

    const PATIENCE: Duration = Duration::from_secs(600);

    fn link() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Connection::unix(ours), theirs)
    }

    #[test]
    fn payloads_that_need_more_than_there_is_are_all_received_in_the_end() {
        let memory = PayloadMemory::new(100, PATIENCE);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let (link, _theirs) = link();
                    for _ in 0..50 {
                        let mut payload = memory.payload(&link);
                        for _ in 0..8 {
                            drop(payload.next(10));
                        }
                    }
                });
            }
        });
        assert_eq!(memory.taken.load(std::sync::atomic::Ordering::SeqCst), 0);
    }

    #[test]
    fn who_goes_beyond_the_limit_does_so_alone() {
        let memory = PayloadMemory::new(100, PATIENCE);
        let (link, _theirs) = link();
        let (mut first, mut second) = (memory.payload(&link), memory.payload(&link));
        let (_one, _two) = (first.next(100), second.next(50));
        let waits = std::thread::scope(|scope| {
            let third = scope.spawn(|| memory.payload(&link).next(10));
            std::thread::park_timeout(Duration::from_millis(50));
            let waits = !third.is_finished();
            second.give_back_to(0);
            third.join().unwrap();
            waits
        });
        assert!(waits);
    }

    #[test]
    fn who_does_not_send_what_others_wait_for_is_broken_off() {
        let memory = PayloadMemory::new(100, PATIENCE);
        let (stalled, mut theirs) = link();
        let (link, _other) = link();
        let (mut first, mut second) = (memory.payload(&stalled), memory.payload(&stalled));
        let (_one, _two) = (first.next(100), second.next(50));
        std::thread::scope(|scope| {
            let third = scope.spawn(|| drop(memory.payload(&link).next(10)));
            let ended = std::io::Read::read(&mut theirs, &mut [0; 1]);
            assert_eq!(ended.unwrap_or(0), 0);
            drop((first, second));
            third.join().unwrap();
        });
    }
}
