//! An NBD client that returns errors, because any call of the server may fail.

use std::io;

use ssdlab_testing::nbd::{CMD_FLUSH, CMD_READ, CMD_WRITE, Client};

use crate::Connection;

fn request(client: &mut Client, kind: u16, range: (u64, u32), data: &[u8]) -> io::Result<Vec<u8>> {
    let reply = client.try_request((kind, 0), range, data)?;
    if reply.errno == 0 { Ok(reply.data) } else { Err(io::Error::other("an error reply")) }
}

impl Connection for Client {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        request(self, CMD_WRITE, (offset, bytes.len() as u32), bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        request(self, CMD_FLUSH, (0, 0), b"").map(drop)
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        request(self, CMD_READ, (offset, length as u32), b"")
    }
}
