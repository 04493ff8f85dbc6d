//! PDUs of a host.

use ssdlab_testing::nvme::{
    CAPSULE_CMD, CC, CC_ENABLE, Entry, H2C_DATA, H2C_TERM_REQ, NEW_CONTROLLER, SGL_IN_CAPSULE,
    capsule, connect_data, pdu, u32_at,
};

/// The identifier of the first controller of a target.
const FIRST_CONTROLLER: u16 = 1;

/// A Connect command: queue 0 of a new controller, or an I/O queue of the first controller.
pub fn connect(name: &str, queue: u16, digests: u8) -> Vec<u8> {
    let controller = if queue == 0 { NEW_CONTROLLER } else { FIRST_CONTROLLER };
    let data = connect_data(name, controller, 0);
    let entry = Entry::connect(queue).cid(0xff).data(data.len(), SGL_IN_CAPSULE);
    capsule(entry, &data, digests)
}

/// A Property Set command that enables the controller of an admin queue.
pub fn enable(digests: u8) -> Vec<u8> {
    capsule(Entry::set_property(CC, CC_ENABLE).cid(0xfe), &[], digests)
}

/// The PDUs of `input`, which have no digests, with correct lengths and digests.
pub fn repaired(input: &[u8], digests: u8) -> Vec<u8> {
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
        out.extend(pdu(pdu_type, head[1] & 0b1100, &header, data, digests));
        rest = after;
    }
    out.extend(rest);
    out
}
