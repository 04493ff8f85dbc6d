//! Admin and I/O commands of a controller without a transport.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ssdlab_nvme::{
    Completion, Controller, ControllerParameters, ControllerType, Identity, Subsystem,
};

use super::memory::{self, Memory};
use crate::harness::Setup;
use ssdlab_testing::nvme::{CC, CC_ENABLE, Entry, IDENTIFY, u32_at};

const SQE_BYTES: usize = 64;
const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 4420);
const IDENTIFY_BYTES: usize = 4096;
/// Bits of the byte before an entry: it goes to the I/O queue; it sets a property.
const IO: u8 = 1;
const PROPERTY: u8 = 2;

/// Submission queue entries of 64 bytes, each after a byte that says where it goes, and before the
/// data that it sends. Bit 5 of the setup makes the controller a discovery controller, and bit 6
/// gives it an address.
pub fn command(input: &[u8]) {
    let Some((setup, mut rest)) = Setup::parse(input) else { return };
    let engine = Arc::new(setup.engine());
    let epoch = engine.power().epoch().expect("the power is on");
    let subsystem = Arc::new(Subsystem::new(engine, Identity::new("a toy", "fuzz")));
    let parameters = ControllerParameters {
        cntrltype: if setup.has(5) { ControllerType::Discovery } else { ControllerType::Io },
        address: setup.has(6).then(|| SocketAddr::from(ADDRESS)),
        hostid: [0; 16],
        kato: Duration::ZERO,
        epoch,
    };
    let controller = Controller::new(&subsystem, parameters).expect("a controller ID is free");
    controller.set_property(CC, CC_ENABLE).expect("the controller can be enabled");
    while let Some((queue, after)) = rest.split_first() {
        let Some((entry, after)) = after.split_first_chunk::<SQE_BYTES>() else { break };
        rest = submit(&controller, *queue, *entry, after);
        let _ = controller.next_event();
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
    let length = u32_at(&entry, 32) as usize;
    let sends = entry[0] & 3 == 1;
    // A transport submits a command when all of its data has arrived.
    let (sent, after) = rest.split_at(if sends { length.min(rest.len()) } else { 0 });
    let mut data = if sends { Memory::with(sent.to_vec()) } else { Memory::new(length) };
    if sends {
        entry[32..36].copy_from_slice(&(sent.len() as u32).to_le_bytes());
    }
    if queue & PROPERTY != 0 {
        let value = entry[48..56].try_into().expect("eight bytes");
        let _ = controller.set_property(CC, u64::from_le_bytes(value));
        let _ = controller.property(u32::from(entry[44]));
    } else if queue & IO != 0 {
        memory::io(controller, Entry(entry), &mut data);
    } else {
        memory::admin(controller, Entry(entry), &mut data);
    }
    after
}

fn check_alive(controller: &Controller) {
    for value in [0, CC_ENABLE] {
        controller.set_property(CC, value).expect("the controller can be reset");
    }
    let entry = Entry::new(IDENTIFY).cdw(10, 1);
    let mut data = Memory::new(IDENTIFY_BYTES);
    let completion = memory::admin(controller, entry, &mut data);
    assert_eq!(completion, Some(Completion::SUCCESS));
    assert_eq!(data.received.len(), IDENTIFY_BYTES);
}
