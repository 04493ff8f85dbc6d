//! Requests in the wire format; numbers are big-endian.

const MAGIC: u32 = 0x2560_9513;
const REQUEST_BYTES: usize = 28;
/// The server closes the connection at a write with a longer payload.
const PAYLOAD_MAX: u32 = 64 << 20;
/// Total length of the reads of a repaired input: longer ones only take time.
const READS_MAX: u32 = 4 << 20;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

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
    fn parse(bytes: &[u8]) -> Option<(u32, Self)> {
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
        };
        (bytes.len() >= REQUEST_BYTES).then(|| {
            let request = Self {
                flags: number(4, 6) as u16,
                kind: number(6, 8) as u16,
                cookie: number(8, 16),
                offset: number(16, 24),
                length: number(24, 28) as u32,
            };
            (number(0, 4) as u32, request)
        })
    }

    /// The wire format.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_be_bytes().to_vec();
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(self.offset.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes
    }

    fn payload(&self) -> u32 {
        if self.kind == WRITE { self.length } else { 0 }
    }

    /// The end of the range, exclusive.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length.into())
    }
}

/// The requests of `input`, with correct magic numbers and unique cookies.
pub fn repaired(input: &[u8]) -> Vec<u8> {
    let (mut rest, mut out, mut cookie, mut reads) = (input, Vec::new(), 0, READS_MAX);
    while let Some((_, mut request)) = Request::parse(rest) {
        cookie += 1;
        request.cookie = cookie;
        if request.kind == READ {
            request.length = request.length.min(reads);
            reads -= request.length;
        }
        out.extend(request.bytes());
        rest = &rest[REQUEST_BYTES..];
        let payload = (request.payload() as usize).min(rest.len());
        out.extend(&rest[..payload]);
        rest = &rest[payload..];
    }
    out.extend(rest);
    out
}

/// The requests that the server parses, each with its payload, and whether the connection ends
/// properly: with a disconnect, or after the last byte of a request.
pub fn sent_requests(mut rest: &[u8]) -> (Vec<(Request, &[u8])>, bool) {
    let mut requests = Vec::new();
    while let Some((magic, request)) = Request::parse(rest) {
        if magic != MAGIC {
            return (requests, false);
        }
        if request.kind == DISCONNECT {
            return (requests, true);
        }
        rest = &rest[REQUEST_BYTES..];
        let payload = request.payload();
        if payload > PAYLOAD_MAX || payload as usize > rest.len() {
            return (requests, false);
        }
        let (data, after) = rest.split_at(payload as usize);
        requests.push((request, data));
        rest = after;
    }
    (requests, rest.is_empty())
}
