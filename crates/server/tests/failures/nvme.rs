//! An `NVMe`/TCP host with an admin queue and an I/O queue. It returns errors, because any call of
//! the server may fail.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use ssdlab_testing::nvme::{
    C2H_DATA, CAPSULE_RESP, CC, CC_ENABLE, Entry, FLUSH, H2C_DATA, ICREQ_BYTES, LAST_PDU,
    NEW_CONTROLLER, R2T, READ, SGL_IN_CAPSULE, SGL_TRANSPORT, WRITE, capsule, connect_data, icreq,
    pdu, u16_at, u32_at,
};

use crate::{Connection, TIMEOUT};

const BLOCK: usize = 512;
/// Longest transfer of a command.
const TRANSFER_MAX: usize = 256 << 10;
/// Longest data in a command capsule.
const CAPSULE_MAX: usize = 4 << 10;

struct Host {
    _admin: TcpStream,
    io: TcpStream,
}

/// Connects an admin queue and an I/O queue.
pub fn connect(address: SocketAddr, name: &str) -> io::Result<Box<dyn Connection>> {
    let mut admin = open(address)?;
    let data = connect_data(name, NEW_CONTROLLER, 0);
    let (controller, _) = command(&mut admin, Entry::connect(0), &data)?;
    command(&mut admin, Entry::set_property(CC, CC_ENABLE), b"")?;
    let mut io = open(address)?;
    command(&mut io, Entry::connect(1), &connect_data(name, controller as u16, 0))?;
    Ok(Box::new(Host { _admin: admin, io }))
}

/// Opens a connection and exchanges `ICReq` and `ICResp`.
fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(&icreq(0))?;
    stream.read_exact(&mut [0; ICREQ_BYTES])?;
    Ok(stream)
}

/// Sends a command with its data, in the capsule or after R2T. Returns the result and the data that
/// the command returned.
fn command(stream: &mut TcpStream, entry: Entry, data: &[u8]) -> io::Result<(u64, Vec<u8>)> {
    let in_capsule = if data.len() <= CAPSULE_MAX { data } else { b"" };
    let descriptor_type = if in_capsule.is_empty() { SGL_TRANSPORT } else { SGL_IN_CAPSULE };
    stream.write_all(&capsule(entry.data(data.len(), descriptor_type), in_capsule, 0))?;
    let mut received = Vec::new();
    loop {
        let mut head = [0; 24];
        stream.read_exact(&mut head)?;
        let mut rest = vec![0; u32_at(&head, 4) as usize - 24];
        stream.read_exact(&mut rest)?;
        match head[0] {
            CAPSULE_RESP if u16_at(&head, 22) >> 1 == 0 => {
                return Ok((u32_at(&head, 8).into(), received));
            }
            C2H_DATA => received.extend(rest),
            R2T => {
                let mut header = [0; 16];
                header[..4].copy_from_slice(&head[8..12]);
                header[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
                stream.write_all(&pdu(H2C_DATA, LAST_PDU, &header, data, 0))?;
            }
            other => return Err(io::Error::other(format!("PDU type {other}, or an error"))),
        }
    }
}

fn on_blocks(opcode: u8, offset: u64, bytes: usize) -> Entry {
    Entry::on(opcode, offset / BLOCK as u64, (bytes / BLOCK) as u32)
}

impl Connection for Host {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (part, at) in bytes.chunks(TRANSFER_MAX).zip((offset..).step_by(TRANSFER_MAX)) {
            command(&mut self.io, on_blocks(WRITE, at, part.len()), part)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        command(&mut self.io, Entry::new(FLUSH).nsid(1), b"").map(drop)
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::with_capacity(length);
        while read.len() < length {
            let (at, bytes) = (offset + read.len() as u64, (length - read.len()).min(TRANSFER_MAX));
            let entry = on_blocks(READ, at, bytes).data(bytes, SGL_TRANSPORT);
            read.extend(command(&mut self.io, entry, b"")?.1);
        }
        Ok(read)
    }
}
