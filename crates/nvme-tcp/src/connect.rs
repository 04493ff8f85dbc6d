//! Fabrics commands: a connection becomes a queue of a controller; properties.

use std::sync::Arc;
use std::time::Duration;

use super::proof::Proof;
use super::target::{Attached, Place, Target};
use ssdlab_engine::Epoch;
use ssdlab_nvme::{
    Completion, Controller, ControllerParameters, ControllerType, DISCOVERY_NQN, IO_QUEUES_MAX,
    QUEUE_ENTRIES_MAX, Sqe, Status,
};
use ssdlab_wire::Connection;

/// Types of Fabrics command.
const SET_PROPERTY: u8 = 0x00;
const CONNECT: u8 = 0x01;
const GET_PROPERTY: u8 = 0x04;

/// Any controller.
const ANY: u16 = 0xffff;
/// The host lets submission queues go without flow control.
const NO_FLOW_CONTROL: u8 = 1 << 2;
/// Bytes of what a host says of itself when it connects.
const CONNECT_BYTES: usize = 1024;

/// A connection's place: a queue of a controller.
pub struct Queue {
    pub number: u16,
    pub attached: Arc<Attached>,
    /// Submissions so far, modulo the queue's entries.
    head: u16,
    entries: u16,
    pub has_flow_control: bool,
    /// What its host has to prove; none where it need not.
    pub proof: Option<Proof>,
    /// An I/O queue's, once its host has proved what it has to.
    place: Option<Place>,
}

impl Queue {
    /// Notes a submission.
    pub fn advance(&mut self) {
        self.head = (self.head + 1) % self.entries;
    }

    /// Whether its commands are done: its host has proved what it has to.
    pub fn is_open(&self) -> bool {
        self.proof.as_ref().is_none_or(|proof| proof.is_given)
    }

    /// Takes an I/O queue's place, if it is free; an admin queue needs none.
    pub fn occupy(&mut self, link: &Connection) -> bool {
        if self.number > 0 && self.place.is_none() {
            self.place = self.attached.place(self.number, link);
        }
        self.number == 0 || self.place.is_some()
    }

    /// Gives its place up.
    pub fn vacate(&mut self) {
        self.place = None;
    }

    /// How far the submission queue was read, as a response says.
    pub fn head(&self) -> u16 {
        if self.has_flow_control { self.head } else { u16::MAX }
    }
}

/// A field that is wrong: where it stands in the command, or in its data.
fn wrong(at: u32, in_data: bool) -> Completion {
    let result = u64::from(at) | u64::from(in_data) << 16;
    Completion { result, status: Status::CONNECT_INVALID_PARAMETERS }
}

/// What a host that connects says.
struct FaultSpec<'a> {
    queue: u16,
    entries: u16,
    attributes: u8,
    patience: Duration,
    host: [u8; 16],
    controller: u16,
    subsystem: &'a [u8],
    name: &'a [u8],
}

