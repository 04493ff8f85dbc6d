//! An `NVMe`/TCP host, which can also send invalid PDUs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{
    C2H_DATA, CAPSULE_RESP, CC, CC_ENABLE, Entry, GET_LOG_PAGE, H2C_DATA, ICRESP, IDENTIFY,
    LAST_PDU, NEW_CONTROLLER, PROPERTY_GET, R2T, READ, SGL_IN_CAPSULE, SGL_TRANSPORT, SUCCESS,
    WRITE, capsule, connect_data, icreq, number, pdu, u16_at, u32_at,
};
use crate::TIMEOUT;

/// Longest data in a command capsule.
const CAPSULE_MAX: usize = 8 << 10;
/// The host identifier is filled with this byte.
const HOST_ID: u8 = 7;

/// The completion of a command, and the data that it returned.
#[derive(Debug)]
pub struct Completion {
    pub cid: u16,
    /// Status code and status code type.
    pub status: u16,
    /// Do Not Retry.
    pub dnr: bool,
    pub result: u64,
    pub data: Vec<u8>,
}

/// A PDU. The header includes the common header.
pub struct Pdu {
    /// PDU type.
    pub kind: u8,
    pub flags: u8,
    pub header: Vec<u8>,
    pub data: Vec<u8>,
}

/// A connection: one queue of a host. `connect` and what starts with `try` return errors of the
/// connection; most other methods panic.
pub struct Host {
    pub stream: TcpStream,
    digests: u8,
    last_cid: u16,
}

