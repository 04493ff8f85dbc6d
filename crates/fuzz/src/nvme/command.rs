//! Admin and I/O commands, put to a controller directly.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ssdlab_nvme::{
    Controller, ControllerType, HostData, Identity, Outcome, Sqe, Status, Subsystem,
};

use super::host::{CONFIGURATION, ENABLE};
use crate::bed::Setup;

const ENTRY_BYTES: usize = 64;
const PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 4420);
const IDENTIFY: u8 = 6;
const IDENTIFY_BYTES: usize = 4096;
/// To which queue an entry goes, and that it sets a register, as bits before the entry.
const IO: u8 = 1;
const PROPERTY: u8 = 2;

/// A host's memory.
struct Memory<'a> {
    room: usize,
    sent: &'a [u8],
    given: usize,
}

impl HostData for Memory<'_> {
    fn length(&self) -> usize {
        self.room
    }

    fn payload(&self) -> &[u8] {
        self.sent
    }

    fn send(&mut self, bytes: &[u8]) {
        self.given += bytes.len();
        assert!(self.given <= self.room, "more than the host has room for");
    }
}

/// Sqe queue entries of 64 bytes, each behind a byte that says what it is for, and before
/// the data that it sends. With bit 5 of the setup it is a discovery controller.
pub fn command(input: &[u8]) {
    let Some((setup, mut rest)) = Setup::of(input) else { return };
    let engine = Arc::new(setup.engine());
    let epoch = engine.epoch().expect("it has power");
    let subsystem = Arc::new(Subsystem::new(engine, Identity::new("a toy", "fuzz")));
    let kind = if setup.has(5) { ControllerType::Discovery } else { ControllerType::Io };
    let role = (kind, setup.has(6).then(|| SocketAddr::from(PORT)));
    let controller = Controller::new(&subsystem, role, [0; 16], Duration::ZERO, epoch)
        .expect("a controller number is free");
    controller.set_property(CONFIGURATION, ENABLE).expect("it can be enabled");
    while let Some((queue, after)) = rest.split_first() {
        let Some((entry, after)) = after.split_first_chunk::<ENTRY_BYTES>() else { break };
        rest = submit(&controller, *queue, *entry, after);
        let _ = controller.next_event();
    }
    check_alive(&controller);
}

/// Puts an entry to the controller; returns the input behind the data that it sends.
fn submit<'a>(
    controller: &Controller,
    queue: u8,
    mut entry: [u8; ENTRY_BYTES],
    rest: &'a [u8],
) -> &'a [u8] {
    let room = u32::from_le_bytes([entry[32], entry[33], entry[34], entry[35]]) as usize;
    let sends = entry[0] & 3 == 1;
    // A transport waits until all is there.
    let (sent, after) = rest.split_at(if sends { room.min(rest.len()) } else { 0 });
    if sends {
        entry[32..36].copy_from_slice(&(sent.len() as u32).to_le_bytes());
    }
    let submission = Sqe::new(entry);
    let mut data = Memory { room: if sends { sent.len() } else { room }, sent, given: 0 };
    if queue & PROPERTY != 0 {
        let value = entry[48..56].try_into().expect("eight bytes");
        let _ = controller.set_property(CONFIGURATION, u64::from_le_bytes(value));
        let _ = controller.property(u32::from(entry[44]));
    } else if queue & IO != 0 {
        controller.io(1, &submission, &mut data).expect("it has power");
    } else {
        controller.admin(&submission, &mut data).expect("it has power");
    }
    after
}

fn check_alive(controller: &Controller) {
    for value in [0, ENABLE] {
        controller.set_property(CONFIGURATION, value).expect("it can be reset");
    }
    let mut entry = [0; ENTRY_BYTES];
    (entry[0], entry[40]) = (IDENTIFY, 1);
    let mut data = Memory { room: IDENTIFY_BYTES, sent: &[], given: 0 };
    let outcome = controller.admin(&Sqe::new(entry), &mut data).expect("it has power");
    let Outcome::Completed(completion) = outcome else { panic!("identify waits") };
    assert!(completion.status == Status::SUCCESS && data.given == IDENTIFY_BYTES);
}
