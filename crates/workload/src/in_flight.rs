//! `InFlight`: the requests in flight, and those that wait because the device's queue is full.

use std::collections::VecDeque;

use ssdlab_device::{Completion, Op, Request};
use ssdlab_time::Nanos;

/// Arrival of a request that arrives when the device accepts it.
const AT_SUBMISSION: Nanos = Nanos::MAX;

#[derive(Clone, Copy)]
pub struct Pending {
    /// When the request arrived. `AT_SUBMISSION` until it completes, if it did not wait.
    pub arrival: Nanos,
    pub blocks: u32,
    pub op: Op,
}

/// The requests in flight, by id, and the arrivals that wait for the device's queue.
#[derive(Clone)]
pub struct InFlight {
    /// Unused ids.
    free: Vec<u64>,
    /// By id.
    pending: Vec<Pending>,
    /// For a closed loop that is deeper than the device's queue.
    backlog: Option<Box<Backlog>>,
}

/// Requests of a closed loop that wait because the device's queue is full.
#[derive(Clone)]
struct Backlog {
    /// Arrival times, oldest first.
    arrivals: VecDeque<Nanos>,
    /// Requests to come that find room in the queue and do not wait.
    unqueued: usize,
}

impl InFlight {
    /// Room for `depth` requests, or for `device_depth` if that is smaller.
    ///
    /// For a closed loop, which passes its start in `closed_since`, the other requests arrive at
    /// the start and wait. An open loop has its own arrival times.
    pub fn new(depth: usize, device_depth: usize, closed_since: Option<Nanos>) -> Self {
        let room = depth.min(device_depth);
        let unused = Pending { arrival: AT_SUBMISSION, blocks: 0, op: Op::Flush };
        let waiting = closed_since
            .filter(|_| depth > room)
            .map(|start| std::iter::repeat_n(start, depth - room).collect());
        Self {
            free: (0..room as u64).rev().collect(),
            pending: vec![unused; room],
            backlog: waiting.map(|arrivals| Box::new(Backlog { arrivals, unqueued: room })),
        }
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.pending.len()
    }

    /// The id that the next request must have.
    #[inline]
    pub fn next_id(&self) -> u64 {
        *self.free.last().expect("the caller checks has_room")
    }

    /// Adds a request; `arrival` is `None` for a closed loop.
    #[inline]
    pub fn submit(&mut self, request: &Request, arrival: Option<Nanos>) {
        let id = self.free.pop();
        assert!(id == Some(request.id), "a request must have the next id");
        let waited_since = self.backlog.as_mut().and_then(|backlog| backlog.submit());
        // Field by field: reading a struct in wider words than it was written in stalls the CPU.
        let pending = &mut self.pending[request.id as usize];
        pending.arrival = arrival.or(waited_since).unwrap_or(AT_SUBMISSION);
        pending.blocks = request.blocks;
        pending.op = request.op;
    }

    /// Removes a completed request and returns it with its arrival time.
    #[inline]
    pub fn complete(&mut self, completion: &Completion) -> Pending {
        self.free.push(completion.id);
        if let Some(backlog) = &mut self.backlog {
            backlog.complete(completion.completed);
        }
        let Pending { arrival, blocks, op } = self.pending[completion.id as usize];
        let arrival = if arrival == AT_SUBMISSION { completion.submitted } else { arrival };
        Pending { arrival, blocks, op }
    }
}

impl Backlog {
    /// The arrival time of the submitted request, if it had to wait.
    fn submit(&mut self) -> Option<Nanos> {
        if self.unqueued > 0 {
            self.unqueued -= 1;
            return None;
        }
        self.arrivals.pop_front()
    }

    /// A request completed, so the next one of the closed loop arrives.
    fn complete(&mut self, completed: Nanos) {
        if self.arrivals.is_empty() {
            self.unqueued += 1;
        } else {
            self.arrivals.push_back(completed);
        }
    }
}
