//! Sqe queue entries by opcode and command dword, independent of the crate's own types.

pub const WRITE: u8 = 0x01;
pub const READ: u8 = 0x02;
pub const COMPARE: u8 = 0x05;
pub const WRITE_ZEROES: u8 = 0x08;
pub const DATASET_MANAGEMENT: u8 = 0x09;
pub const VERIFY: u8 = 0x0c;
pub const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
pub const COPY: u8 = 0x19;
pub const IO_MANAGEMENT_SEND: u8 = 0x1d;
pub const FLUSH: u8 = 0x00;

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

/// A submission queue entry under construction.
#[derive(Clone, Copy)]
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
}
