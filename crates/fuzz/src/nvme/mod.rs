//! `NVMe`: PDUs of a TCP connection, and commands of a controller without a transport.

mod command;
mod host;
#[path = "../../../nvme/tests/controller/memory.rs"]
mod memory;
mod replies;

pub use command::command;

use std::collections::BTreeMap;

use crate::harness::{Client, Protocol, Setup};
use crate::nbd::check_alive;
use host::{connect, enable, repaired};
use replies::check;
use ssdlab_testing::nvme::{CAPSULE_CMD, ICREQ_BYTES, icreq, u16_at, u32_at};

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