impl<'a> FaultSpec<'a> {
    fn parse(submission: &Sqe, data: &'a [u8]) -> Result<Self, Completion> {
        if submission.fctype() != CONNECT {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        if submission.cdw(10) & 0xffff != 0 {
            return Err(Status::CONNECT_INCOMPATIBLE_FORMAT.into());
        }
        if data.len() < CONNECT_BYTES {
            return Err(Status::DATA_SGL_LENGTH_INVALID.into());
        }
        let name = |from: usize| {
            let field = &data[from..from + 256];
            field.split(|byte| *byte == 0).next().unwrap_or(field)
        };
        Ok(Self {
            queue: (submission.cdw(10) >> 16) as u16,
            // One less is said.
            entries: (submission.cdw(11) as u16).saturating_add(1),
            attributes: (submission.cdw(11) >> 16) as u8,
            patience: Duration::from_millis(submission.cdw(12).into()),
            host: data[..16].try_into().expect("sixteen bytes"),
            controller: u16::from_le_bytes([data[16], data[17]]),
            subsystem: name(256),
            name: name(512),
        })
    }
}

impl Target {
    /// Makes a connection a queue, as a host wishes; how the command ended else.
    pub fn connect(
        &self,
        submission: &Sqe,
        data: &[u8],
        link: &Connection,
        epoch: Epoch,
    ) -> Result<Queue, Completion> {
        let wish = FaultSpec::parse(submission, data)?;
        let kind = if wish.subsystem == DISCOVERY_NQN.as_bytes() {
            ControllerType::Discovery
        } else if wish.subsystem == self.subsystem.identity.subnqn.as_bytes() {
            ControllerType::Io
        } else {
            return Err(wrong(256, true));
        };
        if wish.entries < 2 || wish.queue > 0 && wish.entries > QUEUE_ENTRIES_MAX {
            return Err(wrong(44, false));
        }
        let attached = if wish.queue == 0 {
            self.new_controller(kind, &wish, link, epoch)?
        } else {
            self.of_io_queue(kind, &wish, epoch)?
        };
        // Where the drive is everybody may ask.
        let has_to_prove = self.secret.is_some() && kind == ControllerType::Io;
        let mut queue = Queue {
            number: wish.queue,
            attached,
            head: 0,
            entries: wish.entries,
            has_flow_control: wish.attributes & NO_FLOW_CONTROL == 0,
            proof: has_to_prove.then(|| Proof::new(wish.name)),
            place: None,
        };
        if queue.is_open() {
            queue.attached.hear();
            if !queue.occupy(link) {
                return Err(wrong(42, false));
            }
        }
        Ok(queue)
    }

    fn new_controller(
        &self,
        kind: ControllerType,
        wish: &FaultSpec<'_>,
        link: &Connection,
        epoch: Epoch,
    ) -> Result<Arc<Attached>, Completion> {
        if wish.controller != ANY {
            return Err(wrong(16, true));
        }
        let parameters = ControllerParameters {
            cntrltype: kind,
            address: link.local_address(),
            hostid: wish.host,
            kato: wish.patience,
            epoch,
        };
        let controller = Controller::new(&self.subsystem, parameters)?;
        Ok(self.add(controller))
    }

    /// The controller of an I/O queue, whose place is free.
    fn of_io_queue(
        &self,
        kind: ControllerType,
        wish: &FaultSpec<'_>,
        epoch: Epoch,
    ) -> Result<Arc<Attached>, Completion> {
        // A controller of an epoch that is over is about to be removed.
        let attached =
            self.get(wish.controller).filter(|is| is.controller.parameters.epoch == epoch);
        let attached = attached.ok_or(wrong(16, true))?;
        if kind == ControllerType::Discovery || attached.controller.is_discovery() {
            return Err(wrong(42, false));
        }
        if attached.controller.parameters.hostid != wish.host {
            return Err(wrong(0, true));
        }
        if !attached.controller.is_ready() {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        if wish.queue > IO_QUEUES_MAX || attached.has_queue(wish.queue) {
            return Err(wrong(42, false));
        }
        Ok(attached)
    }
}

impl Queue {
    /// Does a Fabrics command of a connected queue.
    pub fn fabrics(&self, submission: &Sqe) -> Completion {
        let controller = &self.attached.controller;
        let (offset, wide) = (submission.cdw(11), submission.cdw(10) & 7 == 1);
        let done = match submission.fctype() {
            _ if self.number != 0 => Err(Status::COMMAND_SEQUENCE_ERROR),
            GET_PROPERTY => match controller.property(offset) {
                // Only the capabilities have eight bytes.
                Some(value) if wide == (offset == 0) => {
                    Ok(Completion { result: value, ..Completion::SUCCESS })
                }
                _ => Err(Status::INVALID_FIELD),
            },
            SET_PROPERTY if wide => Err(Status::INVALID_FIELD),
            SET_PROPERTY => controller.set_property(offset, submission.cdw64(12)).map(|is_reset| {
                if is_reset {
                    self.attached.break_off();
                }
                Completion::SUCCESS
            }),
            CONNECT => Err(Status::COMMAND_SEQUENCE_ERROR),
            _ => Err(Status::INVALID_FIELD),
        };
        done.unwrap_or_else(Completion::from)
    }
}
