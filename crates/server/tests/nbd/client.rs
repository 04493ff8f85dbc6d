//! An NBD client for tests, which can also send invalid messages.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub use ssdlab_testing::nbd::{
    CMD_BLOCK_STATUS, CMD_DISC, CMD_FLUSH, CMD_READ, CMD_TRIM, CMD_WRITE, CMD_WRITE_ZEROES,
    go_data, meta_context_data, number,
};
use ssdlab_testing::nbd::{
    OPT_GO, OPT_STRUCTURED_REPLY, OPTION_REPLY_MAGIC, REP_ACK, Request, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC, option as option_message,
};

/// Command flags.
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const REQ_ONE: u16 = 8;

/// A server that hangs fails the test.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A reply to an option: its type and its data.
pub type OptionReply = (u32, Vec<u8>);

/// A reply to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    pub errno: u32,
    pub data: Vec<u8>,
}

/// A connection.
pub struct Client {
    pub stream: UnixStream,
    structured: bool,
}

impl Client {
    /// Connects and completes the handshake, up to the options.
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        let mut client = Self::over(stream);
        let hello = client.receive(18);
        assert_eq!(&hello[..16], b"NBDMAGICIHAVEOPT");
        client.stream.write_all(&3_u32.to_be_bytes()).unwrap();
        client
    }

    /// A client that has sent nothing yet.
    pub fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, structured: false }
    }

    /// Connects and selects the export (`NBD_OPT_GO`), with simple or structured replies.
    pub fn go(socket: &Path, structured: bool) -> Self {
        let mut client = Self::connect(socket);
        if structured {
            assert_eq!(client.option(OPT_STRUCTURED_REPLY, b"").last().unwrap().0, REP_ACK);
            client.structured = true;
        }
        assert_eq!(client.option(OPT_GO, &go_data(b"toy")).last().unwrap().0, REP_ACK);
        client
    }

    /// Sends an option and receives all replies.
    pub fn option(&mut self, option: u32, data: &[u8]) -> Vec<OptionReply> {
        self.stream.write_all(&option_message(option, data)).unwrap();
        let mut replies = Vec::new();
        loop {
            let head = self.receive(20);
            assert_eq!(number(&head[..8]), OPTION_REPLY_MAGIC);
            assert_eq!(number(&head[8..12]), u64::from(option));
            let (kind, length) = (number(&head[12..16]) as u32, number(&head[16..]) as usize);
            let data = self.receive(length);
            replies.push((kind, data));
            if kind == REP_ACK || kind >> 31 == 1 {
                return replies;
            }
        }
    }

    /// Sends a request without waiting for the reply.
    pub fn send(&mut self, kind: (u16, u16), cookie: u64, range: (u64, u32), data: &[u8]) {
        self.stream.write_all(&request(kind, cookie, range, data)).unwrap();
    }

    /// Sends a request and receives its reply.
    pub fn request(&mut self, kind: (u16, u16), range: (u64, u32), data: &[u8]) -> Reply {
        self.send(kind, 7, range, data);
        let expected = if kind.0 == CMD_READ { range.1 as usize } else { 0 };
        let reply = self.reply(expected);
        assert_eq!(reply.cookie, 7);
        reply
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
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }

    pub fn receive(&mut self, count: usize) -> Vec<u8> {
        self.try_receive(count).unwrap()
    }

    fn try_receive(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The wire format of a request. `kind` is the command with its flags.
pub fn request(kind: (u16, u16), cookie: u64, range: (u64, u32), data: &[u8]) -> Vec<u8> {
    let ((kind, flags), (offset, length)) = (kind, range);
    [&Request { flags, kind, cookie, offset, length }.bytes()[..], data].concat()
}
