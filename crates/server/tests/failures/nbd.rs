//! A client of NBD to which any call may fail.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::{Connection, PATIENCE};

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

struct Client(UnixStream);

/// Connects and chooses the export.
pub fn connect(socket: &Path) -> io::Result<Box<dyn Connection>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut [0; 18])?;
    // Flags without the zeros that follow, and the option EXPORT_NAME.
    let option = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &1_u32.to_be_bytes()].concat();
    stream.write_all(&[&option, &3_u32.to_be_bytes()[..], b"toy"].concat())?;
    stream.read_exact(&mut [0; 10])?;
    Ok(Box::new(Client(stream)))
}

impl Client {
    fn ask(&mut self, kind: u16, range: (u64, usize), data: &[u8]) -> io::Result<Vec<u8>> {
        let mut asked = 0x2560_9513_u32.to_be_bytes().to_vec();
        asked.extend(0_u16.to_be_bytes());
        asked.extend(kind.to_be_bytes());
        asked.extend(7_u64.to_be_bytes());
        asked.extend(range.0.to_be_bytes());
        asked.extend((range.1 as u32).to_be_bytes());
        // In two parts, so that the payload is waited for.
        self.0.write_all(&asked)?;
        self.0.write_all(data)?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        if reply[4..8] != [0; 4] {
            return Err(io::Error::other("the server answered with an error"));
        }
        let mut read = vec![0; if kind == READ { range.1 } else { 0 }];
        self.0.read_exact(&mut read)?;
        Ok(read)
    }
}

impl Connection for Client {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.ask(WRITE, (offset, bytes.len()), bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ask(FLUSH, (0, 0), b"").map(drop)
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.ask(READ, (offset, length), b"")
    }
}
