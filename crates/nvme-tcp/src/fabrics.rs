//! Fabrics commands: Connect makes a connection a queue; Property Get, Property Set.

use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use super::dhchap::Authentication;
use super::pdu::layout;
use super::target::{Association, QueueRegistration, Target};
use ssdlab_engine::Epoch;
use ssdlab_nvme::{Completion, Controller, DISCOVERY, FABRICS, Kind, Status, Submission};
use ssdlab_wire::Connection;
use zerocopy::FromBytes;
use zerocopy::little_endian::U16;

/// FCTYPE of a Fabrics command.
const PROPERTY_SET: u8 = 0x00;
const CONNECT: u8 = 0x01;
const PROPERTY_GET: u8 = 0x04;
pub const AUTHENTICATION_SEND: u8 = 0x05;
const AUTHENTICATION_RECEIVE: u8 = 0x06;

/// Where fields are in the submission queue entry of Connect.
const QID: usize = 42;
const SQSIZE: usize = 44;
/// CNTLID of a host that accepts any controller.
const ANY_CNTLID: u16 = 0xffff;
/// CATTR: the host disables flow control of the submission queue.
const DISABLE_SQ_FLOW_CONTROL: u8 = 1 << 2;
/// CAP.MQES of I/O queues, and the number of I/O queues that Set Features allows.
const ENTRIES_MAX: u16 = 128;
const QUEUES_MAX: u16 = 64;

layout! {
    /// The data of Connect.
    struct ConnectData[1024] {
        hostid: [u8; 16],
        cntlid: U16,
        reserved: [u8; 238],
        subnqn: [u8; 256],
        hostnqn: [u8; 256],
        reserved_2: [u8; 256],
    }
}

/// A Connect command with its data.
struct Connect<'a> {
    qid: u16,
    entries: u16,
    /// CATTR.
    cattr: u8,
    /// Keep-alive timeout.
    kato: Duration,
    data: &'a ConnectData,
}

/// A connection that has become a queue.
pub struct Queue {
    pub qid: u16,
    pub association: Arc<Association>,
    /// Commands received so far, modulo the entries of the submission queue.
    head: u16,
    entries: u16,
    pub has_flow_control: bool,
    /// `None` if the host need not authenticate.
    pub authentication: Option<Authentication>,
    /// An I/O queue's, once the host has authenticated.
    registration: Option<QueueRegistration>,
}

impl Queue {
    /// Counts a command.
    pub fn advance(&mut self) {
        self.head = (self.head + 1) % self.entries;
    }

    /// Whether the host has authenticated, if it has to.
    pub fn is_authenticated(&self) -> bool {
        self.authentication.as_ref().is_none_or(|authentication| authentication.is_authenticated)
    }

    /// Registers an I/O queue with its controller; false if its QID is taken.
    pub fn register(&mut self, connection: &Connection) -> bool {
        if self.qid > 0 && self.registration.is_none() {
            self.registration = self.association.register(self.qid, connection);
        }
        self.qid == 0 || self.registration.is_some()
    }

    /// Frees the QID.
    pub fn unregister(&mut self) {
        self.registration = None;
    }

    /// SQHD of responses.
    pub fn sqhd(&self) -> u16 {
        if self.has_flow_control { self.head } else { u16::MAX }
    }

    /// Performs a Fabrics command on a connected queue.
    pub fn fabrics(&self, command: &Submission) -> Completion {
        let controller = &self.association.controller;
        // OFST, and whether ATTRIB says that the property has eight bytes.
        let (offset, is_long) = (command.word(11), command.word(10) & 7 == 1);
        let result = match command.fabrics_type() {
            _ if self.qid != 0 => Err(Status::SEQUENCE),
            PROPERTY_GET => match controller.property(offset) {
                // Only CAP has eight bytes.
                Some(value) if is_long == (offset == 0) => {
                    Ok(Completion { result: value, ..Completion::DONE })
                }
                _ => Err(Status::INVALID_FIELD),
            },
            PROPERTY_SET if is_long => Err(Status::INVALID_FIELD),
            PROPERTY_SET => controller.set_property(offset, command.long(12)).map(|is_reset| {
                if is_reset {
                    self.association.break_io_queues();
                }
                Completion::DONE
            }),
            CONNECT => Err(Status::SEQUENCE),
            _ => Err(Status::INVALID_FIELD),
        };
        result.unwrap_or_else(Completion::from)
    }
}

/// Connect Invalid Parameters: IPO is where the field is, IATTR whether that is in the data.
fn invalid(ipo: usize, in_data: bool) -> Completion {
    let result = ipo as u64 | u64::from(in_data) << 16;
    Completion { result, status: Status::CONNECT_PARAMETER }
}

