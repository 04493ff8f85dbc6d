//! A client that says exactly what a test wants it to say.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const REQ_ONE: u16 = 8;

/// A hang is a failure, not a wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// An answer to an option: its kind and its data.
pub type BlockStatusFn = (u32, Vec<u8>);

/// A reply to a command: what it was for, how it ended, its data.
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
    /// Connects and exchanges greetings.
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        let mut client = Self::over(stream);
        let hello = client.take(18);
        assert_eq!(&hello[..16], b"NBDMAGICIHAVEOPT");
        client.stream.write_all(&3_u32.to_be_bytes()).unwrap();
        client
    }

    /// A client of a stream, which has said nothing yet.
    pub fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, structured: false }
    }

    /// Connects and chooses the export, with simple or structured replies.
    pub fn go(socket: &Path, structured: bool) -> Self {
        let mut client = Self::connect(socket);
        if structured {
            assert_eq!(client.option(8, b"").last().unwrap().0, 1);
            client.structured = true;
        }
        assert_eq!(client.option(7, &go(b"toy")).last().unwrap().0, 1);
        client
    }

    /// Asks an option; all answers, up to the last.
    pub fn option(&mut self, option: u32, data: &[u8]) -> Vec<BlockStatusFn> {
        let mut asked = b"IHAVEOPT".to_vec();
        asked.extend(option.to_be_bytes());
        asked.extend((data.len() as u32).to_be_bytes());
        asked.extend(data);
        self.stream.write_all(&asked).unwrap();
        let mut answers = Vec::new();
        loop {
            let head = self.take(20);
            assert_eq!(number(&head[..8]), 0x0003_e889_0455_65a9);
            assert_eq!(number(&head[8..12]), u64::from(option));
            let (kind, length) = (number(&head[12..16]) as u32, number(&head[16..]) as usize);
            let data = self.take(length);
            answers.push((kind, data));
            if kind == 1 || kind >> 31 == 1 {
                return answers;
            }
        }
    }

    /// Sends a command without waiting.
    pub fn send(&mut self, kind: (u16, u16), cookie: u64, range: (u64, u32), data: &[u8]) {
        self.stream.write_all(&command(kind, cookie, range, data)).unwrap();
    }

    /// Sends a command and takes its reply.
    pub fn ask(&mut self, kind: (u16, u16), range: (u64, u32), data: &[u8]) -> Reply {
        self.send(kind, 7, range, data);
        let expected = if kind.0 == READ { range.1 as usize } else { 0 };
        let reply = self.reply(expected);
        assert_eq!(reply.cookie, 7);
        reply
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        assert_eq!(self.ask((WRITE, 0), (offset, data.len() as u32), data).errno, 0);
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let reply = self.ask((READ, 0), (offset, length), b"");
        assert_eq!(reply.errno, 0);
        reply.data
    }

    pub fn flush(&mut self) {
        assert_eq!(self.ask((FLUSH, 0), (0, 0), b"").errno, 0);
    }

    /// Takes a reply, which has `data` bytes where it is simple and no error. Where structured
    /// replies were agreed on, a simple one has none.
    pub fn reply(&mut self, data: usize) -> Reply {
        self.try_reply(data).unwrap()
    }

    pub fn try_reply(&mut self, data: usize) -> io::Result<Reply> {
        let magic = number(&self.try_take(4)?);
        if magic == 0x6744_6698 {
            let (errno, cookie) = (number(&self.try_take(4)?), number(&self.try_take(8)?));
            let has_data = errno == 0 && !self.structured;
            let data = self.try_take(if has_data { data } else { 0 })?;
            return Ok(Reply { cookie, errno: errno as u32, data });
        }
        assert_eq!((magic, self.structured), (0x668e_33ef, true));
        let head = self.try_take(16)?;
        let (flags, kind, cookie) = (number(&head[..2]), number(&head[2..4]), number(&head[4..12]));
        let body = self.try_take(number(&head[12..]) as usize)?;
        assert_eq!(flags, 1, "one chunk a reply");
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

    pub fn take(&mut self, count: usize) -> Vec<u8> {
        self.try_take(count).unwrap()
    }

    fn try_take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// A command's bytes.
pub fn command(kind: (u16, u16), cookie: u64, range: (u64, u32), data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(kind.1.to_be_bytes());
    bytes.extend(kind.0.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(range.0.to_be_bytes());
    bytes.extend(range.1.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of a GO or INFO for an export, with no further wishes.
pub fn go(name: &[u8]) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes(), name, &0_u16.to_be_bytes()].concat()
}

/// The data of a query of contexts.
pub fn contexts(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [&(name.len() as u32).to_be_bytes(), name].concat();
    bytes.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        bytes.extend((query.len() as u32).to_be_bytes());
        bytes.extend(*query);
    }
    bytes
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
