//! `NullDevice` and `nop_rate`: what the engine itself costs, and what `io_uring` allows at best.

use std::collections::VecDeque;
use std::io;

use io_uring::{IoUring, opcode};
use ssdlab_device::{Completion, Device, DeviceError, LBA_BYTES, Request, Wait};
use ssdlab_time::Nanos;

use crate::clock::Clock;

/// A device that has done every request as soon as it is asked: what is left is the engine's cost.
#[derive(Debug)]
pub struct NullDevice {
    clock: Clock,
    queue_depth: usize,
    in_flight: VecDeque<(u64, Nanos)>,
}

impl NullDevice {
    /// One of this depth. Every address is inside, and nothing is moved.
    pub fn new(queue_depth: usize) -> Self {
        let in_flight = VecDeque::with_capacity(queue_depth);
        Self { clock: Clock::start(), queue_depth, in_flight }
    }
}

impl Device for NullDevice {
    fn capacity_bytes(&self) -> u64 {
        1 << 50
    }

    fn sector_bytes(&self) -> u64 {
        LBA_BYTES
    }

    fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        DeviceError::check(&request, self.capacity_bytes(), LBA_BYTES)?;
        assert!(self.in_flight.len() < self.queue_depth, "more in flight than the queue holds");
        self.in_flight.push_back((request.id, self.clock.now()));
        Ok(())
    }

    /// The oldest request alone, with stamps of its own: no batch makes it look cheaper.
    #[inline]
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if let Some((id, submitted)) = self.in_flight.pop_front() {
            let completed = self.clock.now();
            done.push(Completion { id, submitted, completed, outcome: Ok(()) });
        } else if let Wait::Until(time) = wait {
            self.clock.sleep_until(time);
        }
        Ok(())
    }
}

/// Requests a second that `io_uring` does where each does nothing, 32 at a time, on this core.
///
/// # Errors
/// No `io_uring` here.
pub fn nop_rate(requests: u64) -> io::Result<f64> {
    const DEPTH: u64 = 32;
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .build(DEPTH as u32)
        .or_else(|_| IoUring::new(DEPTH as u32))?;
    let clock = Clock::start();
    let rounds = requests.div_ceil(DEPTH).max(1);
    for _ in 0..rounds {
        for id in 0..DEPTH {
            let entry = opcode::Nop::new().build().user_data(id);
            // SAFETY: a request that does nothing refers to nothing.
            unsafe { ring.submission().push(&entry) }.expect("there is an entry for each");
        }
        ring.submit_and_wait(DEPTH as usize)?;
        assert_eq!(ring.completion().count() as u64, DEPTH);
    }
    Ok((rounds * DEPTH) as f64 / clock.now().as_secs_f64())
}
