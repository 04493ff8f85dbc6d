//! `serve`: one connection of a host: a queue of a controller, from `ICReq` to its end.

use std::io;
use std::time::{Duration, Instant};

use super::connect::{Queue, asks_for_proof, proves};
use super::frame::Frame;
use super::input::{Coming, Data, Input, Unit, Units, located};
use super::pdu::{COMMON_BYTES, CONNECTION_BYTES, CONNECTION_RESPONSE, DATA_MAX, Reason};
use super::reply::Manner;
use super::target::Target;
use ssdlab_engine::{Command, CommandResult, Epoch, Operation, Payload, SendBuffer};
use ssdlab_nvme::{Completion, FABRICS, Plan, Status, Submission, View};
use ssdlab_wire::{
    Action, BusyPoll, Channel, Connection, Deadline, Parsed, Protocol, ReceiveBuffer,
};

/// Timeout for the rest of a PDU.
const PDU_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a connection looks for events to report.
const EVENT_PERIOD: Duration = Duration::from_secs(1);
/// Commands of a connection that may wait for their data.
const PENDING_MAX: usize = 256;
/// The longest message of an authentication: a negotiation that offers 255 protocols.
const PROOF_SENT_MAX: u32 = 8 + 255 * 64;

/// A connection.
pub(super) struct Session<'a> {
    pub target: &'a Target,
    /// Until the connection is a queue whose host has authenticated, if it has to.
    pub handshake: Option<Deadline>,
    pub queue: Option<Queue>,
    pub units: Units,
    /// The state of the controller when the messages arrived that are being parsed.
    view: Option<View>,
    /// The host failed to authenticate.
    pub has_failed: bool,
}

/// A command whose data has arrived.
pub(super) struct Request {
    pub submission: Submission,
    pub data: Data,
    plan: Result<Plan, Status>,
}

impl Request {
    pub fn room(&self) -> usize {
        self.submission.data_bytes() as usize
    }
}

/// Serves a host's connection until the host leaves.
///
/// # Errors
/// The stream's, a host that breaks the protocol, one whose keep-alive timer has expired, and a
/// power cut.
pub fn serve(
    connection: Connection,
    target: &Target,
    epoch: Epoch,
    handshake: Deadline,
) -> io::Result<()> {
    connection.limit_reads(PDU_TIMEOUT)?;
    let input = ReceiveBuffer::new(BusyPoll::new(connection.clone()));
    let (engine, resources) = (&target.subsystem.engine, &target.resources);
    let mut channel = Channel::new(input, connection, engine, epoch, resources);
    let frame = match Units::greeting(&mut channel.input)? {
        Ok(frame) => frame,
        Err(reason) => return Err(terminate(&mut channel, reason)),
    };
    let mut answer = [0; CONNECTION_BYTES];
    answer[0] = CONNECTION_RESPONSE;
    answer[2] = CONNECTION_BYTES as u8;
    answer[4] = CONNECTION_BYTES as u8;
    answer[11] = frame.digests;
    answer[12..16].copy_from_slice(&(DATA_MAX as u32).to_le_bytes());
    channel.replies.now().bytes().extend(answer);
    channel.send()?;
    let units = Units::new(frame);
    let (handshake, queue, view) = (Some(handshake), None, None);
    let mut session = Session { target, handshake, queue, units, view, has_failed: false };
    let served = ssdlab_wire::serve(&mut session, &mut channel);
    if let Some(queue) = session.queue.take_if(|queue| queue.number == 0) {
        target.remove(queue.attached.controller.number);
    }
    served
}

/// Sends `C2HTermReq` with the reason; returns that as an error.
fn terminate(channel: &mut Channel<'_>, reason: Reason) -> io::Error {
    let header = channel.input.peek();
    let header = &header[..header.len().min(COMMON_BYTES)];
    Frame::termination(channel.replies.now().bytes(), reason, header);
    // A host that has left needs no reason.
    let _ = channel.send();
    io::Error::new(io::ErrorKind::InvalidData, format!("{reason:?}"))
}

