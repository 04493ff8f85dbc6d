//! NBD messages of a client. Numbers are big-endian.
#![expect(missing_docs, reason = "the constants have the names of the protocol's specification")]

mod client;

pub use client::{Client, OptionReply, Reply};

pub const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

pub const OPT_EXPORT_NAME: u32 = 1;
pub const OPT_ABORT: u32 = 2;
pub const OPT_GO: u32 = 7;
pub const OPT_STRUCTURED_REPLY: u32 = 8;
pub const OPT_SET_META_CONTEXT: u32 = 10;
pub const REP_ACK: u32 = 1;

pub const CMD_READ: u16 = 0;
pub const CMD_WRITE: u16 = 1;
pub const CMD_DISC: u16 = 2;
pub const CMD_FLUSH: u16 = 3;
pub const CMD_TRIM: u16 = 4;
pub const CMD_WRITE_ZEROES: u16 = 6;
pub const CMD_BLOCK_STATUS: u16 = 7;

/// Command flags.
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const REQ_ONE: u16 = 8;

/// Length of a request without its payload.
pub const REQUEST_BYTES: usize = 28;

/// A request without its payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    pub flags: u16,
    pub kind: u16,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
}

impl Request {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(self.offset.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes
    }
}

/// The wire format of a request with its payload. `kind` is the command with its flags.
pub fn request(kind: (u16, u16), cookie: u64, range: (u64, u32), data: &[u8]) -> Vec<u8> {
    let ((kind, flags), (offset, length)) = (kind, range);
    [&Request { flags, kind, cookie, offset, length }.bytes()[..], data].concat()
}

/// An option of the negotiation.
pub fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    [OPTION_MAGIC, &option.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

/// The data of GO or INFO for an export, without information requests.
pub fn go_data(export: &[u8]) -> Vec<u8> {
    [&(export.len() as u32).to_be_bytes(), export, &0_u16.to_be_bytes()].concat()
}

/// The data of `LIST_META_CONTEXT` or `SET_META_CONTEXT`.
pub fn meta_context_data(export: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [&(export.len() as u32).to_be_bytes(), export].concat();
    bytes.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        bytes.extend((query.len() as u32).to_be_bytes());
        bytes.extend(*query);
    }
    bytes
}

/// A big-endian number of up to eight bytes.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
