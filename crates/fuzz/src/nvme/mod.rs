//! `NVMe`: units of a connection over TCP, and commands of a controller without a transport.

mod command;
mod host;
#[path = "../../../nvme/tests/controller/memory.rs"]
mod memory;
mod units;

pub use command::command;

use std::collections::BTreeMap;

use crate::bed::{Line, Setup, check_alive};
use host::{CONNECTION_BYTES, enable, greeting, join, repaired};
use units::check;

/// Units of a connection. The first byte after the setup says which digests the host wants. Bit 5
/// of the setup makes the connection an I/O queue, and 7 demands a secret of the host. With bit 6
/// the input is sent as it is; else it follows a connect, and lengths and digests are repaired.
pub fn pdu(input: &[u8]) {
    let Some((setup, rest)) = Setup::of(input) else { return };
    let Some((first, rest)) = rest.split_first() else { return };
    let (digests, is_io) = (first & 3, setup.has(5));
    let server = setup.server(setup.has(7));
    let name = server.nvme_name();
    let mut admin = None;
    let sent = if setup.has(6) {
        rest.to_vec()
    } else if is_io {
        let line = admin.insert(Line::open(|stream| server.nvme(stream)));
        line.say(&[greeting(0), join(name, 0, 0), enable(0)].concat());
        line.hear(CONNECTION_BYTES + 2 * 24);
        [greeting(digests), join(name, 1, digests), repaired(rest, digests)].concat()
    } else {
        let opening = [greeting(digests), join(name, 0, digests), enable(digests)].concat();
        [opening, repaired(rest, digests)].concat()
    };
    let mut line = Line::open(|stream| server.nvme(stream));
    line.say(&sent);
    let heard = line.finish();
    if heard.is_all {
        check(&commands_in(&sent), &heard.bytes);
    }
    drop(admin.map(Line::finish));
    check_alive(&server);
}

/// How many commands of each id the units of a host carry.
fn commands_in(mut sent: &[u8]) -> BTreeMap<u16, usize> {
    let mut found = BTreeMap::new();
    while let Some(head) = sent.first_chunk::<8>() {
        let whole = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if whole < 8 || whole > sent.len() {
            break;
        }
        if head[0] == host::COMMAND && whole >= 72 {
            *found.entry(u16::from_le_bytes([sent[10], sent[11]])).or_default() += 1;
        }
        sent = &sent[whole..];
    }
    found
}
