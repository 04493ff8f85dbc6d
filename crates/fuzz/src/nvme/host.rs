//! PDUs of a host.

/// Length of `ICReq` and `ICResp`.
pub const ICRESP_BYTES: usize = 128;
/// PDU types.
pub const CAPSULE_CMD: u8 = 0x04;
const H2C_TERM_REQ: u8 = 0x02;
const H2C_DATA: u8 = 0x06;
/// PDU flags of the digests: HDGSTF and DDGSTF.
const HEADER_DIGEST: u8 = 1;
const DATA_DIGEST: u8 = 2;
const FABRICS: u8 = 0x7f;
const PROPERTY_SET: u8 = 0x00;
const CONNECT: u8 = 0x01;
const CONNECT_BYTES: usize = 1024;
/// Offset of the register CC, and its value that enables a controller.
pub const CC: u32 = 0x14;
pub const CC_ENABLE: u64 = 0x0046_0001;
/// Controller identifiers (CNTLID): the first that a target assigns, and the request for a new one.
const FIRST_CONTROLLER: u16 = 1;
const NEW_CONTROLLER: u16 = 0xffff;

/// The first PDU of a connection.
pub fn icreq(digests: u8) -> Vec<u8> {
    let mut pdu = vec![0; ICRESP_BYTES];
    (pdu[2], pdu[4], pdu[11]) = (ICRESP_BYTES as u8, ICRESP_BYTES as u8, digests);
    pdu
}

/// A Connect command: queue 0 of a new controller, or an I/O queue of the first controller.
pub fn connect(name: &str, queue: u16, digests: u8) -> Vec<u8> {
    let mut sqe = [0; 64];
    (sqe[0], sqe[2], sqe[4]) = (FABRICS, 0xff, CONNECT);
    sqe[32..36].copy_from_slice(&(CONNECT_BYTES as u32).to_le_bytes());
    sqe[39] = 1;
    sqe[42..44].copy_from_slice(&queue.to_le_bytes());
    sqe[44] = 127;
    let mut data = vec![0; CONNECT_BYTES];
    let controller = if queue == 0 { NEW_CONTROLLER } else { FIRST_CONTROLLER };
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    data[512..520].copy_from_slice(b"nqn.host");
    pdu(CAPSULE_CMD, 0, &sqe, &data, digests)
}

/// A Property Set command that enables the controller of an admin queue.
pub fn enable(digests: u8) -> Vec<u8> {
    let mut sqe = [0; 64];
    (sqe[0], sqe[2], sqe[4]) = (FABRICS, 0xfe, PROPERTY_SET);
    sqe[44..48].copy_from_slice(&CC.to_le_bytes());
    sqe[48..56].copy_from_slice(&CC_ENABLE.to_le_bytes());
    pdu(CAPSULE_CMD, 0, &sqe, &[], digests)
}

/// A PDU of a header (without its first eight bytes) and data, with digests.
fn pdu(pdu_type: u8, flags: u8, header: &[u8], data: &[u8], digests: u8) -> Vec<u8> {
    let has_data = !data.is_empty();
    let digests = match pdu_type {
        H2C_TERM_REQ => 0,
        _ if has_data => digests,
        _ => digests & HEADER_DIGEST,
    };
    let header_bytes = 8 + header.len();
    let data_offset = header_bytes + if digests & HEADER_DIGEST == 0 { 0 } else { 4 };
    let length = data_offset + data.len() + if digests & DATA_DIGEST == 0 { 0 } else { 4 };
    let mut pdu = vec![pdu_type, flags | digests, header_bytes as u8];
    pdu.push(if has_data && pdu_type != H2C_TERM_REQ { data_offset as u8 } else { 0 });
    pdu.extend((length as u32).to_le_bytes());
    pdu.extend(header);
    if digests & HEADER_DIGEST != 0 {
        pdu.extend(crc32c::crc32c(&pdu).to_le_bytes());
    }
    pdu.extend(data);
    if digests & DATA_DIGEST != 0 {
        pdu.extend(crc32c::crc32c(data).to_le_bytes());
    }
    pdu
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
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
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
