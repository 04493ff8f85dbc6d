//! `PduReader`: PDUs from the host, checked; it requests the data of commands with R2T and collects
//! it.

use std::collections::{BTreeMap, VecDeque};
use std::mem::offset_of;

use ssdlab_engine::failpoints::{self, Point};
use ssdlab_nvme::{Direction, Sqe, Status};
use ssdlab_wire::{Channel, Input, Timeout};
use zerocopy::FromBytes;

use super::pdu::{
    CAPSULE_CMD, CapsuleCmd, CommonHeader, DDGST, DIGEST_BYTES, Data, FatalError, H2C_DATA,
    H2C_TERM_REQ, HDGST, LAST_PDU,
};
use super::respond::PduFormat;

/// R2Ts are outstanding for this many bytes of a connection, or for one command.
const R2T_BYTES_MAX: usize = 32 << 20;

/// SGL Data Block descriptor, subtype offset: the data is in the capsule.
const SGL_DATA_BLOCK_OFFSET: u8 = 0x01;
/// Transport SGL Data Block descriptor: the transport moves the data.
const SGL_TRANSPORT_DATA_BLOCK: u8 = 0x5a;

/// Data that the host sent for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostBytes {
    None,
    /// In the capsule, which is in the receive buffer: position and length.
    InCapsule(usize, usize),
    /// It came in `H2CData` PDUs.
    Transferred(Vec<u8>),
    /// Its data digest is wrong.
    DigestError,
}

impl HostBytes {
    pub fn bytes<'a>(&'a self, input: &'a Input) -> &'a [u8] {
        match self {
            Self::None | Self::DigestError => &[],
            Self::InCapsule(at, length) => input.consumed(*at, *length),
            Self::Transferred(bytes) => bytes,
        }
    }
}

/// A PDU that was received.
pub enum Pdu {
    /// A command, with the data in its capsule.
    CapsuleCmd(Sqe, HostBytes),
    /// The last `H2CData` of a command.
    LastH2CData(Sqe, HostBytes),
    H2CData,
    /// The host ends the connection.
    H2CTermReq,
}

/// A command whose data was requested.
struct Transfer {
    command: Sqe,
    bytes: Vec<u8>,
    length: usize,
    has_digest_error: bool,
}

/// Reads the PDUs of one connection.
pub struct PduReader {
    pub format: PduFormat,
    /// By transfer tag, which is the CID.
    transfers: BTreeMap<u16, Transfer>,
    /// Commands that wait for earlier transfers before their data is requested.
    deferred: VecDeque<Sqe>,
    /// When the next data has to arrive.
    timeout: Option<Timeout>,
}

impl PduReader {
    pub fn new(format: PduFormat) -> Self {
        let (transfers, deferred) = Default::default();
        Self { format, transfers, deferred, timeout: None }
    }

    /// Checks the header of the next PDU, before the rest has arrived.
    pub fn header(&self, input: &Input) -> Result<CommonHeader, FatalError> {
        let ch = CommonHeader::parse(input.peek());
        ch.check(self.format.dgst).map(|()| ch)
    }

    /// Takes the next PDU, which has arrived and has this header.
    pub fn take(&mut self, channel: &mut Channel<'_>, ch: CommonHeader) -> Result<Pdu, FatalError> {
        let bytes = &channel.input.peek()[..ch.plen()];
        if ch.flags & HDGST != 0 {
            let (header, after) = bytes.split_at(ch.hlen.into());
            let received = digest(after);
            if crc32c::crc32c(header) != received {
                return Err(FatalError::HeaderDigestError(received));
            }
        }
        let (pdo, length) = ch.data();
        let has_digest_error = ch.flags & DDGST != 0
            && crc32c::crc32c(&bytes[pdo..pdo + length]) != digest(&bytes[pdo + length..]);
        match ch.pdu_type {
            CAPSULE_CMD => {
                let (pdu, _) = CapsuleCmd::ref_from_prefix(bytes).expect("HLEN was checked");
                let command = pdu.sqe;
                let start = channel.input.consume(ch.plen());
                let data = if has_digest_error {
                    HostBytes::DigestError
                } else {
                    HostBytes::InCapsule(start + pdo, length)
                };
                Ok(Pdu::CapsuleCmd(command, data))
            }
            H2C_DATA => self.add(channel, ch, has_digest_error),
            H2C_TERM_REQ => Ok(Pdu::H2CTermReq),
            _ => Err(FatalError::PduSequenceError),
        }
    }

