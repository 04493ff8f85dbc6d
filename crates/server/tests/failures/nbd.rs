//! An NBD client that returns errors, because any call of the server may fail.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use ssdlab_testing::nbd::{CMD_FLUSH, CMD_READ, CMD_WRITE, OPT_EXPORT_NAME, Request, option};

use crate::{Connection, TIMEOUT};

struct Client(UnixStream);

/// Connects and selects the export.
pub fn connect(socket: &Path) -> io::Result<Box<dyn Connection>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.read_exact(&mut [0; 18])?;
    // The client flags, with NO_ZEROES, and the option EXPORT_NAME.
    let option = option(OPT_EXPORT_NAME, b"toy");
    stream.write_all(&[&3_u32.to_be_bytes()[..], &option].concat())?;
    stream.read_exact(&mut [0; 10])?;
    Ok(Box::new(Client(stream)))
}

impl Client {
    fn request(&mut self, kind: u16, range: (u64, usize), data: &[u8]) -> io::Result<Vec<u8>> {
        let (offset, length) = (range.0, range.1 as u32);
        let request = Request { flags: 0, kind, cookie: 7, offset, length };
        // In two parts, so that the server waits for the payload.
        self.0.write_all(&request.bytes())?;
        self.0.write_all(data)?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        if reply[4..8] != [0; 4] {
            return Err(io::Error::other("the server returned an error"));
        }
        let mut read = vec![0; if kind == CMD_READ { range.1 } else { 0 }];
        self.0.read_exact(&mut read)?;
        Ok(read)
    }
}

impl Connection for Client {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.request(CMD_WRITE, (offset, bytes.len()), bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.request(CMD_FLUSH, (0, 0), b"").map(drop)
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.request(CMD_READ, (offset, length), b"")
    }
}
