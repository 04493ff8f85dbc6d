//! PDUs: types, flags, headers and fatal errors, by the names of the NVM Express TCP Transport
//! Specification 1.0 (section 3.6).

use std::mem::offset_of;

use ssdlab_nvme::{Cqe, Sqe, layout};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32};

/// PDU-Type: `ICReq`, `ICResp`, `H2CTermReq`, `C2HTermReq`, `CapsuleCmd`, `CapsuleResp`, `H2CData`,
/// `C2HData`, `R2T`.
pub const IC_REQ: u8 = 0x00;
pub const IC_RESP: u8 = 0x01;
pub const H2C_TERM_REQ: u8 = 0x02;
pub const C2H_TERM_REQ: u8 = 0x03;
pub const CAPSULE_CMD: u8 = 0x04;
pub const CAPSULE_RESP: u8 = 0x05;
pub const H2C_DATA: u8 = 0x06;
pub const C2H_DATA: u8 = 0x07;
pub const READY_TO_TRANSFER: u8 = 0x09;

/// FLAGS, HDGSTF: a header digest follows the header. Also the bit of DGST that enables it.
pub const HDGST: u8 = 1 << 0;
/// FLAGS, DDGSTF: a data digest follows the data. Also the bit of DGST that enables it.
pub const DDGST: u8 = 1 << 1;
/// FLAGS, `LAST_PDU`: the last PDU of a data transfer.
pub const LAST_PDU: u8 = 1 << 2;
/// FLAGS, SUCCESS: the command succeeded, and no `CapsuleResp` follows.
pub const SUCCESS: u8 = 1 << 3;

/// Bytes of a digest, CRC-32C.
pub const DIGEST_BYTES: usize = 4;
/// MAXH2CDATA: the most data in one `H2CData`, in bytes.
pub const MAXH2CDATA: usize = 256 << 10;
/// The most bytes of a received header that a `C2HTermReq` or `H2CTermReq` repeats.
const TERM_REQ_DATA_MAX: usize = 128;

layout! {
    /// CH, the header that all PDUs start with.
    pub struct CommonHeader[8] {
        pub pdu_type: u8,
        pub flags: u8,
        /// HLEN: bytes of the header, without digest.
        pub hlen: u8,
        /// PDO: where the data starts; 0 if the PDU carries none.
        pub pdo: u8,
        /// PLEN: bytes of the PDU.
        pub plen: U32,
    }

    pub struct ICReq[128] {
        pub ch: CommonHeader,
        /// PDU format version.
        pub pfv: U16,
        /// Alignment of data for the host, in dwords, minus one.
        pub hpda: u8,
        /// The digests that the host enables.
        pub dgst: u8,
        /// R2Ts that may be outstanding for a command, minus one.
        pub maxr2t: U32,
        pub reserved: [u8; 112],
    }

    pub struct ICResp[128] {
        pub ch: CommonHeader,
        pub pfv: U16,
        /// Alignment of data for the controller, in dwords, minus one.
        pub cpda: u8,
        /// The digests that are enabled.
        pub dgst: u8,
        pub maxh2cdata: U32,
        pub reserved: [u8; 112],
    }

    /// `H2CTermReq` and `C2HTermReq`: Terminate Connection Request.
    pub struct TermReq[24] {
        pub ch: CommonHeader,
        /// Fatal error status.
        pub fes: U16,
        /// Fatal error information.
        pub fei: U32,
        pub reserved: [u8; 10],
    }

    pub struct CapsuleCmd[72] {
        pub ch: CommonHeader,
        pub sqe: Sqe,
    }

    pub struct CapsuleResp[24] {
        pub ch: CommonHeader,
        pub cqe: Cqe,
    }

    /// `H2CData` and `C2HData`: data of a command.
    pub struct Data[24] {
        pub ch: CommonHeader,
        /// CID of the command.
        pub cccid: U16,
        /// The tag of the R2T; reserved in `C2HData`.
        pub ttag: U16,
        /// Offset of this data in the command's data.
        pub datao: U32,
        /// Bytes of this data.
        pub datal: U32,
        pub reserved: U32,
    }

    /// Ready to Transfer: requests data of a command.
    pub struct R2T[24] {
        pub ch: CommonHeader,
        pub cccid: U16,
        pub ttag: U16,
        /// Offset of the requested data in the command's data.
        pub r2to: U32,
        /// Bytes of the requested data.
        pub r2tl: U32,
        pub reserved: U32,
    }
}

