//! `PayloadMemory`: memory for payloads that are being received, limited over all connections.
//!
//! A payload takes memory part by part as its bytes arrive, so that an announcement alone takes
//! little. At the limit a connection waits. The one that has waited longest may exceed the limit,
//! one connection at a time, so that connections cannot deadlock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::timeouts::{Timeout, Timeouts};
use crate::connection::Connection;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::sync::lock;

/// Bytes of the first part of a payload, and of the longest part.
const PART_MIN: usize = 256 << 10;
const PART_MAX: usize = 4 << 20;
/// Timeout for a part while other connections wait for memory.
const CONTENDED_TIMEOUT: Duration = Duration::from_secs(1);
/// How often waiting connections check that timeout.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// Bytes of a payload to receive next, after `received`: as many again, within bounds.
pub fn next_part(received: usize, missing: usize) -> usize {
    received.clamp(PART_MIN, PART_MAX).min(missing)
}

#[derive(Debug)]
pub struct PayloadMemory {
    limit: usize,
    /// Timeout for each part of a payload.
    timeout: Duration,
    reserved: AtomicUsize,
    queue: Mutex<Queue>,
    released: Condvar,
    timeouts: Arc<Timeouts>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Connections that wait, in the order of arrival.
    waiting: VecDeque<u64>,
    /// The connection that may exceed the limit.
    exceeding: Option<u64>,
    last: u64,
}

/// The memory of one connection; dropping it releases the memory.
#[derive(Debug)]
pub struct PayloadReservation {
    memory: Arc<PayloadMemory>,
    connection: Connection,
    bytes: usize,
    /// Identifies the connection in the queue; set when it first waits.
    number: Option<u64>,
}

impl PayloadMemory {
    /// Memory of `limit` bytes; a client has `timeout` to send each part of a payload.
    pub fn new(limit: usize, timeout: Duration) -> Arc<Self> {
        let (reserved, queue, released, timeouts) = Default::default();
        Self { limit, timeout, reserved, queue, released, timeouts }.into()
    }

    pub fn reservation(self: &Arc<Self>, connection: &Connection) -> PayloadReservation {
        let (memory, connection) = (Arc::clone(self), connection.clone());
        PayloadReservation { memory, connection, bytes: 0, number: None }
    }

    /// Disconnects the connections whose timeout has expired.
    pub fn disconnect_expired(&self) {
        self.timeouts.disconnect_expired_by(wall_clock_now());
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        let more = |reserved: usize| Some(reserved + bytes).filter(|sum| *sum <= self.limit);
        self.reserved.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }
}

impl PayloadReservation {
    /// Reserves memory for the next part of a payload, and waits for it if necessary. Then the
    /// client has to send the part before the returned timeout expires.
    pub fn reserve(&mut self, bytes: usize) -> Timeout {
        if !self.memory.try_reserve(bytes) {
            self.wait_for(bytes);
        }
        self.bytes += bytes;
        self.start_timeout()
    }

    /// Starts the timeout for a part.
    pub fn start_timeout(&self) -> Timeout {
        self.memory.timeouts.start(&self.connection, self.memory.timeout)
    }

    fn wait_for(&mut self, bytes: usize) {
        let memory = &self.memory;
        let mut queue = lock(&memory.queue);
        queue.last += 1;
        let number = *self.number.get_or_insert(queue.last);
        queue.waiting.push_back(number);
        loop {
            if memory.try_reserve(bytes) {
                break;
            }
            let is_next = queue.exceeding.is_none() && queue.waiting.front() == Some(&number);
            if is_next || queue.exceeding == Some(number) {
                queue.exceeding = Some(number);
                memory.reserved.fetch_add(bytes, Ordering::SeqCst);
                break;
            }
            let waited = memory.released.wait_timeout(queue, CHECK_PERIOD);
            queue = waited.expect("no panic while locked").0;
            // Parts that were begun more than CONTENDED_TIMEOUT ago.
            let left = memory.timeout.saturating_sub(CONTENDED_TIMEOUT);
            memory.timeouts.disconnect_expired_by(wall_clock_now() + left);
        }
        queue.waiting.retain(|waiting| *waiting != number);
        drop(queue);
        // The next connection may fit, or exceed the limit.
        memory.released.notify_all();
    }

    /// Releases all but `kept` bytes.
    pub fn release_to(&mut self, kept: usize) {
        let released = self.bytes.saturating_sub(kept);
        if released == 0 {
            return;
        }
        self.bytes -= released;
        self.memory.reserved.fetch_sub(released, Ordering::SeqCst);
        let mut queue = lock(&self.memory.queue);
        if self.bytes == 0 && self.number.is_some() && queue.exceeding == self.number {
            queue.exceeding = None;
        }
        if !queue.waiting.is_empty() {
            self.memory.released.notify_all();
        }
    }
}

impl Drop for PayloadReservation {
    fn drop(&mut self) {
        self.release_to(0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::PayloadMemory;
    use crate::connection::Connection;

    const TIMEOUT: Duration = Duration::from_secs(600);

    fn connection() -> (Connection, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        (Connection::new(server), client)
    }

    #[test]
    fn payloads_of_more_than_the_limit_are_all_received_in_the_end() {
        let memory = PayloadMemory::new(100, TIMEOUT);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let (connection, _client) = connection();
                    for _ in 0..50 {
                        let mut reservation = memory.reservation(&connection);
                        for _ in 0..8 {
                            drop(reservation.reserve(10));
                        }
                    }
                });
            }
        });
        assert_eq!(memory.reserved.load(std::sync::atomic::Ordering::SeqCst), 0);
    }

    #[test]
    fn one_connection_at_a_time_exceeds_the_limit() {
        let memory = PayloadMemory::new(100, TIMEOUT);
        let (connection, _client) = connection();
        let (mut first, mut second) =
            (memory.reservation(&connection), memory.reservation(&connection));
        let (_one, _two) = (first.reserve(100), second.reserve(50));
        let waits = std::thread::scope(|scope| {
            let third = scope.spawn(|| memory.reservation(&connection).reserve(10));
            std::thread::park_timeout(Duration::from_millis(50));
            let waits = !third.is_finished();
            second.release_to(0);
            third.join().unwrap();
            waits
        });
        assert!(waits);
    }

    #[test]
    fn a_silent_client_is_disconnected_while_others_wait_for_memory() {
        let memory = PayloadMemory::new(100, TIMEOUT);
        let (silent, mut client) = connection();
        let (connection, _other) = connection();
        let (mut first, mut second) = (memory.reservation(&silent), memory.reservation(&silent));
        let (_one, _two) = (first.reserve(100), second.reserve(50));
        std::thread::scope(|scope| {
            let third = scope.spawn(|| drop(memory.reservation(&connection).reserve(10)));
            let ended = std::io::Read::read(&mut client, &mut [0; 1]);
            assert_eq!(ended.unwrap_or(0), 0);
            drop((first, second));
            third.join().unwrap();
        });
    }
}
