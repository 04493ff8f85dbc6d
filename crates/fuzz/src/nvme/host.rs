//! Units as a host sends them.

pub const CONNECTION_BYTES: usize = 128;
pub const COMMAND: u8 = 4;
const HOST_TERMINATES: u8 = 2;
const DATA_SENT: u8 = 6;
const FABRICS: u8 = 0x7f;
const SET_PROPERTY: u8 = 0;
const CONNECT: u8 = 1;
const CONNECT_BYTES: usize = 1024;
/// The register CC, and the value that enables a controller.
pub const CONFIGURATION: u32 = 0x14;
pub const ENABLE: u64 = 0x0046_0001;
/// The controller of the first host: numbers begin here.
const FIRST: u16 = 1;
const ANY: u16 = 0xffff;

/// The first unit of a connection.
pub fn greeting(digests: u8) -> Vec<u8> {
    let mut unit = vec![0; CONNECTION_BYTES];
    (unit[2], unit[4], unit[11]) = (CONNECTION_BYTES as u8, CONNECTION_BYTES as u8, digests);
    unit
}

/// Makes the connection a queue: 0 of a new controller, another of the first controller.
pub fn join(name: &str, queue: u16, digests: u8) -> Vec<u8> {
    let mut entry = [0; 64];
    (entry[0], entry[2], entry[4]) = (FABRICS, 0xff, CONNECT);
    entry[32..36].copy_from_slice(&(CONNECT_BYTES as u32).to_le_bytes());
    entry[39] = 1;
    entry[42..44].copy_from_slice(&queue.to_le_bytes());
    entry[44] = 127;
    let mut data = vec![0; CONNECT_BYTES];
    let controller = if queue == 0 { ANY } else { FIRST };
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    data[512..520].copy_from_slice(b"nqn.host");
    unit((COMMAND, 0), &entry, &data, digests)
}

/// Enables the controller of an admin queue.
pub fn enable(digests: u8) -> Vec<u8> {
    let mut entry = [0; 64];
    (entry[0], entry[2], entry[4]) = (FABRICS, 0xfe, SET_PROPERTY);
    entry[44..48].copy_from_slice(&CONFIGURATION.to_le_bytes());
    entry[48..56].copy_from_slice(&ENABLE.to_le_bytes());
    unit((COMMAND, 0), &entry, &[], digests)
}

/// A unit: its kind and flags, its header behind the first eight bytes, its data.
fn unit((kind, flags): (u8, u8), header: &[u8], data: &[u8], digests: u8) -> Vec<u8> {
    let has_data = !data.is_empty();
    let digests = match kind {
        HOST_TERMINATES => 0,
        _ if has_data => digests,
        _ => digests & 1,
    };
    let header_bytes = 8 + header.len();
    let data_at = header_bytes + if digests & 1 == 0 { 0 } else { 4 };
    let whole = data_at + data.len() + if digests & 2 == 0 { 0 } else { 4 };
    let mut unit = vec![kind, flags | digests, header_bytes as u8];
    unit.push(if has_data && kind != HOST_TERMINATES { data_at as u8 } else { 0 });
    unit.extend((whole as u32).to_le_bytes());
    unit.extend(header);
    if digests & 1 != 0 {
        unit.extend(crc32c::crc32c(&unit).to_le_bytes());
    }
    unit.extend(data);
    if digests & 2 != 0 {
        unit.extend(crc32c::crc32c(data).to_le_bytes());
    }
    unit
}

/// The same units with lengths and digests that fit. In `input` no unit has a digest.
pub fn repaired(input: &[u8], digests: u8) -> Vec<u8> {
    let (mut rest, mut out) = (input, Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let (kind, header_bytes) = match head[0] {
            HOST_TERMINATES | DATA_SENT => (head[0], 16),
            _ => (COMMAND, 64),
        };
        let Some((header, after)) = after.split_at_checked(header_bytes) else { break };
        let whole = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let data_bytes = whole.saturating_sub(8 + header_bytes).min(after.len());
        let (data, after) = after.split_at(data_bytes);
        let mut header = header.to_vec();
        if kind == DATA_SENT {
            header[8..12].copy_from_slice(&(data_bytes as u32).to_le_bytes());
        }
        out.extend(unit((kind, head[1] & 0b1100), &header, data, digests));
        rest = after;
    }
    out.extend(rest);
    out
}
