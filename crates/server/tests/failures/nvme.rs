//! A host of `NVMe` over TCP to which any call may fail: an admin queue and an I/O queue.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::{Connection, PATIENCE};

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const FABRICS: u8 = 0x7f;
const BLOCK: usize = 512;
/// A command moves so much at most; and so much goes with its command.
const MOST: usize = 256 << 10;
const CAPSULE: usize = 4 << 10;

/// Kinds of unit.
const RESPONSE: u8 = 5;
const DATA: u8 = 7;
const READY: u8 = 9;

struct Host {
    _admin: TcpStream,
    io: TcpStream,
}

/// Connects an admin queue and an I/O queue.
pub fn connect(address: SocketAddr, name: &str) -> io::Result<Box<dyn Connection>> {
    let mut admin = greeted(address)?;
    let (number, _) = ask(&mut admin, &joining(0), &introduction(name, 0xffff))?;
    let mut enable = entry(FABRICS);
    enable[44] = 0x14;
    enable[48..52].copy_from_slice(&0x0046_0001_u32.to_le_bytes());
    ask(&mut admin, &enable, b"")?;
    let mut io = greeted(address)?;
    ask(&mut io, &joining(1), &introduction(name, number as u16))?;
    Ok(Box::new(Host { _admin: admin, io }))
}

fn greeted(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut hello = [0; 128];
    (hello[2], hello[4]) = (128, 128);
    stream.write_all(&hello)?;
    stream.read_exact(&mut hello)?;
    Ok(stream)
}

fn entry(opcode: u8) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[0] = opcode;
    entry
}

fn joining(queue: u8) -> [u8; 64] {
    let mut entry = entry(FABRICS);
    (entry[4], entry[42], entry[44]) = (1, queue, 127);
    entry
}

fn introduction(name: &str, controller: u16) -> Vec<u8> {
    let mut data = vec![0; 1024];
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    data[512..520].copy_from_slice(b"nqn.host");
    data
}

/// Sends a command with its data, in the capsule or when it is asked for; its result and what it
/// brings.
fn ask(stream: &mut TcpStream, entry: &[u8; 64], data: &[u8]) -> io::Result<(u64, Vec<u8>)> {
    let mut entry = *entry;
    let in_capsule = if data.len() <= CAPSULE { data } else { b"" };
    if !data.is_empty() {
        entry[32..36].copy_from_slice(&(data.len() as u32).to_le_bytes());
    }
    entry[39] = if in_capsule.is_empty() { 0x5a } else { 1 };
    stream.write_all(&unit((4, 0), &entry, in_capsule))?;
    let mut brought = Vec::new();
    loop {
        let mut head = [0; 24];
        stream.read_exact(&mut head)?;
        let long = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        let mut rest = vec![0; long(4) as usize - 24];
        stream.read_exact(&mut rest)?;
        match head[0] {
            RESPONSE if head[22] >> 1 == 0 && head[23] == 0 => {
                return Ok((long(8).into(), brought));
            }
            DATA => brought.extend(rest),
            READY => {
                let mut part = [0; 16];
                part[..4].copy_from_slice(&head[8..12]);
                part[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
                stream.write_all(&unit((6, 4), &part, data))?;
            }
            kind => return Err(io::Error::other(format!("unit {kind} or an error"))),
        }
    }
}

fn unit((kind, flags): (u8, u8), header: &[u8], data: &[u8]) -> Vec<u8> {
    let length = 8 + header.len();
    let data_at = if data.is_empty() { 0 } else { length as u8 };
    let mut unit = vec![kind, flags, length as u8, data_at];
    unit.extend(((length + data.len()) as u32).to_le_bytes());
    unit.extend(header);
    unit.extend(data);
    unit
}

fn on_blocks(opcode: u8, offset: u64, bytes: usize) -> [u8; 64] {
    let mut entry = entry(opcode);
    entry[4] = 1;
    entry[32..36].copy_from_slice(&(bytes as u32).to_le_bytes());
    entry[40..48].copy_from_slice(&(offset / BLOCK as u64).to_le_bytes());
    entry[48..50].copy_from_slice(&((bytes / BLOCK - 1) as u16).to_le_bytes());
    entry
}

impl Connection for Host {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (part, at) in bytes.chunks(MOST).zip((offset..).step_by(MOST)) {
            ask(&mut self.io, &on_blocks(WRITE, at, part.len()), part)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut flush = entry(FLUSH);
        flush[4] = 1;
        ask(&mut self.io, &flush, b"").map(drop)
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::with_capacity(length);
        while read.len() < length {
            let (at, next) = (offset + read.len() as u64, (length - read.len()).min(MOST));
            read.extend(ask(&mut self.io, &on_blocks(READ, at, next), b"")?.1);
        }
        Ok(read)
    }
}
