//! Submission queue entries and completion queue entries.

use zerocopy::little_endian::{U16, U32, U64};

use super::layout;
use super::opcode::{FABRICS, admin, io};
use super::status::Status;

layout! {
    /// A submission queue entry (SQE).
    #[derive(Debug, PartialEq, Eq)]
    pub struct Sqe[64] {
        dwords: [U32; 16],
    }
}

/// Direction of a command's data transfer: bits 1:0 of its opcode, or of FCTYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// The host sends data.
    HostToController,
    /// The host receives data.
    ControllerToHost,
    /// Both directions; no supported command uses this.
    Bidirectional,
}

impl Sqe {
    /// The entry in these bytes.
    pub fn new(bytes: [u8; 64]) -> Self {
        zerocopy::transmute!(bytes)
    }

    /// The opcode.
    pub fn opcode(&self) -> u8 {
        self.cdw(0) as u8
    }

    /// Fused operation (FUSE); 0 for a normal command.
    pub fn fuse(&self) -> u8 {
        (self.cdw(0) >> 8 & 3) as u8
    }

    /// Command identifier (CID).
    pub fn cid(&self) -> u16 {
        (self.cdw(0) >> 16) as u16
    }

    /// Namespace identifier (NSID).
    pub fn nsid(&self) -> u32 {
        self.cdw(1)
    }

    /// Command dword `number`: CDW0 to CDW15.
    pub fn cdw(&self, number: usize) -> u32 {
        self.dwords[number].get()
    }

    /// Command dwords `number` and `number + 1` as one value.
    pub fn cdw64(&self, number: usize) -> u64 {
        u64::from(self.cdw(number)) | u64::from(self.cdw(number + 1)) << 32
    }

    /// Fabrics command type (FCTYPE).
    pub fn fctype(&self) -> u8 {
        self.cdw(1) as u8
    }

    /// Address field of the SGL descriptor; an offset for in-capsule data.
    pub fn sgl_address(&self) -> u64 {
        self.cdw64(6)
    }

    /// Length field of the SGL descriptor, in bytes.
    pub fn sgl_length(&self) -> u32 {
        self.cdw(8)
    }

    /// SGL identifier: descriptor type (bits 7:4) and sub type (bits 3:0).
    pub fn sgl_identifier(&self) -> u8 {
        (self.cdw(9) >> 24) as u8
    }

    /// Bytes that the command transfers: as its own fields say, and at least what the host's SGL
    /// describes if the host sends data. `block_shift` is log2 of the logical block size.
    pub fn transfer_bytes(&self, is_admin: bool, block_shift: u32) -> u64 {
        let dwords = |zeroes_based: u64| (zeroes_based + 1) * 4;
        let bytes = match (is_admin, self.opcode()) {
            (true, admin::GET_LOG_PAGE) => dwords(self.numd()),
            (true, admin::GET_LBA_STATUS) => dwords(self.cdw(12).into()),
            (false, io::READ | io::WRITE | io::COMPARE) => {
                (u64::from(self.cdw(12) & 0xffff) + 1) << block_shift
            }
            (false, io::IO_MANAGEMENT_RECEIVE) => dwords(self.cdw(11).into()),
            _ => 0,
        };
        let sends = self.direction() == Direction::HostToController;
        if sends { bytes.max(self.sgl_length().into()) } else { bytes }
    }

    /// Number of Dwords of Get Log Page, zeroes based: NUMDL (CDW10) and NUMDU (CDW11).
    pub(crate) fn numd(&self) -> u64 {
        u64::from(self.cdw(10) >> 16) | u64::from(self.cdw(11) as u16) << 16
    }

    /// Direction of the data transfer.
    pub fn direction(&self) -> Direction {
        let code = if self.opcode() == FABRICS { self.fctype() } else { self.opcode() };
        match code & 3 {
            0 => Direction::None,
            1 => Direction::HostToController,
            2 => Direction::ControllerToHost,
            _ => Direction::Bidirectional,
        }
    }
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// DW0 (bits 31:0) and DW1 of the completion queue entry.
    pub result: u64,
    /// Status code, type and DNR.
    pub status: Status,
}

layout! {
    /// A completion queue entry (CQE) as Fabrics sends it: without SQID.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Cqe[16] {
        dw0: U64,
        sqhd: U16,
        reserved: U16,
        cid: U16,
        status: U16,
    }
}

impl Completion {
    /// Success without a result.
    pub const SUCCESS: Self = Self { result: 0, status: Status::SUCCESS };

    /// Success with a result in DW0.
    pub fn with_dw0(dw0: u32) -> Self {
        Self { result: dw0.into(), ..Self::SUCCESS }
    }

    /// The completion queue entry of command `cid`; `sqhd` is the submission queue head pointer.
    pub fn cqe(&self, sqhd: u16, cid: u16) -> Cqe {
        Cqe {
            dw0: self.result.into(),
            sqhd: sqhd.into(),
            reserved: U16::ZERO,
            cid: cid.into(),
            status: self.status.field().into(),
        }
    }
}

impl From<Status> for Completion {
    fn from(status: Status) -> Self {
        Self { result: 0, status }
    }
}

/// The data buffer that a command's SGL describes.
pub trait HostData {
    /// Length of the buffer in bytes.
    fn length(&self) -> usize;

    /// Data that the host sent; empty if the command sends none.
    fn payload(&self) -> &[u8];

    /// Appends to the data for the host; at most `length` bytes in all.
    fn send(&mut self, bytes: &[u8]);
}
