//! An NBD client, which can also send invalid messages, and its messages. Numbers are big-endian.
#![expect(missing_docs, reason = "the constants have the names of the protocol's specification")]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::TIMEOUT;

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

/// A reply to an option: its type and its data.
pub type OptionReply = (u32, Vec<u8>);

/// A reply to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    pub errno: u32,
    pub data: Vec<u8>,
}

/// A connection of a client. `connect`, `go` and what starts with `try` return errors of the
/// connection; all other methods panic.
pub struct Client {
    pub stream: UnixStream,
    structured: bool,
}

impl Client {
    /// Connects and completes the handshake, up to the options.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let mut client = Self::over(UnixStream::connect(socket)?);
        assert_eq!(client.try_receive(18)?[..16], *b"NBDMAGICIHAVEOPT");
        client.stream.write_all(&3_u32.to_be_bytes())?;
        Ok(client)
    }

    /// A client that has sent nothing yet.
    pub fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, structured: false }
    }

    /// Connects and selects the export (`NBD_OPT_GO`), with simple or structured replies.
    pub fn go(socket: &Path, structured: bool) -> io::Result<Self> {
        let mut client = Self::connect(socket)?;
        if structured {
            assert_eq!(client.try_option(OPT_STRUCTURED_REPLY, b"")?, [(REP_ACK, Vec::new())]);
            client.structured = true;
        }
        assert_eq!(client.try_option(OPT_GO, &go_data(b"toy"))?.last().unwrap().0, REP_ACK);
        Ok(client)
    }

    /// Sends an option and receives all replies.
    pub fn option(&mut self, number: u32, data: &[u8]) -> Vec<OptionReply> {
        self.try_option(number, data).unwrap()
    }

    fn try_option(&mut self, sent: u32, data: &[u8]) -> io::Result<Vec<OptionReply>> {
        self.stream.write_all(&option(sent, data))?;
        let mut replies = Vec::new();
        loop {
            let head = self.try_receive(20)?;
            assert_eq!(number(&head[..8]), OPTION_REPLY_MAGIC);
            assert_eq!(number(&head[8..12]), u64::from(sent));
            let (kind, length) = (number(&head[12..16]) as u32, number(&head[16..]) as usize);
            replies.push((kind, self.try_receive(length)?));
            if kind == REP_ACK || kind >> 31 == 1 {
                return Ok(replies);
            }
        }
    }

    /// Sends a request without waiting for the reply. `kind` is the command with its flags.
    pub fn send(&mut self, kind: (u16, u16), cookie: u64, range: (u64, u32), data: &[u8]) {
        self.stream.write_all(&request(kind, cookie, range, data)).unwrap();
    }

    /// Sends a request and receives its reply.
    pub fn request(&mut self, kind: (u16, u16), range: (u64, u32), data: &[u8]) -> Reply {
        self.try_request(kind, range, data).unwrap()
    }

    pub fn try_request(
        &mut self,
        kind: (u16, u16),
        range: (u64, u32),
        data: &[u8],
    ) -> io::Result<Reply> {
        // In two parts, so that the server waits for the payload.
        self.stream.write_all(&request(kind, 7, range, b""))?;
        self.stream.write_all(data)?;
        let reply = self.try_reply(if kind.0 == CMD_READ { range.1 as usize } else { 0 })?;
        assert_eq!(reply.cookie, 7);
        Ok(reply)
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        assert_eq!(self.request((CMD_WRITE, 0), (offset, data.len() as u32), data).errno, 0);
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let reply = self.request((CMD_READ, 0), (offset, length), b"");
        assert_eq!(reply.errno, 0);
        reply.data
    }

    pub fn flush(&mut self) {
        assert_eq!(self.request((CMD_FLUSH, 0), (0, 0), b"").errno, 0);
    }

    /// Receives a reply. A simple reply without error has `data` bytes, unless structured replies
    /// were negotiated.
    pub fn reply(&mut self, data: usize) -> Reply {
        self.try_reply(data).unwrap()
    }

    pub fn try_reply(&mut self, data: usize) -> io::Result<Reply> {
        let magic = number(&self.try_receive(4)?);
        if magic == u64::from(SIMPLE_REPLY_MAGIC) {
            let (errno, cookie) = (number(&self.try_receive(4)?), number(&self.try_receive(8)?));
            let has_data = errno == 0 && !self.structured;
            let data = self.try_receive(if has_data { data } else { 0 })?;
            return Ok(Reply { cookie, errno: errno as u32, data });
        }
        assert_eq!((magic, self.structured), (STRUCTURED_REPLY_MAGIC.into(), true));
        let head = self.try_receive(16)?;
        let (flags, kind, cookie) = (number(&head[..2]), number(&head[2..4]), number(&head[4..12]));
        let body = self.try_receive(number(&head[12..]) as usize)?;
        assert_eq!(flags, 1, "each reply has one chunk");
        let (errno, data) = match kind {
            0 => (0, Vec::new()),
            1 => (0, body[8..].to_vec()),
            5 => (0, body),
            _ => (number(&body[..4]) as u32, Vec::new()),
        };
        Ok(Reply { cookie, errno, data })
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(in_time(self.stream.read(&mut [0; 1])), Ok(0) | Err(_))
    }

    pub fn receive(&mut self, count: usize) -> Vec<u8> {
        self.try_receive(count).unwrap()
    }

    fn try_receive(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        in_time(self.stream.read_exact(&mut bytes))?;
        Ok(bytes)
    }
}

/// The result of a read. Panics after a timeout: a server that says nothing has not disconnected.
fn in_time<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result {
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "no answer within {TIMEOUT:?}");
    }
    result
}
