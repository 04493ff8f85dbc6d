//! The constants of doc/proto.md by their names there; the layout of requests and replies.

use std::io;

/// The first bytes that a server sends: "NBDMAGIC" in ASCII.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// The first bytes of the reply to an option; doc/proto.md has no name for it.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const NBD_REQUEST_MAGIC: u32 = 0x2560_9513;
const NBD_SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const NBD_STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags; a client's have the same bits (`NBD_FLAG_C_...`).
pub const NBD_FLAG_FIXED_NEWSTYLE: u16 = 1;
pub const NBD_FLAG_NO_ZEROES: u16 = 1 << 1;

pub const NBD_OPT_EXPORT_NAME: u32 = 1;
pub const NBD_OPT_ABORT: u32 = 2;
pub const NBD_OPT_LIST: u32 = 3;
pub const NBD_OPT_STARTTLS: u32 = 5;
pub const NBD_OPT_INFO: u32 = 6;
pub const NBD_OPT_GO: u32 = 7;
pub const NBD_OPT_STRUCTURED_REPLY: u32 = 8;
pub const NBD_OPT_LIST_META_CONTEXT: u32 = 9;
pub const NBD_OPT_SET_META_CONTEXT: u32 = 10;

pub const NBD_REP_ACK: u32 = 1;
pub const NBD_REP_SERVER: u32 = 2;
pub const NBD_REP_INFO: u32 = 3;
pub const NBD_REP_META_CONTEXT: u32 = 4;
pub const NBD_REP_ERR_UNSUP: u32 = 1 << 31 | 1;
pub const NBD_REP_ERR_INVALID: u32 = 1 << 31 | 3;
pub const NBD_REP_ERR_TLS_REQD: u32 = 1 << 31 | 5;
pub const NBD_REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;
pub const NBD_REP_ERR_TOO_BIG: u32 = 1 << 31 | 9;

pub const NBD_INFO_EXPORT: u16 = 0;
pub const NBD_INFO_NAME: u16 = 1;
pub const NBD_INFO_DESCRIPTION: u16 = 2;
pub const NBD_INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flags.
pub const EXPORT_FLAGS: u16 = NBD_FLAG_HAS_FLAGS
    | NBD_FLAG_SEND_FLUSH
    | NBD_FLAG_SEND_FUA
    | NBD_FLAG_SEND_TRIM
    | NBD_FLAG_SEND_WRITE_ZEROES
    | NBD_FLAG_SEND_DF
    | NBD_FLAG_CAN_MULTI_CONN
    | NBD_FLAG_SEND_CACHE;
const NBD_FLAG_HAS_FLAGS: u16 = 1;
const NBD_FLAG_SEND_FLUSH: u16 = 1 << 2;
const NBD_FLAG_SEND_FUA: u16 = 1 << 3;
const NBD_FLAG_SEND_TRIM: u16 = 1 << 5;
const NBD_FLAG_SEND_WRITE_ZEROES: u16 = 1 << 6;
const NBD_FLAG_SEND_DF: u16 = 1 << 7;
const NBD_FLAG_CAN_MULTI_CONN: u16 = 1 << 8;
const NBD_FLAG_SEND_CACHE: u16 = 1 << 10;

pub const NBD_CMD_READ: u16 = 0;
pub const NBD_CMD_WRITE: u16 = 1;
pub const NBD_CMD_DISC: u16 = 2;
pub const NBD_CMD_FLUSH: u16 = 3;
pub const NBD_CMD_TRIM: u16 = 4;
pub const NBD_CMD_CACHE: u16 = 5;
pub const NBD_CMD_WRITE_ZEROES: u16 = 6;
pub const NBD_CMD_BLOCK_STATUS: u16 = 7;

pub const NBD_CMD_FLAG_FUA: u16 = 1;
pub const NBD_CMD_FLAG_NO_HOLE: u16 = 1 << 1;
const NBD_CMD_FLAG_DF: u16 = 1 << 2;
pub const NBD_CMD_FLAG_REQ_ONE: u16 = 1 << 3;
/// The command flags that a request may have.
pub const CMD_FLAGS: u16 =
    NBD_CMD_FLAG_FUA | NBD_CMD_FLAG_NO_HOLE | NBD_CMD_FLAG_DF | NBD_CMD_FLAG_REQ_ONE;

