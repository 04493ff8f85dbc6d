//! Admin and I/O commands, submitted to a controller without a transport.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ssdlab_nvme::{Controller, HostData, Identity, Kind, Outcome, Status, Submission, Subsystem};

use crate::harness::Setup;
use ssdlab_testing::nvme::{CC, CC_ENABLE, Entry, IDENTIFY, u32_at};

const SQE_BYTES: usize = 64;
const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 4420);
const IDENTIFY_BYTES: usize = 4096;
/// Bits of the byte before an entry: submit it to the I/O queue; use it to set and get properties.
const IO: u8 = 1;
const PROPERTY: u8 = 2;

/// The data buffer of a command in host memory.
struct Memory<'a> {
    room: usize,
    sent: &'a [u8],
    received: usize,
}

impl HostData for Memory<'_> {
    fn room(&self) -> usize {
        self.room
    }

    fn sent(&self) -> &[u8] {
        self.sent
    }

    fn give(&mut self, bytes: &[u8]) {
        self.received += bytes.len();
        assert!(self.received <= self.room, "more data than the host has room for");
    }
}

/// Submission queue entries of 64 bytes. A byte before each entry selects its use; the data that
/// it sends follows it. With bit 5 of the setup the controller is a discovery controller.
pub fn command(input: &[u8]) {
    let Some((setup, mut rest)) = Setup::parse(input) else { return };
    let engine = Arc::new(setup.engine());
    let epoch = engine.power().epoch().expect("the power is on");
    let subsystem = Arc::new(Subsystem::new(engine, Identity::new("a toy", "fuzz")));
    let kind = if setup.has(5) { Kind::Discovery } else { Kind::Drive };
    let role = (kind, setup.has(6).then(|| SocketAddr::from(ADDRESS)));
    let controller = Controller::new(&subsystem, role, [0; 16], Duration::ZERO, epoch)
        .expect("a controller number is free");
    controller.set_property(CC, CC_ENABLE).expect("the controller can be enabled");
    while let Some((queue, after)) = rest.split_first() {
        let Some((entry, after)) = after.split_first_chunk::<SQE_BYTES>() else { break };
        rest = submit(&controller, *queue, *entry, after);
        let _ = controller.event();
    }
    check_alive(&controller);
}

/// Submits an entry; returns the input after the data that it sends.
fn submit<'a>(
    controller: &Controller,
    queue: u8,
    mut entry: [u8; SQE_BYTES],
    rest: &'a [u8],
) -> &'a [u8] {
    let room = u32_at(&entry, 32) as usize;
    let sends = entry[0] & 3 == 1;
    // A transport would wait for the rest of the data.
    let (sent, after) = rest.split_at(if sends { room.min(rest.len()) } else { 0 });
    if sends {
        entry[32..36].copy_from_slice(&(sent.len() as u32).to_le_bytes());
    }
    let submission = Submission::new(entry);
    let mut data = Memory { room: if sends { sent.len() } else { room }, sent, received: 0 };
    if queue & PROPERTY != 0 {
        let value = entry[48..56].try_into().expect("eight bytes");
        let _ = controller.set_property(CC, u64::from_le_bytes(value));
        let _ = controller.property(u32::from(entry[44]));
    } else if queue & IO != 0 {
        controller.io(1, &submission, &mut data).expect("the power is on");
    } else {
        controller.admin(&submission, &mut data).expect("the power is on");
    }
    after
}

fn check_alive(controller: &Controller) {
    for value in [0, CC_ENABLE] {
        controller.set_property(CC, value).expect("the controller can be reset");
    }
    let entry = Entry::new(IDENTIFY).cdw(10, 1);
    let mut data = Memory { room: IDENTIFY_BYTES, sent: &[], received: 0 };
    let outcome = controller.admin(&Submission::new(entry.0), &mut data).expect("the power is on");
    let Outcome::Ended(completion) = outcome else { panic!("Identify does not complete") };
    assert!(completion.status == Status::SUCCESS && data.received == IDENTIFY_BYTES);
}