impl Protocol for Session<'_> {
    type Request = Request;
    const HEADER_BYTES: usize = COMMON_BYTES;

    fn parse(&mut self, channel: &mut Channel<'_>, may_wait: bool) -> io::Result<Parsed<Request>> {
        let checked = self.units.check(&channel.input);
        let whole = checked.map_err(|reason| terminate(channel, reason))?;
        if channel.input.ready() < whole {
            if !may_wait {
                return Ok(Parsed::Incomplete);
            }
            channel.input.wait_for(whole)?;
        }
        match self.units.take(channel).map_err(|reason| terminate(channel, reason))? {
            Unit::End => Ok(Parsed::End),
            Unit::Part => Ok(Parsed::Consumed),
            Unit::Command(submission, data) => self.command(channel, submission, data),
            Unit::Complete(submission, data) => Ok(self.request(channel, submission, data)),
        }
    }

    fn action(&self, request: &Request) -> Action {
        match request.plan {
            Ok(Plan::Drive(command)) => Action::Command(command),
            Ok(Plan::Steps) => Action::Alone,
            Err(_) => Action::Reply,
        }
    }

    fn payload<'p>(
        &'p self,
        input: &'p Input,
        request: &'p Request,
        command: &Command,
    ) -> Payload<'p> {
        Payload::Row(&request.data.bytes(input)[..command.length as usize])
    }

    fn write_data(
        &self,
        out: &mut SendBuffer,
        request: &Request,
        command: &Command,
        read: &dyn Fn(&mut SendBuffer) -> CommandResult,
    ) {
        let about = (request.submission.id(), command.length);
        let status = self.manner().read(out, about, read);
        self.note(request, status);
    }

    fn write_result(
        &self,
        out: &mut SendBuffer,
        request: &Request,
        command: &Command,
        result: CommandResult,
    ) {
        let status = match result {
            Ok(()) => Status::SUCCESS,
            Err(errno) => Status::of_errno(errno, command.operation),
        };
        self.note(request, status);
        self.manner().response(out, request.submission.id(), status.into());
    }

    fn reply(&self, channel: &mut Channel<'_>, request: &Request) {
        let status = request.plan.expect_err("others are performed");
        self.note(request, status);
        self.respond(channel, request.submission.id(), status.into());
    }

    fn perform_alone(&mut self, channel: &mut Channel<'_>, request: Request) -> io::Result<()> {
        self.perform(channel, &request)
    }

    fn wake_at(&self, now: Instant) -> io::Result<Option<Instant>> {
        let Some(queue) = self.queue.as_ref().filter(|queue| queue.number == 0) else {
            return Ok(None);
        };
        let expires = queue.attached.expires();
        if expires.is_some_and(|expires| expires <= now) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let events = queue.attached.controller.awaits_event().then_some(now + EVENT_PERIOD);
        Ok(events.into_iter().chain(expires).min())
    }

    fn may_idle(&self) -> bool {
        self.queue.as_ref().is_some_and(Queue::is_open)
    }

    fn begin_batch(&mut self) {
        self.view = self.queue.as_ref().map(|queue| {
            if queue.is_open() {
                queue.attached.hear();
            }
            queue.attached.controller.view()
        });
    }

    fn before_send(&mut self, channel: &mut Channel<'_>) {
        self.units.ask_for_data(channel);
        let Some(queue) = self.queue.as_ref().filter(|queue| queue.number == 0) else { return };
        while let Some((id, completion)) = queue.attached.controller.event() {
            self.respond(channel, id, completion);
        }
    }

    fn held_bytes(&self) -> usize {
        self.units.held_bytes()
    }
}

impl Session<'_> {
    /// Checks a command, and requests its data where that was not sent along.
    fn command(
        &mut self,
        channel: &mut Channel<'_>,
        submission: Submission,
        came: Data,
    ) -> io::Result<Parsed<Request>> {
        if let Some(queue) = &mut self.queue {
            queue.advance();
        }
        if self.has_failed && !asks_for_proof(&submission) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let is_proof = proves(&submission);
        let is_admin = self.queue.as_ref().is_none_or(|queue| queue.number == 0);
        let fits = || match &self.view {
            Some(view) => view.check_transfer(is_admin, &submission).is_ok(),
            None => self.target.subsystem.view().check_transfer(is_admin, &submission).is_ok(),
        };
        let refused = if self.units.is_pending(submission.id()) {
            Some(Status::ID_CONFLICT)
        } else if !is_proof && self.queue.as_ref().is_some_and(|queue| !queue.is_open()) {
            Some(Status::PROOF_REQUIRED)
        } else if !fits() || is_proof && submission.data_bytes() > PROOF_SENT_MAX {
            Some(Status::INVALID_FIELD)
        } else {
            None
        };
        match refused.map_or_else(|| located(&submission, came), Err) {
            Err(status) => {
                self.respond(channel, submission.id(), status.into());
                Ok(Parsed::Consumed)
            }
            Ok((data, Coming::Now)) => Ok(self.request(channel, submission, data)),
            Ok((_, Coming::OnDemand)) => {
                if self.queue.is_none() || self.units.pending() >= PENDING_MAX {
                    return Err(terminate(channel, Reason::Sequence));
                }
                self.units.defer(submission);
                self.units.ask_for_data(channel);
                Ok(Parsed::Consumed)
            }
        }
    }

    /// A command whose data has arrived.
    fn request(
        &self,
        channel: &mut Channel<'_>,
        submission: Submission,
        data: Data,
    ) -> Parsed<Request> {
        if data == Data::Broken {
            self.respond(channel, submission.id(), Status::BROKEN_DATA.into());
            return Parsed::Consumed;
        }
        let plan = match (&self.queue, &self.view) {
            (Some(queue), Some(view)) if queue.number > 0 && submission.opcode() != FABRICS => {
                let room = submission.data_bytes() as usize;
                queue.attached.controller.plan(view, &submission, room)
            }
            _ => Ok(Plan::Steps),
        };
        let reply_bytes = match plan {
            Ok(Plan::Drive(Command { operation: Operation::Read, length, .. })) => length as usize,
            _ => 0,
        };
        Parsed::Request(Request { submission, data, plan }, reply_bytes)
    }

    pub fn respond(&self, channel: &mut Channel<'_>, id: u16, completion: Completion) {
        self.manner().response(channel.replies.now(), id, completion);
    }

    /// Records a failed command in the error log.
    fn note(&self, request: &Request, status: Status) {
        if !status.is_success() {
            let number = self.queue.as_ref().map_or(0, |queue| queue.number);
            self.target.subsystem.note_failed(number, &request.submission, status);
        }
    }

    pub fn manner(&self) -> Manner {
        let frame = self.units.frame;
        match &self.queue {
            Some(queue) => Manner { frame, head: queue.head(), data_ends: !queue.has_flow_control },
            None => Manner { frame, head: 0, data_ends: false },
        }
    }
}
