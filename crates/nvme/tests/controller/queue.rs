//! Queues in memory: commands go to the controller without a transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store};
use ssdlab_nvme::{
    Completion, Controller, ControllerType, HostData, Identity, Outcome, Sqe, Subsystem,
};

use crate::entry::Entry;
use crate::toy::{CAPACITY, Manner, Toy, UNIT};

/// The property CC, and the value that enables a controller.
pub const CC: u32 = 0x14;
pub const ENABLE: u64 = 0x0046_0001;

/// A host's data buffer.
pub struct Memory {
    pub length: usize,
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
}

impl Memory {
    /// A buffer to receive data.
    pub fn new(length: usize) -> Self {
        Self { length, sent: Vec::new(), received: Vec::new() }
    }

    /// A buffer with data to send.
    pub fn with(sent: Vec<u8>) -> Self {
        Self { length: sent.len(), sent, received: Vec::new() }
    }
}

impl HostData for Memory {
    fn length(&self) -> usize {
        self.length
    }

    fn payload(&self) -> &[u8] {
        &self.sent
    }

    fn send(&mut self, bytes: &[u8]) {
        self.received.extend(bytes);
        assert!(self.received.len() <= self.length, "more data than the host has a buffer for");
    }
}

/// An enabled controller of a toy drive.
pub fn controller(toy: Manner) -> Controller {
    of_type(toy, ControllerType::Io, None)
}

/// An enabled discovery controller.
pub fn discovery_controller(port: Option<SocketAddr>) -> Controller {
    of_type(crate::toy::HONEST, ControllerType::Discovery, port)
}

fn of_type(toy: Manner, kind: ControllerType, port: Option<SocketAddr>) -> Controller {
    let toy = Toy::new(toy);
    let store = Store::in_memory(CAPACITY, UNIT, toy.volatile_units());
    let clock = Clock::start(Pace::None, LatencyCompensation::default());
    let engine = Engine::new(Box::new(toy), store, clock);
    let epoch = engine.epoch().expect("it has power");
    let subsystem = Arc::new(Subsystem::new(Arc::new(engine), Identity::new("a toy", "alone")));
    let made = Controller::new(&subsystem, (kind, port), [7; 16], Duration::ZERO, epoch);
    let controller = made.unwrap();
    controller.set_property(CC, ENABLE).unwrap();
    controller
}

/// Executes an admin command; `None` if it stays outstanding.
pub fn admin(controller: &Controller, entry: Entry, data: &mut Memory) -> Option<Completion> {
    match controller.admin(&Sqe::new(entry.0), data).expect("it has power") {
        Outcome::Completed(completion) => Some(completion),
        Outcome::Outstanding => None,
    }
}

/// Executes an I/O command of queue 1.
pub fn io(controller: &Controller, entry: Entry, data: &mut Memory) -> Completion {
    controller.io(1, &Sqe::new(entry.0), data).expect("it has power").0
}
