//! `Flight`: the places that outstanding requests have, and what waits for the device's queue.

use std::collections::VecDeque;

use ssdlab_device::{Completion, Op, Request};
use ssdlab_time::Nanos;

/// What is remembered of a request that the device has.
#[derive(Clone, Copy)]
pub struct Passenger {
    pub op: Op,
    pub bytes: u64,
    /// When it arrived, where that is not when the device took it.
    arrival: Option<Nanos>,
}

/// The places that outstanding requests have, and the arrivals that wait for the device's queue.
pub struct Flight {
    /// Places, by id, that no request in the device has.
    free: Vec<u64>,
    /// For each place: its request.
    passengers: Vec<Passenger>,
    /// Arrivals of a closed loop that the device had no room for, oldest first.
    held: VecDeque<Nanos>,
    /// Requests that may still arrive without one ending first.
    unborn: usize,
}

impl Flight {
    /// Places for `depth` requests, or for as many as the device has room for.
    ///
    /// Of a closed loop the others arrive at once, and wait; an open loop has arrivals of its own.
    pub fn new(depth: usize, device_depth: usize, closed_since: Option<Nanos>) -> Self {
        let places = depth.min(device_depth);
        let nobody = Passenger { op: Op::Flush, bytes: 0, arrival: None };
        let waiting = closed_since.map(|start| std::iter::repeat_n(start, depth - places));
        Self {
            free: (0..places as u64).rev().collect(),
            passengers: vec![nobody; places],
            held: waiting.into_iter().flatten().collect(),
            unborn: places,
        }
    }

    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.passengers.len()
    }

    /// The place of the next request.
    pub fn next_place(&self) -> u64 {
        *self.free.last().expect("has_room was asked")
    }

    /// Takes that place for a request, which arrived then, or as a closed loop has it.
    #[inline]
    pub fn board(&mut self, request: &Request, arrival: Option<Nanos>) {
        assert_eq!(self.free.pop(), Some(request.id), "a request takes the next place");
        let mut arrival = arrival;
        if self.unborn > 0 {
            self.unborn -= 1;
        } else {
            arrival = arrival.or(self.held.pop_front());
        }
        // In place: to read a copy in wider words than it was written in stalls the processor.
        let passenger = &mut self.passengers[request.id as usize];
        passenger.op = request.op;
        passenger.bytes = request.bytes();
        passenger.arrival = arrival;
    }

    /// Takes a request back; returns what it was and when it arrived.
    #[inline]
    pub fn land(&mut self, completion: &Completion) -> (&Passenger, Nanos) {
        self.free.push(completion.id);
        if self.held.is_empty() {
            self.unborn += 1;
        } else {
            self.held.push_back(completion.completed);
        }
        let passenger = &self.passengers[completion.id as usize];
        (passenger, passenger.arrival.unwrap_or(completion.submitted))
    }
}