/// Why a connection is terminated: FES, with FEI: the offset of the field, or the received digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatalError {
    InvalidPduHeaderField(usize),
    PduSequenceError,
    HeaderDigestError(u32),
    DataTransferOutOfRange(usize),
    /// Also if there is no memory for the data.
    DataTransferLimitExceeded,
    UnsupportedParameter(usize),
}

impl FatalError {
    pub fn fields(self) -> (u16, u32) {
        match self {
            Self::InvalidPduHeaderField(at) => (1, at as u32),
            Self::PduSequenceError => (2, 0),
            Self::HeaderDigestError(received) => (3, received),
            Self::DataTransferOutOfRange(at) => (4, at as u32),
            Self::DataTransferLimitExceeded => (5, 0),
            Self::UnsupportedParameter(at) => (6, at as u32),
        }
    }
}

impl CommonHeader {
    /// The header at the start of `bytes`, which are at least 8.
    pub fn parse(bytes: &[u8]) -> Self {
        Self::read_from_prefix(bytes).expect("CH has arrived").0
    }

    pub fn plen(self) -> usize {
        self.plen.get() as usize
    }

    /// Where the data starts, and its length.
    pub fn data(self) -> (usize, usize) {
        let (pdo, end) = (usize::from(self.pdo), self.plen() - self.digest_bytes(DDGST));
        if pdo == 0 { (end, 0) } else { (pdo, end - pdo) }
    }

    /// Checks a received header; `dgst` are the enabled digests.
    pub fn check(self, dgst: u8) -> Result<(), FatalError> {
        let invalid = |field| Err(FatalError::InvalidPduHeaderField(field));
        let hlen = match self.pdu_type {
            CAPSULE_CMD => size_of::<CapsuleCmd>(),
            IC_REQ => size_of::<ICReq>(),
            H2C_TERM_REQ => size_of::<TermReq>(),
            H2C_DATA => size_of::<Data>(),
            _ => return invalid(offset_of!(Self, pdu_type)),
        };
        if usize::from(self.hlen) != hlen {
            return invalid(offset_of!(Self, hlen));
        }
        let has_digests = matches!(self.pdu_type, CAPSULE_CMD | H2C_DATA);
        let expected = match (has_digests, self.pdo) {
            (false, _) => 0,
            // A PDU without data has no digest of it.
            (true, 0) => dgst & HDGST,
            (true, _) => dgst,
        };
        if self.flags & (HDGST | DDGST) != expected {
            return invalid(offset_of!(Self, flags));
        }
        let (pdo, header_bytes) = (usize::from(self.pdo), hlen + self.digest_bytes(HDGST));
        if pdo != 0 && pdo < header_bytes {
            return invalid(offset_of!(Self, pdo));
        }
        let least = header_bytes.max(pdo) + self.digest_bytes(DDGST);
        let most = match self.pdu_type {
            H2C_TERM_REQ => hlen + TERM_REQ_DATA_MAX,
            _ if pdo == 0 => least,
            _ => least + MAXH2CDATA,
        };
        if !(least..=most).contains(&self.plen()) {
            return invalid(offset_of!(Self, plen));
        }
        Ok(())
    }

    fn digest_bytes(self, digest: u8) -> usize {
        let without_data = digest == DDGST && self.pdo == 0;
        if self.flags & digest != 0 && !without_data { DIGEST_BYTES } else { 0 }
    }
}
