//! An NBD client and an `NVMe`/TCP host that return errors: any call of the server may fail.

use std::io;

use ssdlab_testing::nbd::{CMD_FLUSH, CMD_READ, CMD_WRITE, Client};
use ssdlab_testing::nvme::{
    CC, CC_ENABLE, Completion, Entry, FLUSH, Host, NEW_CONTROLLER, READ, SGL_TRANSPORT, WRITE,
    host_data,
};

use crate::Connection;
use crate::test_server::TestServer;

const BLOCK: usize = 512;
/// Longest transfer of a command.
const TRANSFER_MAX: usize = 256 << 10;

/// An admin queue and an I/O queue.
struct Queues {
    _admin: Host,
    io: Host,
}

/// Connects an admin queue and an I/O queue.
pub fn connect_nvme(server: &TestServer) -> io::Result<Box<dyn Connection>> {
    let mut admin = Host::connect(server.address, 0)?;
    let data = host_data(&server.name, NEW_CONTROLLER);
    let connected = succeeded(admin.try_command_out(Entry::connect(0), &data)?)?;
    succeeded(admin.try_command(Entry::set_property(CC, CC_ENABLE))?)?;
    let mut io = Host::connect(server.address, 0)?;
    let data = host_data(&server.name, connected.result as u16);
    succeeded(io.try_command_out(Entry::connect(1), &data)?)?;
    Ok(Box::new(Queues { _admin: admin, io }))
}

fn succeeded(completion: Completion) -> io::Result<Completion> {
    if completion.status == 0 { Ok(completion) } else { Err(io::Error::other("a failed command")) }
}

fn on_blocks(opcode: u8, offset: u64, bytes: usize) -> Entry {
    Entry::on(opcode, offset / BLOCK as u64, (bytes / BLOCK) as u32)
}

impl Connection for Queues {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (part, at) in bytes.chunks(TRANSFER_MAX).zip((offset..).step_by(TRANSFER_MAX)) {
            succeeded(self.io.try_command_out(on_blocks(WRITE, at, part.len()), part)?)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        succeeded(self.io.try_command(Entry::new(FLUSH).nsid(1))?).map(drop)
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::with_capacity(length);
        while read.len() < length {
            let (at, bytes) = (offset + read.len() as u64, (length - read.len()).min(TRANSFER_MAX));
            let entry = on_blocks(READ, at, bytes).data(bytes, SGL_TRANSPORT);
            read.extend(succeeded(self.io.try_command(entry)?)?.data);
        }
        Ok(read)
    }
}

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
