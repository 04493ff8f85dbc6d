//! `NullDevice` and `nop_rate`: the engine's own cost, and the upper limit of `io_uring`.

use std::io;

use io_uring::{IoUring, opcode};
use ssdlab_device::{Completion, Device, DeviceError, LBA_BYTES, Request, Wait};
use ssdlab_time::Nanos;

use crate::clock::Clock;

/// A device that completes every request at once, to measure the engine's own cost.
#[derive(Debug)]
pub struct NullDevice {
    clock: Clock,
    queue_depth: usize,
    /// Ids and submission times; number `n` is at index `n % ids.len()`, a power of two.
    ids: Vec<u64>,
    stamps: Vec<Nanos>,
    submitted: usize,
    reaped: usize,
}

impl NullDevice {
    /// A device of this queue depth, which transfers no data.
    pub fn new(queue_depth: usize) -> Self {
        let places = queue_depth.next_power_of_two();
        let (ids, stamps) = (vec![0; places], vec![Nanos::ZERO; places]);
        Self { clock: Clock::start(), queue_depth, ids, stamps, submitted: 0, reaped: 0 }
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
        let in_flight = self.submitted - self.reaped;
        assert!(in_flight < self.queue_depth, "more in flight than the queue holds");
        let place = self.submitted & (self.ids.len() - 1);
        self.ids[place] = request.id;
        self.stamps[place] = self.clock.now();
        self.submitted += 1;
        Ok(())
    }

    /// Completes only the oldest request, so that each completion reads the clock.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call would add to the engine's cost")]
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if self.reaped < self.submitted {
            let place = self.reaped & (self.ids.len() - 1);
            let (id, submitted) = (self.ids[place], self.stamps[place]);
            self.reaped += 1;
            let completed = self.clock.now();
            done.push(Completion { id, submitted, completed, outcome: Ok(()) });
        } else if let Wait::Until(time) = wait {
            self.clock.sleep_until(time);
        }
        Ok(())
    }
}

/// Rate of `IORING_OP_NOP` requests per second on one core, 32 at a time.
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
            // SAFETY: a NOP has no pointers.
            unsafe { ring.submission().push(&entry) }.expect("the ring has room for the batch");
        }
        ring.submit_and_wait(DEPTH as usize)?;
        assert_eq!(ring.completion().count() as u64, DEPTH);
    }
    Ok((rounds * DEPTH) as f64 / clock.now().as_secs_f64())
}
