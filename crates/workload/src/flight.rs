//! `Flight`: the places that outstanding requests have, and what waits for the device's queue.

use std::collections::VecDeque;

use ssdlab_device::{Completion, Op, Request};
use ssdlab_time::Nanos;

/// Instead of an arrival: when the device took the request.
const TAKEN: Nanos = Nanos::MAX;

/// What is remembered of a request that the device has.
#[derive(Clone, Copy)]
pub struct Passenger {
    /// When it arrived; in flight it may be `TAKEN`.
    pub arrival: Nanos,
    pub blocks: u32,
    pub op: Op,
}

/// The places that outstanding requests have, and the arrivals that wait for the device's queue.
pub struct Flight {
    /// Places, by id, that no request in the device has.
    free: Vec<u64>,
    /// For each place: its request.
    passengers: Vec<Passenger>,
    /// Of a closed loop deeper than the device's queue.
    held: Option<Box<Held>>,
}

/// What a closed loop holds back from a device that has no room for it.
struct Held {
    /// When it arrived, oldest first.
    arrivals: VecDeque<Nanos>,
    /// Requests that may still arrive without one ending first.
    unborn: usize,
}

impl Flight {
    /// Places for `depth` requests, or for as many as the device has room for.
    ///
    /// Of a closed loop the others arrive at once, and wait; an open loop has arrivals of its own.
    pub fn new(depth: usize, device_depth: usize, closed_since: Option<Nanos>) -> Self {
        let places = depth.min(device_depth);
        let nobody = Passenger { arrival: TAKEN, blocks: 0, op: Op::Flush };
        let waiting = closed_since
            .filter(|_| depth > places)
            .map(|start| std::iter::repeat_n(start, depth - places).collect());
        Self {
            free: (0..places as u64).rev().collect(),
            passengers: vec![nobody; places],
            held: waiting.map(|arrivals| Box::new(Held { arrivals, unborn: places })),
        }
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.passengers.len()
    }

    /// The place of the next request.
    #[inline]
    pub fn next_place(&self) -> u64 {
        *self.free.last().expect("has_room was asked")
    }

    /// Takes that place for a request, which arrived then, or as a closed loop has it.
    #[inline]
    pub fn board(&mut self, request: &Request, arrival: Option<Nanos>) {
        let place = self.free.pop();
        assert!(place == Some(request.id), "a request takes the next place");
        let held = self.held.as_mut().and_then(|held| held.board());
        // In place: to read a copy in wider words than it was written in stalls the processor.
        let passenger = &mut self.passengers[request.id as usize];
        passenger.arrival = arrival.or(held).unwrap_or(TAKEN);
        passenger.blocks = request.blocks;
        passenger.op = request.op;
    }

    /// Takes a request back; returns what it was, with its arrival.
    #[inline]
    pub fn land(&mut self, completion: &Completion) -> Passenger {
        self.free.push(completion.id);
        if let Some(held) = &mut self.held {
            held.land(completion.completed);
        }
        let Passenger { arrival, blocks, op } = self.passengers[completion.id as usize];
        let arrival = if arrival == TAKEN { completion.submitted } else { arrival };
        Passenger { arrival, blocks, op }
    }
}

impl Held {
    /// When the request that takes a place arrived, where it had to wait for one.
    fn board(&mut self) -> Option<Nanos> {
        if self.unborn > 0 {
            self.unborn -= 1;
            return None;
        }
        self.arrivals.pop_front()
    }

    /// Another request arrives when one is done.
    fn land(&mut self, completed: Nanos) {
        if self.arrivals.is_empty() {
            self.unborn += 1;
        } else {
            self.arrivals.push_back(completed);
        }
    }
}