impl Host {
    /// Opens a connection and exchanges `ICReq` and `ICResp`.
    pub fn connect(address: SocketAddr, digests: u8) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut host = Self { stream, digests: 0, last_cid: 0 };
        host.stream.write_all(&icreq(digests))?;
        let icresp = host.receive_pdu()?;
        assert_eq!((icresp.kind, icresp.header[11]), (ICRESP, digests));
        host.digests = digests;
        Ok(host)
    }

    /// Sends a Connect command for a queue of 128 entries; `kato_ms` is the keep-alive timeout.
    pub fn connect_queue(&mut self, name: &str, qid: u16, cntlid: u16, kato_ms: u32) -> Completion {
        let entry = Entry::connect(qid).cdw(12, kato_ms);
        self.command_out(entry, &host_data(name, cntlid))
    }

    /// Connects an admin queue and enables its controller; returns the controller identifier too.
    pub fn admin(address: SocketAddr, name: &str, digests: u8) -> (Self, u16) {
        let mut host = Self::connect(address, digests).unwrap();
        let connected = host.connect_queue(name, 0, NEW_CONTROLLER, 0);
        assert_eq!(connected.status, 0);
        assert_eq!(host.set_property(CC, CC_ENABLE).status, 0);
        (host, connected.result as u16)
    }

    /// Connects an I/O queue.
    pub fn io(address: SocketAddr, name: &str, queue: u16, controller: u16, digests: u8) -> Self {
        let mut host = Self::connect(address, digests).unwrap();
        assert_eq!(host.connect_queue(name, queue, controller, 0).status, 0);
        host
    }

    pub fn set_property(&mut self, offset: u32, value: u64) -> Completion {
        self.command(Entry::set_property(offset, value))
    }

    pub fn property(&mut self, offset: u32) -> u64 {
        let wide = u32::from(offset == 0);
        let completion = self.command(Entry::fabrics(PROPERTY_GET).cdw(10, wide).cdw(11, offset));
        assert_eq!(completion.status, 0);
        completion.result
    }

    /// Executes a command without data.
    pub fn command(&mut self, entry: Entry) -> Completion {
        self.command_in(entry, 0)
    }

    /// Executes a command that returns up to `bytes` bytes of data.
    pub fn command_in(&mut self, entry: Entry, bytes: usize) -> Completion {
        self.submit(entry.data(bytes, SGL_TRANSPORT), &[]);
        self.complete(&[]).unwrap()
    }

    /// Executes a command that sends data: in its capsule if possible.
    pub fn command_out(&mut self, entry: Entry, data: &[u8]) -> Completion {
        self.try_command_out(entry, data).unwrap()
    }

    pub fn try_command_out(&mut self, entry: Entry, data: &[u8]) -> io::Result<Completion> {
        if data.len() <= CAPSULE_MAX {
            self.try_submit(entry.data(data.len(), SGL_IN_CAPSULE), data)?;
        } else {
            self.try_submit(entry.data(data.len(), SGL_TRANSPORT), &[])?;
        }
        self.complete(data)
    }

    pub fn read(&mut self, first: u64, blocks: u32) -> Vec<u8> {
        let completion = self.command_in(Entry::on(READ, first, blocks), blocks as usize * 512);
        assert_eq!(completion.status, 0);
        completion.data
    }

    pub fn write(&mut self, first: u64, data: &[u8]) {
        let blocks = (data.len() / 512) as u32;
        assert_eq!(self.command_out(Entry::on(WRITE, first, blocks), data).status, 0);
    }

    pub fn identify(&mut self, which: u32, namespace: u32) -> Vec<u8> {
        let completion = self.command_in(Entry::new(IDENTIFY).nsid(namespace).cdw(10, which), 4096);
        assert_eq!(completion.status, 0, "identify {which:x}");
        completion.data
    }

    pub fn log(&mut self, which: u32, bytes: u32) -> Vec<u8> {
        let entry = Entry::new(GET_LOG_PAGE).nsid(u32::MAX).cdw(10, which | (bytes / 4 - 1) << 16);
        let completion = self.command_in(entry.cdw(11, 1 << 16), bytes as usize);
        assert_eq!(completion.status, 0, "log {which:x}");
        completion.data
    }

    /// Submits a command with data in its capsule; returns its identifier.
    pub fn submit(&mut self, entry: Entry, data: &[u8]) -> u16 {
        self.try_submit(entry, data).unwrap();
        self.last_cid
    }

    /// Executes a command without data on a connection that may be closed.
    pub fn try_command(&mut self, entry: Entry) -> io::Result<Completion> {
        self.try_submit(entry, &[])?;
        self.complete(&[])
    }

    fn try_submit(&mut self, entry: Entry, data: &[u8]) -> io::Result<()> {
        self.last_cid += 1;
        self.stream.write_all(&capsule(entry.cid(self.last_cid), data, self.digests))
    }

    /// Receives a PDU and checks its digests.
    pub fn receive_pdu(&mut self) -> io::Result<Pdu> {
        let mut common = [0; 8];
        self.stream.read_exact(&mut common)?;
        let whole = u32_at(&common, 4) as usize;
        let mut pdu = common.to_vec();
        pdu.resize(whole, 0);
        self.stream.read_exact(&mut pdu[8..])?;
        let (flags, header, data_at) = (common[1], usize::from(common[2]), usize::from(common[3]));
        if flags & 1 != 0 {
            assert_eq!(u32_at(&pdu, header), crc32c::crc32c(&pdu[..header]));
        }
        let end = if flags & 2 != 0 { whole - 4 } else { whole };
        let data = if data_at == 0 { vec![] } else { pdu[data_at..end].to_vec() };
        if flags & 2 != 0 {
            assert_eq!(u32_at(&pdu, end), crc32c::crc32c(&data));
        }
        let agreed = if data_at == 0 { self.digests & 1 } else { self.digests };
        assert!(common[0] == 3 || flags & 3 == agreed, "only a C2HTermReq has no digests");
        pdu.truncate(header);
        Ok(Pdu { kind: common[0], flags, header: pdu, data })
    }

    /// Receives the next completion; sends `data` for an R2T.
    pub fn complete(&mut self, data: &[u8]) -> io::Result<Completion> {
        let mut received = Vec::new();
        loop {
            let pdu = self.receive_pdu()?;
            let short = |at: usize| u16_at(&pdu.header, at);
            match pdu.kind {
                CAPSULE_RESP => {
                    let result = number(&pdu.header, 8, 8);
                    let (status, dnr) = (short(22) >> 1 & 0x7ff, short(22) >> 15 != 0);
                    let cid = short(20);
                    return Ok(Completion { cid, status, dnr, result, data: received });
                }
                C2H_DATA => {
                    received.extend(&pdu.data);
                    if pdu.flags & SUCCESS != 0 {
                        let (cid, status, dnr, result) = (short(8), 0, false, 0);
                        return Ok(Completion { cid, status, dnr, result, data: received });
                    }
                }
                R2T => self.send_data(&pdu.header, data)?,
                other => return Err(io::Error::other(format!("PDU type {other}"))),
            }
        }
    }

    /// Sends the data that an R2T requests, in two PDUs.
    fn send_data(&mut self, r2t: &[u8], data: &[u8]) -> io::Result<()> {
        assert_eq!((u32_at(r2t, 12), u32_at(r2t, 16) as usize), (0, data.len()));
        let half = data.len() / 2 / 4 * 4;
        for (from, to) in [(0, half), (half, data.len())] {
            let mut header = r2t[8..12].to_vec();
            header.extend((from as u32).to_le_bytes());
            header.extend(((to - from) as u32).to_le_bytes());
            header.extend([0; 4]);
            let flags = if to == data.len() { LAST_PDU } else { 0 };
            self.stream.write_all(&pdu(H2C_DATA, flags, &header, &data[from..to], self.digests))?;
        }
        Ok(())
    }

    /// Whether the server closes the connection; discards all data before that.
    pub fn is_closed(&mut self) -> bool {
        let ended = self.stream.read_to_end(&mut Vec::new());
        ended.map_or_else(|error| error.kind() == io::ErrorKind::ConnectionReset, |_| true)
    }
}

/// The data of a Connect command of this host.
pub fn host_data(name: &str, controller: u16) -> Vec<u8> {
    connect_data(name, controller, HOST_ID)
}
