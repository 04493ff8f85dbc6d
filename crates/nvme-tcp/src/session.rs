//! `serve`: one connection of a host, which is one queue, from `ICReq` to its end.

use std::io;
use std::mem::offset_of;
use std::time::{Duration, Instant};

use super::fabrics::{Queue, is_authentication, is_authentication_receive};
use super::pdu::{CommonHeader, DDGST, FatalError, HDGST, IC_REQ, ICReq};
use super::receive::{HostBytes, Pdu, PduReader, map_sgl};
use super::respond::{PduFormat, Responder};
use super::target::Target;
use ssdlab_engine::{Command, CommandResult, Epoch, Operation, Payload, SendBuffer};
use ssdlab_nvme::io::Execution;
use ssdlab_nvme::opcode::FABRICS;
use ssdlab_nvme::{Completion, NamespaceView, Sqe, Status};
use ssdlab_wire::{
    Action, BusyPoll, Channel, Connection, Input, Parsed, Protocol, ReadFn, ReceiveBuffer, Timeout,
};
use zerocopy::FromBytes;

/// Timeout for the rest of a PDU.
const PDU_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a controller looks for events to report.
const EVENT_PERIOD: Duration = Duration::from_secs(1);
/// Commands of a connection that may wait for their data.
const PENDING_MAX: usize = 256;
/// The longest message of Authentication Send: `AUTH_Negotiate` with 255 protocol descriptors.
const AUTHENTICATION_BYTES_MAX: u32 = 8 + 255 * 64;

/// A connection that has been initialized.
pub(super) struct Session<'a> {
    pub target: &'a Target,
    /// The timeout until Connect has succeeded and the host has authenticated, if it has to.
    pub handshake: Option<Timeout>,
    /// `None` until Connect has succeeded.
    pub queue: Option<Queue>,
    reader: PduReader,
    /// The state of the controller when the PDUs arrived that are being parsed.
    view: Option<NamespaceView>,
    /// The batch ends with a Fabrics command: Connect, authentication and Property Set decide what
    /// the commands behind them may do.
    ends_with_fabrics: bool,
    pub failed_authentication: bool,
}

/// A command whose data has arrived.
pub(super) struct Request {
    pub command: Sqe,
    pub data: HostBytes,
    execution: Result<Execution, Status>,
}

impl Request {
    /// The command for the drive, of a request that has one.
    fn drive_command(&self) -> Command {
        let Ok(Execution::Drive(command)) = self.execution else {
            unreachable!("the drive accepted it")
        };
        command
    }
}

