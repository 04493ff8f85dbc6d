//! `Session`: one connection of a host: a queue of a controller, from its first unit to its end.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::connect::Queue;
use super::frame::Frame;
use super::input::{Data, Units};
use super::pdu::{COMMON_BYTES, CONNECTION_BYTES, CONNECTION_RESPONSE, DATA_MAX, Reason};
use super::reply::Manner;
use super::target::Target;
use ssdlab_engine::Epoch;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_engine::{Command, Engine};
use ssdlab_nvme::io::Execution;
use ssdlab_nvme::opcode::FABRICS;
use ssdlab_nvme::{Completion, Sqe, Status};
use ssdlab_wire::Connection;
use ssdlab_wire::Deadline;
use ssdlab_wire::{BusyPoll, ReceiveBuffer, Replies};

/// So long the rest of a unit may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Of a connection's result: its host has to prove that it may have it.
const PROOF_REQUIRED: u32 = 1 << 17;

/// A connection.
pub struct Session<'a> {
    pub(super) units: Units,
    pub(super) output: Connection,
    pub(super) target: &'a Target,
    /// The epoch that the connection belongs to.
    pub(super) epoch: Epoch,
    /// Until the connection is a queue whose host has proved what it has to.
    pub(super) handshake: Option<Deadline>,
    pub(super) queue: Option<Queue>,
    /// Commands whose data is there, and that were not done yet.
    pub(super) batch: VecDeque<Asked>,
    pub(super) replies: Replies,
    pub(super) leaving: bool,
    /// The host failed to prove that it may have its queue.
    pub(super) has_failed: bool,
}

/// A command with the place of its data and how it is done.
pub(super) struct Asked {
    pub submission: Sqe,
    pub data: Data,
    pub plan: Result<Execution, Status>,
}

impl Asked {
    /// What the drive does of it, together with what else it does.
    pub fn command(&self) -> Option<Command> {
        match self.plan {
            Ok(Execution::Drive(command)) => Some(command),
            _ => None,
        }
    }

    pub fn is_alone(&self) -> bool {
        self.plan == Ok(Execution::Controller)
    }

    pub fn room(&self) -> usize {
        self.submission.sgl_length() as usize
    }
}

impl<'a> Session<'a> {
    /// Goes on with a connection.
    ///
    /// # Errors
    /// The system's.
    pub fn new(
        link: Connection,
        target: &'a Target,
        epoch: Epoch,
        handshake: Deadline,
    ) -> io::Result<Self> {
        link.limit_reads(PATIENCE)?;
        let (handshake, memory) = (Some(handshake), target.resources.memory.payload(&link));
        let (output, units) =
            (link.clone(), Units::new(ReceiveBuffer::new(BusyPoll::new(link)), memory));
        let (batch, replies) = (VecDeque::new(), Replies::default());
        let (queue, leaving, has_failed) = (None, false, false);
        Ok(Self {
            units,
            output,
            target,
            epoch,
            handshake,
            queue,
            batch,
            replies,
            leaving,
            has_failed,
        })
    }

    /// Serves it until the host leaves.
    ///
    /// # Errors
    /// The stream's, a host that breaks the protocol, and one that was not heard of for too long.
    pub fn run(&mut self) -> io::Result<()> {
        let served = self.serve();
        if let Some(queue) = self.queue.take_if(|queue| queue.number == 0) {
            self.target.remove(queue.attached.controller.cntlid);
        }
        served
    }

    fn serve(&mut self) -> io::Result<()> {
        self.greet()?;
        loop {
            if self.batch.is_empty() && !self.leaving {
                self.units.input.release();
                self.units.give_back();
                self.leaving = !self.receive()?;
            }
            self.perform()?;
            self.units.ask_for_data(self.replies.now().bytes());
            self.tell_events();
            self.send()?;
            if !self.batch.is_empty() {
                self.wait_for_room()?;
            } else if self.leaving {
                let Some(due) = self.replies.next_due() else { return Ok(()) };
                wait_precisely(due, self.spin())?;
            }
        }
    }

    fn greet(&mut self) -> io::Result<()> {
        let frame = match self.units.greeting()? {
            Ok(frame) => frame,
            Err(reason) => return Err(self.terminate(reason)),
        };
        self.units.frame = frame;
        let mut answer = [0; CONNECTION_BYTES];
        answer[0] = CONNECTION_RESPONSE;
        answer[2] = CONNECTION_BYTES as u8;
        answer[4] = CONNECTION_BYTES as u8;
        answer[11] = frame.digests;
        answer[12..16].copy_from_slice(&(DATA_MAX as u32).to_le_bytes());
        self.replies.now().bytes().extend(answer);
        self.send()
    }

    /// The first command of a connection makes it a queue.
    pub(super) fn connect(&mut self, asked: &Asked) {
        let (submission, id) = (&asked.submission, asked.submission.cid());
        if submission.opcode() != FABRICS {
            self.respond(id, Status::COMMAND_SEQUENCE_ERROR.into());
            return;
        }
        let sent = self.units.bytes(&asked.data);
        match self.target.connect(submission, sent, &self.output, self.epoch) {
            Ok(mut queue) => {
                queue.advance();
                let number = queue.attached.controller.cntlid;
                let proof = if queue.is_open() { 0 } else { PROOF_REQUIRED };
                if queue.is_open() {
                    self.handshake = None;
                }
                self.queue = Some(queue);
                self.respond(id, Completion::with_dw0(u32::from(number) | proof));
            }
            Err(completion) => self.respond(id, completion),
        }
    }

    fn tell_events(&mut self) {
        while let Some((id, completion)) = self
            .queue
            .as_ref()
            .filter(|queue| queue.number == 0)
            .and_then(|queue| queue.attached.controller.next_event())
        {
            self.respond(id, completion);
        }
    }

    pub(super) fn respond(&mut self, id: u16, completion: Completion) {
        let manner = self.manner();
        manner.response(self.replies.now(), id, completion);
    }

    pub(super) fn manner(&self) -> Manner {
        let frame: Frame = self.units.frame;
        match &self.queue {
            Some(queue) => Manner { frame, head: queue.head(), data_ends: !queue.has_flow_control },
            None => Manner { frame, head: 0, data_ends: false },
        }
    }

    /// Tells the host why its connection ends; returns that as an error.
    pub(super) fn terminate(&mut self, reason: Reason) -> io::Error {
        let header = self.units.input.peek();
        let header = header[..header.len().min(COMMON_BYTES)].to_vec();
        Frame::termination(self.replies.now().bytes(), reason, &header);
        // Who went away needs no reason.
        let _ = self.send();
        io::Error::new(io::ErrorKind::InvalidData, format!("{reason:?}"))
    }

    pub(super) fn engine(&self) -> &'a Engine {
        &self.target.subsystem.engine
    }

    pub(super) fn spin(&self) -> Duration {
        self.engine().clock().spin()
    }

    fn send(&mut self) -> io::Result<()> {
        self.replies.send(&mut self.output, self.target.subsystem.engine.clock())
    }

    /// Waits until the drive's queue has room, or until a reply is due.
    fn wait_for_room(&mut self) -> io::Result<()> {
        let times = [self.engine().next_free(), self.replies.next_due()];
        if let Some(time) = times.into_iter().flatten().min() {
            wait_precisely(time, self.spin())?;
        }
        Ok(())
    }
}
