//! Numbers of the protocol, and how replies look on the wire.

pub const GREETING: u64 = 0x4e42_444d_4147_4943;
pub const OPTION: u64 = 0x4948_4156_454f_5054;
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST: u32 = 0x2560_9513;
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
pub const CHUNK: u32 = 0x668e_33ef;

pub const FIXED_NEWSTYLE: u16 = 1;
pub const NO_ZEROES: u16 = 2;

pub const OPT_EXPORT_NAME: u32 = 1;
pub const OPT_ABORT: u32 = 2;
pub const OPT_LIST: u32 = 3;
pub const OPT_START_TLS: u32 = 5;
pub const OPT_INFO: u32 = 6;
pub const OPT_GO: u32 = 7;
pub const OPT_STRUCTURED_REPLY: u32 = 8;
pub const OPT_LIST_META_CONTEXT: u32 = 9;
pub const OPT_SET_META_CONTEXT: u32 = 10;

pub const REP_ACK: u32 = 1;
pub const REP_SERVER: u32 = 2;
pub const REP_INFO: u32 = 3;
pub const REP_META_CONTEXT: u32 = 4;
pub const REP_ERR_UNSUP: u32 = 1 << 31 | 1;
pub const REP_ERR_INVALID: u32 = 1 << 31 | 3;
pub const REP_ERR_TLS_REQUIRED: u32 = 1 << 31 | 5;
pub const REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;
pub const REP_ERR_TOO_BIG: u32 = 1 << 31 | 9;

pub const INFO_EXPORT: u16 = 0;
pub const INFO_NAME: u16 = 1;
pub const INFO_DESCRIPTION: u16 = 2;
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Flags of an export: what this server does. Several connections see one drive.
pub const EXPORT_FLAGS: u16 = HAS_FLAGS | FLUSH | FUA | TRIM | WRITE_ZEROES | DF | MULTI | CACHE;
const HAS_FLAGS: u16 = 1;
const FLUSH: u16 = 1 << 2;
const FUA: u16 = 1 << 3;
const TRIM: u16 = 1 << 5;
const WRITE_ZEROES: u16 = 1 << 6;
const DF: u16 = 1 << 7;
const MULTI: u16 = 1 << 8;
const CACHE: u16 = 1 << 10;

pub const CMD_READ: u16 = 0;
pub const CMD_WRITE: u16 = 1;
pub const CMD_DISCONNECT: u16 = 2;
pub const CMD_FLUSH: u16 = 3;
pub const CMD_TRIM: u16 = 4;
pub const CMD_CACHE: u16 = 5;
pub const CMD_WRITE_ZEROES: u16 = 6;
pub const CMD_BLOCK_STATUS: u16 = 7;

pub const CMD_FLAG_FUA: u16 = 1;
pub const CMD_FLAG_NO_HOLE: u16 = 1 << 1;
pub const CMD_FLAG_REQ_ONE: u16 = 1 << 3;
/// Every flag that may be set: durable, no hole, one piece, one extent.
pub const CMD_FLAGS: u16 = 0b1111;

const DONE: u16 = 1;
const CHUNK_NONE: u16 = 0;
const CHUNK_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = 1 << 15 | 1;

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub flags: u16,
    pub kind: u16,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
}

impl Header {
    /// Reads a header; `None` where its magic number is wrong: the stream is lost.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
        };
        (number(0, 4) == u64::from(REQUEST)).then(|| Self {
            flags: number(4, 6) as u16,
            kind: number(6, 8) as u16,
            cookie: number(8, 16),
            offset: number(16, 24),
            length: number(24, 28) as u32,
        })
    }

    /// Bytes that its answer brings.
    pub fn answer(&self) -> usize {
        if self.kind == CMD_READ { self.length as usize } else { 0 }
    }

    /// Whether its answer brings something: to all else a simple reply is allowed, which a client
    /// receives in one piece, where structured replies were agreed on too.
    pub fn answer_has_data(&self) -> bool {
        matches!(self.kind, CMD_READ | CMD_BLOCK_STATUS)
    }

    /// Bytes that follow it.
    pub fn payload(&self) -> usize {
        if self.kind == CMD_WRITE { self.length as usize } else { 0 }
    }
}

/// A reply without data.
pub fn ack(out: &mut Vec<u8>, structured: bool, cookie: u64, ended: Result<(), i32>) {
    match ended {
        Ok(()) if structured => chunk(out, CHUNK_NONE, cookie, 0),
        Err(errno) if structured => {
            chunk(out, CHUNK_ERROR, cookie, 6);
            out.extend((errno as u32).to_be_bytes());
            out.extend(0_u16.to_be_bytes());
        }
        _ => {
            out.extend(SIMPLE_REPLY.to_be_bytes());
            out.extend((ended.err().unwrap_or(0) as u32).to_be_bytes());
            out.extend(cookie.to_be_bytes());
        }
    }
}

/// The head of a read's reply; its bytes follow.
pub fn data_head(out: &mut Vec<u8>, structured: bool, header: &Header) {
    if structured {
        chunk(out, CHUNK_DATA, header.cookie, header.length + 8);
        out.extend(header.offset.to_be_bytes());
    } else {
        ack(out, false, header.cookie, Ok(()));
    }
}

/// The status of extents: length and flags of each.
pub fn block_status(
    out: &mut Vec<u8>,
    cookie: u64,
    context: u32,
    extents: &[(u32, u32)],
    last: bool,
) {
    let length = 4 + 8 * extents.len() as u32;
    chunk_flagged(out, CHUNK_BLOCK_STATUS, cookie, length, last);
    out.extend(context.to_be_bytes());
    for (length, flags) in extents {
        out.extend(length.to_be_bytes());
        out.extend(flags.to_be_bytes());
    }
}

fn chunk(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    chunk_flagged(out, kind, cookie, length, true);
}

fn chunk_flagged(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32, last: bool) {
    out.extend(CHUNK.to_be_bytes());
    out.extend((if last { DONE } else { 0 }).to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(length.to_be_bytes());
}
