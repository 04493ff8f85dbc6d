//! A host that says exactly what a test wants it to say.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub use crate::target::{Target, engine};

pub const FLUSH: u8 = 0x00;
pub const WRITE: u8 = 0x01;
pub const READ: u8 = 0x02;
pub const COMPARE: u8 = 0x05;
pub const WRITE_ZEROES: u8 = 0x08;
pub const DATASET: u8 = 0x09;
pub const VERIFY: u8 = 0x0c;
pub const COPY: u8 = 0x19;

pub const GET_LOG: u8 = 0x02;
pub const IDENTIFY: u8 = 0x06;
pub const ABORT: u8 = 0x08;
pub const SET_FEATURES: u8 = 0x09;
pub const GET_FEATURES: u8 = 0x0a;
pub const EVENT: u8 = 0x0c;
pub const MANAGE: u8 = 0x0d;
pub const ATTACH: u8 = 0x15;
pub const KEEP_ALIVE: u8 = 0x18;
pub const FORMAT: u8 = 0x80;
pub const SANITIZE: u8 = 0x84;
pub const BLOCKS: u8 = 0x86;
pub const FABRICS: u8 = 0x7f;

pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// What a host sets to enable a controller.
pub const ENABLE: u64 = 0x0046_0001;

/// A hang is a failure, not a wait.
const PATIENCE: Duration = Duration::from_secs(600);
/// Data up to this goes with its command.
const CAPSULE: usize = 8 << 10;

/// A submission to be.
#[derive(Clone, Copy)]
pub struct Sqe(pub [u8; 64]);

impl Sqe {
    pub fn new(opcode: u8) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        Self(bytes)
    }

    /// A command on blocks of the namespace.
    pub fn on(opcode: u8, first: u64, blocks: u32) -> Self {
        Self::new(opcode).namespace(1).long(10, first).word(12, blocks - 1)
    }

    pub fn fabrics(kind: u8) -> Self {
        let mut sqe = Self::new(FABRICS);
        sqe.0[4] = kind;
        sqe
    }

    pub fn namespace(self, number: u32) -> Self {
        self.word(1, number)
    }

    /// Sets bits of a double word.
    pub fn word(mut self, number: usize, value: u32) -> Self {
        for (place, byte) in value.to_le_bytes().into_iter().enumerate() {
            self.0[4 * number + place] |= byte;
        }
        self
    }

    pub fn long(self, number: usize, value: u64) -> Self {
        self.word(number, value as u32).word(number + 1, (value >> 32) as u32)
    }

    /// Describes its data: how much, and of which kind.
    pub fn data(mut self, bytes: usize, kind: u8) -> Self {
        self.0[39] = kind;
        self.word(8, bytes as u32)
    }
}

/// What a command was answered with.
#[derive(Debug)]
pub struct Answer {
    pub id: u16,
    /// Its status without the bit that says that to try again is in vain.
    pub code: u16,
    /// That bit.
    pub is_final: bool,
    pub result: u64,
    pub data: Vec<u8>,
}

/// A unit: its header with all that it has in it, and its data.
pub struct Unit {
    pub kind: u8,
    pub flags: u8,
    pub header: Vec<u8>,
    pub data: Vec<u8>,
}

/// A connection.
pub struct Host {
    pub stream: TcpStream,
    digests: u8,
    next: u16,
}

