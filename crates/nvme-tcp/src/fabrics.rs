//! Fabrics commands: Connect makes a connection a queue; Property Get, Property Set.

use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use super::dhchap::Authentication;
use super::target::{Association, QueueRegistration, Target};
use ssdlab_engine::Epoch;
use ssdlab_nvme::opcode::FABRICS;
use ssdlab_nvme::opcode::fctype::{
    AUTHENTICATION_RECEIVE, AUTHENTICATION_SEND, CONNECT, PROPERTY_GET, PROPERTY_SET,
};
use ssdlab_nvme::{
    Completion, Controller, ControllerParameters, ControllerType, DISCOVERY_NQN, IO_QUEUES_MAX,
    QUEUE_ENTRIES_MAX, Sqe, Status, layout,
};
use ssdlab_wire::Connection;
use zerocopy::FromBytes;
use zerocopy::little_endian::U16;

/// Where fields are in the submission queue entry of Connect.
const QID: usize = 42;
const SQSIZE: usize = 44;
/// CNTLID of a host that accepts any controller.
const ANY_CNTLID: u16 = 0xffff;
/// CATTR: the host disables flow control of the submission queue.
const DISABLE_SQ_FLOW_CONTROL: u8 = 1 << 2;

layout! {
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

    pub fn unregister(&mut self) {
        self.registration = None;
    }

    pub fn sqhd(&self) -> u16 {
        if self.has_flow_control { self.head } else { u16::MAX }
    }

    /// Performs a Fabrics command on a connected queue.
    pub fn fabrics(&self, command: &Sqe) -> Completion {
        let controller = &self.association.controller;
        // OFST, and whether ATTRIB says that the property has eight bytes.
        let (offset, is_long) = (command.cdw(11), command.cdw(10) & 7 == 1);
        let result = match command.fctype() {
            _ if self.qid != 0 => Err(Status::COMMAND_SEQUENCE_ERROR),
            PROPERTY_GET => match controller.property(offset) {
                // Only CAP has eight bytes.
                Some(value) if is_long == (offset == 0) => {
                    Ok(Completion { result: value, ..Completion::SUCCESS })
                }
                _ => Err(Status::INVALID_FIELD),
            },
            PROPERTY_SET if is_long => Err(Status::INVALID_FIELD),
            PROPERTY_SET => controller.set_property(offset, command.cdw64(12)).map(|is_reset| {
                if is_reset {
                    self.association.break_io_queues();
                }
                Completion::SUCCESS
            }),
            CONNECT => Err(Status::COMMAND_SEQUENCE_ERROR),
            _ => Err(Status::INVALID_FIELD),
        };
        result.unwrap_or_else(Completion::from)
    }
}

/// Connect Invalid Parameters: IPO is where the field is, IATTR whether that is in the data.
fn invalid(ipo: usize, in_data: bool) -> Completion {
    let result = ipo as u64 | u64::from(in_data) << 16;
    Completion { result, status: Status::CONNECT_INVALID_PARAMETERS }
}

impl<'a> Connect<'a> {
    fn parse(command: &Sqe, data: &'a [u8]) -> Result<Self, Completion> {
        if command.fctype() != CONNECT {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        let recfmt = command.cdw(10) as u16;
        if recfmt != 0 {
            return Err(Status::CONNECT_INCOMPATIBLE_FORMAT.into());
        }
        let (data, _) =
            ConnectData::ref_from_prefix(data).map_err(|_| Status::DATA_SGL_LENGTH_INVALID)?;
        Ok(Self {
            qid: (command.cdw(10) >> 16) as u16,
            // SQSIZE is zero-based.
            entries: (command.cdw(11) as u16).saturating_add(1),
            cattr: (command.cdw(11) >> 16) as u8,
            kato: Duration::from_millis(command.cdw(12).into()),
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
    pub fn connect(
        &self,
        command: &Sqe,
        data: &[u8],
        connection: &Connection,
        epoch: Epoch,
    ) -> Result<Queue, Completion> {
        let connect = Connect::parse(command, data)?;
        let subnqn = nqn(&connect.data.subnqn);
        let kind = if subnqn == DISCOVERY_NQN.as_bytes() {
            ControllerType::Discovery
        } else if subnqn == self.subsystem.identity.subnqn.as_bytes() {
            ControllerType::Io
        } else {
            return Err(invalid(offset_of!(ConnectData, subnqn), true));
        };
        if connect.entries < 2 || connect.qid > 0 && connect.entries > QUEUE_ENTRIES_MAX {
            return Err(invalid(SQSIZE, false));
        }
        let association = if connect.qid == 0 {
            self.create_controller(kind, &connect, connection, epoch)?
        } else {
            self.controller_of_io_queue(kind, &connect, epoch)?
        };
        // Any host may use discovery.
        let must_authenticate = self.key.is_some() && kind == ControllerType::Io;
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
        kind: ControllerType,
        connect: &Connect<'_>,
        connection: &Connection,
        epoch: Epoch,
    ) -> Result<Arc<Association>, Completion> {
        let data = connect.data;
        if data.cntlid != ANY_CNTLID {
            return Err(invalid(offset_of!(ConnectData, cntlid), true));
        }
        let parameters = ControllerParameters {
            cntrltype: kind,
            address: connection.local_address(),
            hostid: data.hostid,
            kato: connect.kato,
            epoch,
        };
        let controller = Controller::new(&self.subsystem, parameters)?;
        Ok(self.add(controller))
    }

    fn controller_of_io_queue(
        &self,
        kind: ControllerType,
        connect: &Connect<'_>,
        epoch: Epoch,
    ) -> Result<Arc<Association>, Completion> {
        // A controller of an earlier epoch is about to be removed.
        let association = self.get(connect.data.cntlid.get());
        let association = association
            .filter(|association| association.controller.parameters.epoch == epoch)
            .ok_or(invalid(offset_of!(ConnectData, cntlid), true))?;
        let controller = &association.controller;
        if kind == ControllerType::Discovery || controller.is_discovery() {
            return Err(invalid(QID, false));
        }
        if controller.parameters.hostid != connect.data.hostid {
            return Err(invalid(offset_of!(ConnectData, hostid), true));
        }
        if !controller.is_ready() {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        if connect.qid > IO_QUEUES_MAX || association.has_io_queue(connect.qid) {
            return Err(invalid(QID, false));
        }
        Ok(association)
    }
}

pub fn is_authentication(command: &Sqe) -> bool {
    let fctypes = [AUTHENTICATION_SEND, AUTHENTICATION_RECEIVE];
    command.opcode() == FABRICS && fctypes.contains(&command.fctype())
}

pub fn is_authentication_receive(command: &Sqe) -> bool {
    command.opcode() == FABRICS && command.fctype() == AUTHENTICATION_RECEIVE
}