    /// Adds an `H2CData` to its transfer.
    fn add(
        &mut self,
        channel: &mut Channel<'_>,
        ch: CommonHeader,
        has_digest_error: bool,
    ) -> Result<Pdu, FatalError> {
        let bytes = channel.input.peek();
        let (pdu, _) = Data::read_from_prefix(bytes).expect("HLEN was checked");
        let ((pdo, length), ttag) = (ch.data(), pdu.ttag.get());
        let invalid = FatalError::InvalidPduHeaderField;
        let transfer = self.transfers.get_mut(&ttag);
        let transfer = transfer.filter(|transfer| transfer.command.cid() == pdu.cccid.get());
        let transfer = transfer.ok_or(invalid(offset_of!(Data, ttag)))?;
        if pdu.datal.get() as usize != length || length == 0 {
            return Err(invalid(offset_of!(Data, datal)));
        }
        let received = transfer.bytes.len();
        if pdu.datao.get() as usize != received || length > transfer.length - received {
            return Err(FatalError::DataTransferOutOfRange(offset_of!(Data, datao)));
        }
        // The timeout does not run while the server itself waits for memory.
        self.timeout = None;
        self.timeout = Some(channel.memory.reserve(length));
        let has_memory = failpoints::check(Point::Memory).is_ok();
        if !has_memory || transfer.bytes.try_reserve(length).is_err() {
            return Err(FatalError::DataTransferLimitExceeded);
        }
        transfer.bytes.extend(&bytes[pdo..pdo + length]);
        transfer.has_digest_error |= has_digest_error;
        let is_complete = transfer.bytes.len() == transfer.length;
        if is_complete != (ch.flags & LAST_PDU != 0) {
            return Err(invalid(offset_of!(CommonHeader, flags)));
        }
        channel.input.consume(ch.plen());
        if !is_complete {
            return Ok(Pdu::H2CData);
        }
        let transfer = self.transfers.remove(&ttag).expect("the transfer was found");
        if self.transfers.is_empty() {
            self.timeout = None;
        }
        let data = if transfer.has_digest_error {
            HostBytes::DigestError
        } else {
            HostBytes::Transferred(transfer.bytes)
        };
        Ok(Pdu::LastH2CData(transfer.command, data))
    }

    /// Whether the command with this CID waits for its data.
    pub fn is_pending(&self, cid: u16) -> bool {
        let is_deferred = self.deferred.iter().any(|command| command.cid() == cid);
        is_deferred || self.transfers.contains_key(&cid)
    }

    pub fn pending(&self) -> usize {
        self.transfers.len() + self.deferred.len()
    }

    /// Queues a command until an R2T requests its data.
    pub fn queue_r2t(&mut self, command: Sqe) {
        self.deferred.push_back(command);
    }

    /// Sends R2Ts for commands that wait, within `R2T_BYTES_MAX`.
    pub fn send_r2ts(&mut self, channel: &mut Channel<'_>) {
        while let Some(command) = self.deferred.front() {
            let length = command.sgl_length() as usize;
            let outstanding: usize = self.transfers.values().map(|transfer| transfer.length).sum();
            if outstanding > 0 && outstanding + length > R2T_BYTES_MAX {
                return;
            }
            let command = self.deferred.pop_front().expect("a command waits");
            let (cid, out) = (command.cid(), channel.replies.immediate.bytes());
            self.format.r2t(out, cid, command.sgl_length());
            let (bytes, has_digest_error) = (Vec::new(), false);
            self.transfers.insert(cid, Transfer { command, bytes, length, has_digest_error });
            self.timeout.get_or_insert_with(|| channel.memory.start_timeout());
        }
    }

    /// Bytes that have been received for transfers in progress.
    pub fn held_bytes(&self) -> usize {
        self.transfers.values().map(|transfer| transfer.bytes.len()).sum()
    }
}

/// The digest at the start of `bytes`.
fn digest(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk::<DIGEST_BYTES>().expect("PLEN was checked"))
}

/// Finds a command's data, by its SGL descriptor and what its capsule carries; `None` if it has to
/// be requested.
pub fn map_sgl(command: &Sqe, in_capsule: HostBytes) -> Result<Option<HostBytes>, Status> {
    let HostBytes::InCapsule(start, capsule_bytes) = in_capsule else {
        return Ok(Some(in_capsule));
    };
    let length = command.sgl_length() as usize;
    match (command.sgl_identifier(), command.direction()) {
        (SGL_DATA_BLOCK_OFFSET, Direction::HostToController) if length > 0 => {
            let offset = command.sgl_address();
            let end = offset.checked_add(length as u64);
            if end.is_none_or(|end| end > capsule_bytes as u64) {
                return Err(Status::SGL_OFFSET_INVALID);
            }
            Ok(Some(HostBytes::InCapsule(start + offset as usize, length)))
        }
        (SGL_TRANSPORT_DATA_BLOCK, Direction::HostToController) if length > 0 => Ok(None),
        (SGL_TRANSPORT_DATA_BLOCK, _) => Ok(Some(HostBytes::None)),
        (_, Direction::HostToController | Direction::ControllerToHost) if length > 0 => {
            Err(Status::SGL_DESCRIPTOR_TYPE_INVALID)
        }
        _ => Ok(Some(HostBytes::None)),
    }
}
