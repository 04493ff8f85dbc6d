//! `NVMe` submission queue entries, and the PDUs of an `NVMe`/TCP host.
//!
//! The numbers are written from the specifications, not taken from the crates under test, so that
//! a wrong number there fails a test.
#![expect(missing_docs, reason = "the constants have the names of the specifications")]

mod host;

pub use host::{Completion, Host, Pdu, host_data};

pub const FLUSH: u8 = 0x00;
pub const WRITE: u8 = 0x01;
pub const READ: u8 = 0x02;
pub const COMPARE: u8 = 0x05;
pub const WRITE_ZEROES: u8 = 0x08;
pub const DATASET_MANAGEMENT: u8 = 0x09;
pub const VERIFY: u8 = 0x0c;
pub const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
pub const COPY: u8 = 0x19;
pub const IO_MANAGEMENT_SEND: u8 = 0x1d;

pub const GET_LOG_PAGE: u8 = 0x02;
pub const IDENTIFY: u8 = 0x06;
pub const ABORT: u8 = 0x08;
pub const SET_FEATURES: u8 = 0x09;
pub const GET_FEATURES: u8 = 0x0a;
pub const ASYNC_EVENT_REQUEST: u8 = 0x0c;
pub const NAMESPACE_MANAGEMENT: u8 = 0x0d;
pub const NAMESPACE_ATTACHMENT: u8 = 0x15;
pub const KEEP_ALIVE: u8 = 0x18;
pub const FORMAT_NVM: u8 = 0x80;
pub const SANITIZE: u8 = 0x84;
pub const GET_LBA_STATUS: u8 = 0x86;

pub const FABRICS: u8 = 0x7f;
/// Fabrics command types.
pub const PROPERTY_SET: u8 = 0x00;
pub const CONNECT: u8 = 0x01;
pub const PROPERTY_GET: u8 = 0x04;

/// Status codes with their types, without Do Not Retry.
pub const INVALID_OPCODE: u16 = 0x01;
pub const INVALID_FIELD: u16 = 0x02;
pub const COMMAND_SEQUENCE_ERROR: u16 = 0x0c;
pub const TRANSIENT_TRANSPORT_ERROR: u16 = 0x22;
pub const CONNECT_INVALID_PARAMETERS: u16 = 0x182;

/// The qualified name of the discovery subsystem.
pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Offset of the property CC, and its value that enables a controller.
pub const CC: u32 = 0x14;
pub const CC_ENABLE: u64 = 0x0046_0001;
/// The controller identifier in a Connect command that requests a new controller.
pub const NEW_CONTROLLER: u16 = 0xffff;

/// SGL descriptor types: data in the capsule, and data in separate PDUs.
pub const SGL_IN_CAPSULE: u8 = 0x01;
pub const SGL_TRANSPORT: u8 = 0x5a;

/// PDU types.
pub const ICRESP: u8 = 0x01;
pub const H2C_TERM_REQ: u8 = 0x02;
pub const C2H_TERM_REQ: u8 = 0x03;
pub const CAPSULE_CMD: u8 = 0x04;
pub const CAPSULE_RESP: u8 = 0x05;
pub const H2C_DATA: u8 = 0x06;
pub const C2H_DATA: u8 = 0x07;
pub const R2T: u8 = 0x09;
/// PDU flags: HDGSTF, DDGSTF, `LAST_PDU`, and SUCCESS.
pub const HEADER_DIGEST: u8 = 1;
pub const DATA_DIGEST: u8 = 2;
pub const LAST_PDU: u8 = 4;
pub const SUCCESS: u8 = 8;

/// Length of `ICReq` and `ICResp`.
pub const ICREQ_BYTES: usize = 128;
/// Length of the data of a Connect command.
pub const CONNECT_BYTES: usize = 1024;

/// A submission queue entry under construction.
#[derive(Clone, Copy)]
#[must_use]
pub struct Entry(pub [u8; 64]);

impl Entry {
    pub fn new(opcode: u8) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        Self(bytes)
    }

    /// A command on logical blocks of namespace 1.
    pub fn on(opcode: u8, slba: u64, blocks: u32) -> Self {
        Self::new(opcode).nsid(1).cdw64(10, slba).cdw(12, blocks - 1)
    }

    pub fn fabrics(command_type: u8) -> Self {
        let mut entry = Self::new(FABRICS);
        entry.0[4] = command_type;
        entry
    }

    /// A Connect command for a queue of 128 entries.
    pub fn connect(queue: u16) -> Self {
        Self::fabrics(CONNECT).cdw(10, u32::from(queue) << 16).cdw(11, 127)
    }

    pub fn set_property(offset: u32, value: u64) -> Self {
        Self::fabrics(PROPERTY_SET).cdw(11, offset).cdw64(12, value)
    }

    pub fn cid(mut self, cid: u16) -> Self {
        self.0[2..4].copy_from_slice(&cid.to_le_bytes());
        self
    }

    pub fn nsid(self, nsid: u32) -> Self {
        self.cdw(1, nsid)
    }

    /// Sets bits of a command dword.
    pub fn cdw(mut self, number: usize, value: u32) -> Self {
        for (at, byte) in value.to_le_bytes().into_iter().enumerate() {
            self.0[4 * number + at] |= byte;
        }
        self
    }

    /// Sets bits of two command dwords.
    pub fn cdw64(self, number: usize, value: u64) -> Self {
        self.cdw(number, value as u32).cdw(number + 1, (value >> 32) as u32)
    }

    /// Sets the SGL descriptor of the data.
    pub fn data(mut self, bytes: usize, descriptor_type: u8) -> Self {
        self.0[39] = descriptor_type;
        self.cdw(8, bytes as u32)
    }
}

/// The first PDU of a connection.
pub fn icreq(digests: u8) -> Vec<u8> {
    let mut pdu = vec![0; ICREQ_BYTES];
    (pdu[2], pdu[4], pdu[11]) = (ICREQ_BYTES as u8, ICREQ_BYTES as u8, digests);
    pdu
}

/// The data of a Connect command. `host` fills the host identifier.
pub fn connect_data(subsystem: &str, controller: u16, host: u8) -> Vec<u8> {
    let mut data = vec![0; CONNECT_BYTES];
    data[..16].fill(host);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
    data[512..520].copy_from_slice(b"nqn.host");
    data
}

/// A PDU with correct lengths and digests. `header` is without its first eight bytes, the common
/// header. A PDU without data has no data digest, and `H2CTermReq` has no digest.
pub fn pdu(pdu_type: u8, flags: u8, header: &[u8], data: &[u8], digests: u8) -> Vec<u8> {
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

pub fn capsule(entry: Entry, data: &[u8], digests: u8) -> Vec<u8> {
    pdu(CAPSULE_CMD, 0, &entry.0, data, digests)
}

/// A little-endian number of up to eight bytes.
pub fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// A little-endian number of two bytes.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    number(bytes, at, 2) as u16
}

/// A little-endian number of four bytes.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    number(bytes, at, 4) as u32
}