impl Host {
    /// Connects and agrees on digests, flags 1 for headers and 2 for data.
    pub fn connect(address: SocketAddr, digests: u8) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut host = Self { stream, digests: 0, next: 0 };
        let mut hello = [0; 128];
        (hello[2], hello[4], hello[11]) = (128, 128, digests);
        host.stream.write_all(&hello).unwrap();
        let answer = host.unit().unwrap();
        assert_eq!((answer.kind, answer.header[11]), (1, digests));
        host.digests = digests;
        host
    }

    /// Makes the connection a queue of a controller; 0 is the admin queue of a new one.
    pub fn join(&mut self, name: &str, queue: u16, controller: u16, patience_ms: u32) -> Answer {
        let sqe = Sqe::fabrics(1).word(10, u32::from(queue) << 16).word(11, 127);
        self.send_with(sqe.word(12, patience_ms), &introduction(name, controller))
    }

    /// An admin queue whose controller is enabled, and the controller's number.
    pub fn admin(address: SocketAddr, name: &str, digests: u8) -> (Self, u16) {
        let mut host = Self::connect(address, digests);
        let joined = host.join(name, 0, 0xffff, 0);
        assert_eq!(joined.code, 0);
        assert_eq!(host.set_property(0x14, ENABLE).code, 0);
        (host, joined.result as u16)
    }

    /// An I/O queue.
    pub fn io(address: SocketAddr, name: &str, queue: u16, controller: u16, digests: u8) -> Self {
        let mut host = Self::connect(address, digests);
        assert_eq!(host.join(name, queue, controller, 0).code, 0);
        host
    }

    pub fn set_property(&mut self, offset: u32, value: u64) -> Answer {
        self.ask(Sqe::fabrics(0).word(11, offset).long(12, value))
    }

    pub fn property(&mut self, offset: u32) -> u64 {
        let wide = u32::from(offset == 0);
        let answer = self.ask(Sqe::fabrics(4).word(10, wide).word(11, offset));
        assert_eq!(answer.code, 0);
        answer.result
    }

    /// A command without data.
    pub fn ask(&mut self, sqe: Sqe) -> Answer {
        self.receive(sqe, 0)
    }

    /// A command that brings up to so many bytes.
    pub fn receive(&mut self, sqe: Sqe, room: usize) -> Answer {
        self.submit(sqe.data(room, 0x5a), &[]);
        self.answer(&[]).unwrap()
    }

    /// A command that sends data: in its capsule if it is short.
    pub fn send_with(&mut self, sqe: Sqe, data: &[u8]) -> Answer {
        if data.len() <= CAPSULE {
            self.submit(sqe.data(data.len(), 0x01), data);
        } else {
            self.submit(sqe.data(data.len(), 0x5a), &[]);
        }
        self.answer(data).unwrap()
    }

    pub fn read(&mut self, first: u64, blocks: u32) -> Vec<u8> {
        let answer = self.receive(Sqe::on(READ, first, blocks), blocks as usize * 512);
        assert_eq!(answer.code, 0);
        answer.data
    }

    pub fn write(&mut self, first: u64, data: &[u8]) {
        let blocks = (data.len() / 512) as u32;
        assert_eq!(self.send_with(Sqe::on(WRITE, first, blocks), data).code, 0);
    }

    pub fn identify(&mut self, which: u32, namespace: u32) -> Vec<u8> {
        let answer = self.receive(Sqe::new(IDENTIFY).namespace(namespace).word(10, which), 4096);
        assert_eq!(answer.code, 0, "identify {which:x}");
        answer.data
    }

    pub fn log(&mut self, which: u32, bytes: u32) -> Vec<u8> {
        let sqe = Sqe::new(GET_LOG).namespace(u32::MAX).word(10, which | (bytes / 4 - 1) << 16);
        let answer = self.receive(sqe.word(11, 1 << 16), bytes as usize);
        assert_eq!(answer.code, 0, "log {which:x}");
        answer.data
    }

    /// Submits a command with the data in its capsule; returns its id.
    pub fn submit(&mut self, sqe: Sqe, data: &[u8]) -> u16 {
        self.try_submit(sqe, data).unwrap();
        self.next
    }

    /// A command without data, on a connection that may be gone.
    pub fn tries(&mut self, sqe: Sqe) -> io::Result<Answer> {
        self.try_submit(sqe, &[])?;
        self.answer(&[])
    }

    fn try_submit(&mut self, mut sqe: Sqe, data: &[u8]) -> io::Result<()> {
        self.next += 1;
        sqe.0[2..4].copy_from_slice(&self.next.to_le_bytes());
        let mut header = vec![4, 0, 72, 0, 0, 0, 0, 0];
        header.extend(sqe.0);
        self.put(header, data, 0)
    }

    /// Sends a unit, with the digests that were agreed on.
    pub fn put(&mut self, mut header: Vec<u8>, data: &[u8], flags: u8) -> io::Result<()> {
        let has_data = !data.is_empty();
        let digests = if has_data { self.digests } else { self.digests & 1 };
        let of_header = if digests & 1 != 0 { 4 } else { 0 };
        let of_data = if digests & 2 != 0 { 4 } else { 0 };
        header[1] = digests | flags;
        header[3] = if has_data { header[2] + of_header } else { 0 };
        let whole = usize::from(header[2] + of_header + of_data) + data.len();
        header[4..8].copy_from_slice(&(whole as u32).to_le_bytes());
        let mut unit = header.clone();
        if digests & 1 != 0 {
            unit.extend(crc32c::crc32c(&header).to_le_bytes());
        }
        unit.extend(data);
        if digests & 2 != 0 {
            unit.extend(crc32c::crc32c(data).to_le_bytes());
        }
        self.stream.write_all(&unit)
    }

    /// The next unit; its digests are right.
    pub fn unit(&mut self) -> io::Result<Unit> {
        let mut common = [0; 8];
        self.stream.read_exact(&mut common)?;
        let whole = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
        let mut unit = common.to_vec();
        unit.resize(whole, 0);
        self.stream.read_exact(&mut unit[8..])?;
        let (flags, header, data_at) = (common[1], usize::from(common[2]), usize::from(common[3]));
        let digest = |at: usize| u32::from_le_bytes(unit[at..at + 4].try_into().unwrap());
        if flags & 1 != 0 {
            assert_eq!(digest(header), crc32c::crc32c(&unit[..header]));
        }
        let end = if flags & 2 != 0 { whole - 4 } else { whole };
        let data = if data_at == 0 { vec![] } else { unit[data_at..end].to_vec() };
        if flags & 2 != 0 {
            assert_eq!(digest(end), crc32c::crc32c(&data));
        }
        let agreed = if data_at == 0 { self.digests & 1 } else { self.digests };
        assert!(common[0] == 3 || flags & 3 == agreed, "what ends a connection has no digests");
        unit.truncate(header);
        Ok(Unit { kind: common[0], flags, header: unit, data })
    }

    /// The next answer; `data` is sent where it is asked for.
    pub fn answer(&mut self, data: &[u8]) -> io::Result<Answer> {
        let mut received = Vec::new();
        loop {
            let unit = self.unit()?;
            let short = |at: usize| u16::from_le_bytes([unit.header[at], unit.header[at + 1]]);
            match unit.kind {
                5 => {
                    let result = u64::from_le_bytes(unit.header[8..16].try_into().unwrap());
                    let (code, is_final) = (short(22) >> 1 & 0x7ff, short(22) >> 15 != 0);
                    return Ok(Answer { id: short(20), code, is_final, result, data: received });
                }
                7 => {
                    received.extend(&unit.data);
                    if unit.flags & 8 != 0 {
                        let (id, code, is_final, result) = (short(8), 0, false, 0);
                        return Ok(Answer { id, code, is_final, result, data: received });
                    }
                }
                9 => self.send_data(&unit.header, data)?,
                kind => return Err(io::Error::other(format!("unit {kind}"))),
            }
        }
    }

    /// Sends the data that was asked for, in two pieces.
    fn send_data(&mut self, asked: &[u8], data: &[u8]) -> io::Result<()> {
        let long = |at: usize| u32::from_le_bytes(asked[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((long(12), long(16)), (0, data.len()));
        let half = data.len() / 2 / 4 * 4;
        for (from, to) in [(0, half), (half, data.len())] {
            let mut header = vec![6, 0, 24, 0, 0, 0, 0, 0];
            header.extend(&asked[8..12]);
            header.extend((from as u32).to_le_bytes());
            header.extend(((to - from) as u32).to_le_bytes());
            header.extend([0; 4]);
            self.put(header, &data[from..to], if to == data.len() { 4 } else { 0 })?;
        }
        Ok(())
    }

    /// Whether the connection ends, after whatever else comes.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// What a host says of itself and of the drive that it wants.
pub fn introduction(name: &str, controller: u16) -> Vec<u8> {
    let mut data = vec![0; 1024];
    data[..16].fill(7);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    data[512..520].copy_from_slice(b"nqn.host");
    data
}