/// Serves a host's connection until the host leaves, its keep-alive timer expires, or the power is
/// cut.
pub fn serve(
    connection: Connection,
    target: &Target,
    epoch: Epoch,
    handshake: Timeout,
) -> io::Result<()> {
    connection.set_read_timeout(PDU_TIMEOUT)?;
    let input = ReceiveBuffer::new(BusyPoll::new(connection.clone()));
    let (engine, client_limits) = (&target.subsystem.engine, &target.client_limits);
    let mut channel = Channel::new(input, connection, engine, epoch, client_limits);
    if !channel.input.wait_for(size_of::<ICReq>())? {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let format = take_ic_req(&mut channel.input).map_err(|error| terminate(&mut channel, error))?;
    format.ic_resp(channel.replies.immediate.bytes());
    channel.send()?;
    let mut session = Session {
        target,
        handshake: Some(handshake),
        queue: None,
        reader: PduReader::new(format),
        view: None,
        ends_with_fabrics: false,
        failed_authentication: false,
    };
    let served = ssdlab_wire::serve(&mut session, &mut channel);
    if let Some(queue) = session.queue.take_if(|queue| queue.qid == 0) {
        target.remove(queue.association.controller.cntlid);
    }
    served
}

/// Takes the `ICReq`, which has arrived.
fn take_ic_req(input: &mut Input) -> Result<PduFormat, FatalError> {
    let (pdu, _) = ICReq::read_from_prefix(input.peek()).expect("an ICReq has arrived");
    let invalid = |field| Err(FatalError::InvalidPduHeaderField(field));
    if pdu.ch.pdu_type != IC_REQ {
        return Err(FatalError::PduSequenceError);
    }
    if usize::from(pdu.ch.hlen) != size_of::<ICReq>() {
        return invalid(offset_of!(CommonHeader, hlen));
    }
    if pdu.ch.plen() != size_of::<ICReq>() {
        return invalid(offset_of!(CommonHeader, plen));
    }
    if pdu.pfv != 0 {
        return Err(FatalError::UnsupportedParameter(offset_of!(ICReq, pfv)));
    }
    if pdu.hpda > 31 {
        return invalid(offset_of!(ICReq, hpda));
    }
    input.consume(size_of::<ICReq>());
    let data_alignment = 4 * (usize::from(pdu.hpda) + 1);
    Ok(PduFormat { dgst: pdu.dgst & (HDGST | DDGST), data_alignment })
}

/// Sends a `C2HTermReq`; returns why as an error.
fn terminate(channel: &mut Channel<'_>, error: FatalError) -> io::Error {
    let received = channel.input.peek();
    let received = &received[..received.len().min(size_of::<CommonHeader>())];
    PduFormat::c2h_term_req(channel.replies.immediate.bytes(), error, received);
    // The host may have left already.
    let _ = channel.send();
    io::Error::new(io::ErrorKind::InvalidData, format!("{error:?}"))
}

impl Protocol for Session<'_> {
    type Request = Request;
    const HEADER_BYTES: usize = size_of::<CommonHeader>();

    fn parse(&mut self, channel: &mut Channel<'_>, may_wait: bool) -> io::Result<Parsed<Self>> {
        if self.ends_with_fabrics {
            return Ok(Parsed::Incomplete);
        }
        let header = self.reader.header(&channel.input);
        let header = header.map_err(|error| terminate(channel, error))?;
        if channel.input.available() < header.plen() {
            if !may_wait {
                return Ok(Parsed::Incomplete);
            }
            channel.input.wait_for(header.plen())?;
        }
        let pdu = self.reader.take(channel, header).map_err(|error| terminate(channel, error))?;
        let parsed = match pdu {
            Pdu::CapsuleCmd(command, data) => self.capsule(channel, command, data)?,
            Pdu::LastH2CData(command, data) => self.request(channel, command, data),
            Pdu::H2CData => Parsed::Consumed,
            Pdu::H2CTermReq => Parsed::End,
        };
        self.ends_with_fabrics = matches!(
            &parsed,
            Parsed::Request(request, _) if request.command.opcode() == FABRICS
        );
        Ok(parsed)
    }

    fn action(&self, request: &Request) -> Action {
        match request.execution {
            Ok(Execution::Drive(command)) => Action::Command(command),
            Ok(Execution::Controller) => Action::Alone,
            Err(_) => Action::Reply,
        }
    }

    fn payload<'p>(&self, input: &'p Input, request: &'p Request) -> Payload<'p> {
        let length = request.drive_command().length as usize;
        Payload::Slice(&request.data.bytes(input)[..length])
    }

    fn write_data(&self, out: &mut SendBuffer, request: &Request, read: &ReadFn<'_>) {
        let (cid, length) = (request.command.cid(), request.drive_command().length);
        let status = self.responder().read(out, cid, length, read);
        self.log_error(request, status);
    }

    fn write_result(&self, out: &mut SendBuffer, request: &Request, result: CommandResult) {
        let status = match result {
            Ok(()) => Status::SUCCESS,
            Err(errno) => Status::from_errno(errno, request.drive_command().operation),
        };
        self.log_error(request, status);
        self.responder().response(out, request.command.cid(), status.into());
    }

    fn reply(&self, channel: &mut Channel<'_>, request: &Request) {
        let status = request.execution.expect_err("only refused commands need nothing but a reply");
        self.log_error(request, status);
        self.respond(channel, request.command.cid(), status.into());
    }

    fn perform_alone(&mut self, channel: &mut Channel<'_>, request: Request) -> io::Result<()> {
        self.perform(channel, &request)
    }

    fn wake_at(&self, now: Instant) -> io::Result<Option<Instant>> {
        let Some(queue) = self.admin_queue() else { return Ok(None) };
        let expires = queue.association.expires();
        if expires.is_some_and(|expires| expires <= now) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let has_event_request = queue.association.controller.has_event_requests();
        let look = has_event_request.then_some(now + EVENT_PERIOD);
        Ok(look.into_iter().chain(expires).min())
    }

    fn may_idle(&self) -> bool {
        self.queue.as_ref().is_some_and(Queue::is_authenticated)
    }

    fn begin_batch(&mut self) {
        self.ends_with_fabrics = false;
        self.view = self.queue.as_ref().map(|queue| {
            if queue.is_authenticated() {
                queue.association.note_traffic();
            }
            queue.association.controller.view()
        });
    }

    fn before_send(&mut self, channel: &mut Channel<'_>) {
        self.reader.send_r2ts(channel);
        let Some(queue) = self.admin_queue() else { return };
        while let Some((cid, completion)) = queue.association.controller.next_event() {
            self.respond(channel, cid, completion);
        }
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }
}