const NBD_REPLY_FLAG_DONE: u16 = 1;
const NBD_REPLY_TYPE_NONE: u16 = 0;
const NBD_REPLY_TYPE_OFFSET_DATA: u16 = 1;
const NBD_REPLY_TYPE_BLOCK_STATUS: u16 = 5;
const NBD_REPLY_TYPE_ERROR: u16 = 1 << 15 | 1;

/// Bytes of a request, without payload.
pub const REQUEST_BYTES: usize = 28;

/// A request, without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub flags: u16,
    /// The type: `NBD_CMD_...`.
    pub command: u16,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
}

impl RequestHeader {
    /// Parses a header; `None` if it does not start with `NBD_REQUEST_MAGIC`.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
        };
        (number(0, 4) == u64::from(NBD_REQUEST_MAGIC)).then(|| Self {
            flags: number(4, 6) as u16,
            command: number(6, 8) as u16,
            cookie: number(8, 16),
            offset: number(16, 24),
            length: number(24, 28) as u32,
        })
    }

    /// Bytes of data in the reply.
    pub fn reply_bytes(&self) -> usize {
        if self.command == NBD_CMD_READ { self.length as usize } else { 0 }
    }

    /// Whether the reply carries data. All others are simple replies, which are allowed even after
    /// `NBD_OPT_STRUCTURED_REPLY`: a client needs only one read call for them.
    pub fn reply_has_data(&self) -> bool {
        matches!(self.command, NBD_CMD_READ | NBD_CMD_BLOCK_STATUS)
    }

    /// Bytes of the payload that follows.
    pub fn payload_bytes(&self) -> usize {
        if self.command == NBD_CMD_WRITE { self.length as usize } else { 0 }
    }
}

/// Adds a reply without data.
pub fn reply(out: &mut Vec<u8>, structured: bool, cookie: u64, result: Result<(), i32>) {
    match result {
        Ok(()) if structured => chunk(out, NBD_REPLY_TYPE_NONE, cookie, 0, true),
        Err(errno) if structured => {
            chunk(out, NBD_REPLY_TYPE_ERROR, cookie, 6, true);
            out.extend((errno as u32).to_be_bytes());
            // No message.
            out.extend(0_u16.to_be_bytes());
        }
        _ => {
            out.extend(NBD_SIMPLE_REPLY_MAGIC.to_be_bytes());
            out.extend((result.err().unwrap_or(0) as u32).to_be_bytes());
            out.extend(cookie.to_be_bytes());
        }
    }
}

/// Adds the header of the reply to a read; the data follows.
pub fn read_reply(out: &mut Vec<u8>, structured: bool, request: &RequestHeader) {
    if structured {
        chunk(out, NBD_REPLY_TYPE_OFFSET_DATA, request.cookie, request.length + 8, true);
        out.extend(request.offset.to_be_bytes());
    } else {
        reply(out, false, request.cookie, Ok(()));
    }
}

/// Adds a chunk of a block status reply; `extents` are lengths and status flags.
pub fn block_status(
    out: &mut Vec<u8>,
    cookie: u64,
    context_id: u32,
    extents: &[(u32, u32)],
    is_last: bool,
) {
    let length = 4 + 8 * extents.len() as u32;
    chunk(out, NBD_REPLY_TYPE_BLOCK_STATUS, cookie, length, is_last);
    out.extend(context_id.to_be_bytes());
    for (length, flags) in extents {
        out.extend(length.to_be_bytes());
        out.extend(flags.to_be_bytes());
    }
}

/// Adds the header of a structured reply chunk.
fn chunk(out: &mut Vec<u8>, reply_type: u16, cookie: u64, length: u32, is_last: bool) {
    out.extend(NBD_STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend((if is_last { NBD_REPLY_FLAG_DONE } else { 0 }).to_be_bytes());
    out.extend(reply_type.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(length.to_be_bytes());
}

/// The error of a client that breaks the protocol.
pub fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