impl<'a> Connect<'a> {
    fn parse(command: &Submission, data: &'a [u8]) -> Result<Self, Completion> {
        if command.fabrics_type() != CONNECT {
            return Err(Status::SEQUENCE.into());
        }
        let recfmt = command.word(10) as u16;
        if recfmt != 0 {
            return Err(Status::CONNECT_FORMAT.into());
        }
        let (data, _) = ConnectData::ref_from_prefix(data).map_err(|_| Status::DATA_LENGTH)?;
        Ok(Self {
            qid: (command.word(10) >> 16) as u16,
            // SQSIZE is zero-based.
            entries: (command.word(11) as u16).saturating_add(1),
            cattr: (command.word(11) >> 16) as u8,
            kato: Duration::from_millis(command.word(12).into()),
            data,
        })
    }
}

/// A name without the zeros that pad it.
fn nqn(field: &[u8; 256]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

impl Target {
    /// Performs Connect: makes a connection a queue.
    ///
    /// # Errors
    /// The completion with which the command fails.
    pub fn connect(
        &self,
        command: &Submission,
        data: &[u8],
        connection: &Connection,
        epoch: Epoch,
    ) -> Result<Queue, Completion> {
        let connect = Connect::parse(command, data)?;
        let subnqn = nqn(&connect.data.subnqn);
        let kind = if subnqn == DISCOVERY.as_bytes() {
            Kind::Discovery
        } else if subnqn == self.subsystem.identity.name.as_bytes() {
            Kind::Drive
        } else {
            return Err(invalid(offset_of!(ConnectData, subnqn), true));
        };
        if connect.entries < 2 || connect.qid > 0 && connect.entries > ENTRIES_MAX {
            return Err(invalid(SQSIZE, false));
        }
        let association = if connect.qid == 0 {
            self.create_controller(kind, &connect, connection, epoch)?
        } else {
            self.controller_of_io_queue(kind, &connect, epoch)?
        };
        // Any host may use discovery.
        let must_authenticate = self.key.is_some() && kind == Kind::Drive;
        let mut queue = Queue {
            qid: connect.qid,
            association,
            head: 0,
            entries: connect.entries,
            has_flow_control: connect.cattr & DISABLE_SQ_FLOW_CONTROL == 0,
            authentication: must_authenticate
                .then(|| Authentication::new(nqn(&connect.data.hostnqn))),
            registration: None,
        };
        if queue.is_authenticated() {
            queue.association.note_traffic();
            if !queue.register(connection) {
                return Err(invalid(QID, false));
            }
        }
        Ok(queue)
    }

    fn create_controller(
        &self,
        kind: Kind,
        connect: &Connect<'_>,
        connection: &Connection,
        epoch: Epoch,
    ) -> Result<Arc<Association>, Completion> {
        let data = connect.data;
        if data.cntlid != ANY_CNTLID {
            return Err(invalid(offset_of!(ConnectData, cntlid), true));
        }
        let port = connection.local_address();
        let controller =
            Controller::new(&self.subsystem, (kind, port), data.hostid, connect.kato, epoch)?;
        Ok(self.add(controller))
    }

    fn controller_of_io_queue(
        &self,
        kind: Kind,
        connect: &Connect<'_>,
        epoch: Epoch,
    ) -> Result<Arc<Association>, Completion> {
        // A controller of an earlier epoch is about to be removed.
        let association = self.get(connect.data.cntlid.get());
        let association = association
            .filter(|association| association.controller.epoch == epoch)
            .ok_or(invalid(offset_of!(ConnectData, cntlid), true))?;
        let controller = &association.controller;
        if kind == Kind::Discovery || controller.kind == Kind::Discovery {
            return Err(invalid(QID, false));
        }
        if controller.host != connect.data.hostid {
            return Err(invalid(offset_of!(ConnectData, hostid), true));
        }
        if !controller.is_ready() {
            return Err(Status::SEQUENCE.into());
        }
        if connect.qid > QUEUES_MAX || association.has_io_queue(connect.qid) {
            return Err(invalid(QID, false));
        }
        Ok(association)
    }
}

/// Whether a command is Authentication Send or Authentication Receive.
pub fn is_authentication(command: &Submission) -> bool {
    let fctypes = [AUTHENTICATION_SEND, AUTHENTICATION_RECEIVE];
    command.opcode() == FABRICS && fctypes.contains(&command.fabrics_type())
}

/// Whether a command is Authentication Receive.
pub fn is_authentication_receive(command: &Submission) -> bool {
    command.opcode() == FABRICS && command.fabrics_type() == AUTHENTICATION_RECEIVE
}