impl Session<'_> {
    /// Checks a command, and requests its data if its capsule does not carry it.
    fn capsule(
        &mut self,
        channel: &mut Channel<'_>,
        command: Sqe,
        in_capsule: HostBytes,
    ) -> io::Result<Parsed<Self>> {
        if let Some(queue) = &mut self.queue {
            queue.advance();
        }
        if self.failed_authentication && !is_authentication_receive(&command) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        match self.check(&command).and_then(|()| map_sgl(&command, in_capsule)) {
            Err(status) => {
                self.respond(channel, command.cid(), status.into());
                Ok(Parsed::Consumed)
            }
            Ok(Some(data)) => Ok(self.request(channel, command, data)),
            Ok(None) if self.queue.is_none() || self.reader.pending() >= PENDING_MAX => {
                Err(terminate(channel, FatalError::PduSequenceError))
            }
            Ok(None) => {
                self.reader.queue_r2t(command);
                self.reader.send_r2ts(channel);
                Ok(Parsed::Consumed)
            }
        }
    }

    /// Checks what has to hold before data is received for a command.
    fn check(&self, command: &Sqe) -> Result<(), Status> {
        if self.reader.is_pending(command.cid()) {
            return Err(Status::COMMAND_ID_CONFLICT);
        }
        let is_authentication = is_authentication(command);
        if !is_authentication && self.queue.as_ref().is_some_and(|queue| !queue.is_authenticated())
        {
            return Err(Status::AUTHENTICATION_REQUIRED);
        }
        let is_admin = self.queue.as_ref().is_none_or(|queue| queue.qid == 0);
        let transfer = match &self.view {
            Some(view) => view.check_mdts(is_admin, command),
            None => self.target.subsystem.view().check_mdts(is_admin, command),
        };
        let is_too_long = is_authentication && command.sgl_length() > AUTHENTICATION_BYTES_MAX;
        if transfer.is_err() || is_too_long { Err(Status::INVALID_FIELD) } else { Ok(()) }
    }

    /// Plans a command whose data has arrived.
    fn request(&self, channel: &mut Channel<'_>, command: Sqe, data: HostBytes) -> Parsed<Self> {
        if data == HostBytes::DigestError {
            self.respond(channel, command.cid(), Status::TRANSIENT_TRANSPORT_ERROR.into());
            return Parsed::Consumed;
        }
        let execution = match (&self.queue, &self.view) {
            (Some(queue), Some(view)) if queue.qid > 0 && command.opcode() != FABRICS => {
                let length = command.sgl_length() as usize;
                ssdlab_nvme::io::prepare(&queue.association.controller, view, &command, length)
            }
            _ => Ok(Execution::Controller),
        };
        let reply_bytes = match execution {
            Ok(Execution::Drive(Command { operation: Operation::Read, length, .. })) => {
                length as usize
            }
            _ => 0,
        };
        Parsed::Request(Request { command, data, execution }, reply_bytes)
    }

    fn admin_queue(&self) -> Option<&Queue> {
        self.queue.as_ref().filter(|queue| queue.qid == 0)
    }

    pub fn respond(&self, channel: &mut Channel<'_>, cid: u16, completion: Completion) {
        self.responder().response(&mut channel.replies.immediate, cid, completion);
    }

    /// Adds a failed command to the Error Information log.
    fn log_error(&self, request: &Request, status: Status) {
        if !status.is_success() {
            let qid = self.queue.as_ref().map_or(0, |queue| queue.qid);
            self.target.subsystem.record_error(qid, &request.command, status);
        }
    }

    pub fn responder(&self) -> Responder {
        let (sqhd, may_omit_response) = match &self.queue {
            Some(queue) => (queue.sqhd(), !queue.has_flow_control),
            None => (0, false),
        };
        Responder { format: self.reader.format, sqhd, may_omit_response }
    }
}
