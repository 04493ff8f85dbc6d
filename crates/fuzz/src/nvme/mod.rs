//! `NVMe`: PDUs of a TCP connection, and commands of a controller without a transport.

mod command;
#[path = "../../../nvme/tests/controller/memory.rs"]
mod memory;
mod replies;

pub use command::command;

use std::collections::BTreeMap;

use crate::harness::{Client, Protocol, Setup};
use crate::nbd::check_alive;
use replies::check;
use ssdlab_testing::nvme::{
    self, CAPSULE_CMD, CC, CC_ENABLE, Entry, H2C_DATA, H2C_TERM_REQ, ICREQ_BYTES, NEW_CONTROLLER,
    SGL_IN_CAPSULE, capsule, connect_data, icreq, u16_at, u32_at,
};

/// The identifier of the first controller of a target.
const FIRST_CONTROLLER: u16 = 1;

/// PDUs of a connection. The first byte after the setup selects the digests. With bit 5 of the
/// setup the connection is an I/O queue; with bit 7 the host must authenticate, which it never
/// does. With bit 6 the input is sent unchanged; otherwise it follows a Connect command, and its
/// lengths and digests are repaired.
pub fn pdu(input: &[u8]) {
    let Some((setup, rest)) = Setup::parse(input) else { return };
    let Some((first, rest)) = rest.split_first() else { return };
    let (digests, is_io) = (first & 3, setup.has(5));
    let server = setup.server(setup.has(7));
    let name = server.nvme_name();
    let mut admin = None;
    let sent = if setup.has(6) {
        rest.to_vec()
    } else if is_io {
        let client = admin.insert(Client::connect(&server, Protocol::NvmeTcp));
        client.send(&[icreq(0), connect(name, 0, 0), enable(0)].concat());
        client.receive(ICREQ_BYTES + 2 * 24);
        [icreq(digests), connect(name, 1, digests), repaired(rest, digests)].concat()
    } else {
        let opening = [icreq(digests), connect(name, 0, digests), enable(digests)].concat();
        [opening, repaired(rest, digests)].concat()
    };
    let replies = server.exchange(Protocol::NvmeTcp, &sent);
    if replies.is_complete {
        check(&count_commands(&sent), &replies.bytes);
    }
    drop(admin.map(Client::finish));
    check_alive(&server);
}

/// Counts the command capsules of a host by command identifier (CID).
fn count_commands(mut sent: &[u8]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    while sent.len() >= 8 {
        let length = u32_at(sent, 4) as usize;
        if length < 8 || length > sent.len() {
            break;
        }
        if sent[0] == CAPSULE_CMD && length >= 72 {
            *counts.entry(u16_at(sent, 10)).or_default() += 1;
        }
        sent = &sent[length..];
    }
    counts
}

/// A Connect command: queue 0 of a new controller, or an I/O queue of the first controller.
fn connect(name: &str, queue: u16, digests: u8) -> Vec<u8> {
    let controller = if queue == 0 { NEW_CONTROLLER } else { FIRST_CONTROLLER };
    let data = connect_data(name, controller, 0);
    let entry = Entry::connect(queue).cid(0xff).data(data.len(), SGL_IN_CAPSULE);
    capsule(entry, &data, digests)
}

/// A Property Set command that enables the controller of an admin queue.
fn enable(digests: u8) -> Vec<u8> {
    capsule(Entry::set_property(CC, CC_ENABLE).cid(0xfe), &[], digests)
}

/// The PDUs of `input`, which have no digests, with correct lengths and digests.
fn repaired(input: &[u8], digests: u8) -> Vec<u8> {
    let (mut rest, mut out) = (input, Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let (pdu_type, header_bytes) = match head[0] {
            H2C_TERM_REQ | H2C_DATA => (head[0], 16),
            _ => (CAPSULE_CMD, 64),
        };
        let Some((header, after)) = after.split_at_checked(header_bytes) else { break };
        let length = u32_at(head, 4) as usize;
        let data_bytes = length.saturating_sub(8 + header_bytes).min(after.len());
        let (data, after) = after.split_at(data_bytes);
        let mut header = header.to_vec();
        if pdu_type == H2C_DATA {
            header[8..12].copy_from_slice(&(data_bytes as u32).to_le_bytes());
        }
        out.extend(nvme::pdu(pdu_type, head[1] & 0b1100, &header, data, digests));
        rest = after;
    }
    out.extend(rest);
    out
}
