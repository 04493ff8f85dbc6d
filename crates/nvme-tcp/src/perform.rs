//! Commands that a session performs alone: Fabrics, admin, and I/O commands of several steps.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::dhchap::Progress;
use super::fabrics::is_authentication;
use super::session::{Request, Session};
use ssdlab_nvme::opcode::FABRICS;
use ssdlab_nvme::opcode::fctype::AUTHENTICATION_SEND;
use ssdlab_nvme::{Completion, Context, HostData, Outcome, Status};
use ssdlab_wire::Channel;

/// AUTHREQ in the result of Connect: the host has to authenticate.
const AUTHREQ_ATR: u32 = 1 << 17;
/// CDW10 of Authentication Send and Receive: SECP E9h (NVM Express), SPSP1 01h, SPSP0 01h.
const NVME_AUTHENTICATION: u32 = 0xe901_0100;
/// AL of Authentication Receive: room for the longest message, and a bound.
const RECEIVE_BYTES: RangeInclusive<usize> = 48..=4096;
/// A host that failed to authenticate may receive the reason for this long.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(1);

struct CommandData<'a> {
    /// Length of the host's buffer.
    length: usize,
    from_host: &'a [u8],
    for_host: Vec<u8>,
}

impl HostData for CommandData<'_> {
    fn length(&self) -> usize {
        self.length
    }

    fn payload(&self) -> &[u8] {
        self.from_host
    }

    fn send(&mut self, bytes: &[u8]) {
        assert!(
            self.for_host.len() + bytes.len() <= self.length,
            "more data than the host expects"
        );
        self.for_host.extend(bytes);
    }
}

impl Session<'_> {
    pub fn perform(&mut self, channel: &mut Channel<'_>, request: &Request) -> io::Result<()> {
        let command = &request.command;
        let Some(queue) = &self.queue else {
            self.connect(channel, request);
            return Ok(());
        };
        if is_authentication(command) && self.target.key.is_some() {
            return self.authenticate(channel, request);
        }
        if command.opcode() == FABRICS {
            let completion = queue.fabrics(command);
            self.respond(channel, command.cid(), completion);
            return Ok(());
        }
        let from_host = request.data.bytes(&channel.input);
        let length = command.sgl_length() as usize;
        let mut data = CommandData { length, from_host, for_host: Vec::new() };
        let controller = &queue.association.controller;
        let mut context = Context { controller, sqe: command, data: &mut data };
        let outcome = ssdlab_nvme::dispatch(queue.qid, &mut context);
        let Outcome { completion, due } = outcome.ok_or(io::ErrorKind::ConnectionAborted)?;
        let Some(completion) = completion else { return Ok(()) };
        let (responder, for_host) = (self.responder(), data.for_host);
        channel.replies.add(due, |out| responder.data(out, command.cid(), &for_host, completion));
        Ok(())
    }

    /// Performs the first command of a connection, which has to be Connect.
    fn connect(&mut self, channel: &mut Channel<'_>, request: &Request) {
        let (command, cid) = (&request.command, request.command.cid());
        if command.opcode() != FABRICS {
            self.respond(channel, cid, Status::COMMAND_SEQUENCE_ERROR.into());
            return;
        }
        let data = request.data.bytes(&channel.input);
        match self.target.connect(command, data, &channel.output, channel.epoch) {
            Ok(mut queue) => {
                queue.advance();
                let cntlid = u32::from(queue.association.controller.cntlid);
                let authreq = if queue.is_authenticated() { 0 } else { AUTHREQ_ATR };
                if queue.is_authenticated() {
                    self.handshake = None;
                }
                self.queue = Some(queue);
                self.respond(channel, cid, Completion::with_dw0(cntlid | authreq));
            }
            Err(completion) => self.respond(channel, cid, completion),
        }
    }

    /// Performs Authentication Send or Receive. After a failure the host may receive the reason,
    /// once; anything else ends the session.
    fn authenticate(&mut self, channel: &mut Channel<'_>, request: &Request) -> io::Result<()> {
        let command = &request.command;
        let (cid, room) = (command.cid(), command.sgl_length() as usize);
        let is_send = command.fctype() == AUTHENTICATION_SEND;
        if self.failed_authentication && is_send {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let is_valid = command.cdw(10) == NVME_AUTHENTICATION
            && command.cdw(11) as usize == room
            && (is_send || RECEIVE_BYTES.contains(&room));
        let authentication = self.queue.as_mut().and_then(|queue| queue.authentication.as_mut());
        let (Some(authentication), Some(key)) =
            (authentication.filter(|_| is_valid), &self.target.key)
        else {
            self.respond(channel, cid, Status::INVALID_FIELD.into());
            return Ok(());
        };
        if is_send {
            let message = request.data.bytes(&channel.input);
            let subnqn = self.target.subsystem.identity.subnqn.as_bytes();
            let progress = authentication.send(message, key, subnqn);
            self.respond(channel, cid, Completion::SUCCESS);
            return self.apply_progress(channel, progress);
        }
        let Some((mut message, is_last)) = authentication.receive() else {
            self.respond(channel, cid, Status::COMMAND_SEQUENCE_ERROR.into());
            return Ok(());
        };
        channel.closing |= is_last;
        message.resize(room, 0);
        self.responder().data(&mut channel.replies.immediate, cid, &message, Completion::SUCCESS);
        Ok(())
    }

    /// Registers the queue of a host that has authenticated; unregisters it if that failed.
    fn apply_progress(&mut self, channel: &Channel<'_>, progress: Progress) -> io::Result<()> {
        let queue = self.queue.as_mut().expect("the queue authenticates");
        match progress {
            Progress::Continues => Ok(()),
            Progress::Authenticated => {
                self.handshake = None;
                queue.association.note_traffic();
                // Another connection may have registered the QID since Connect.
                let is_registered = queue.register(&channel.output);
                if is_registered { Ok(()) } else { Err(io::ErrorKind::AddrInUse.into()) }
            }
            Progress::Failed => {
                self.failed_authentication = true;
                queue.unregister();
                let client_limits = &self.target.client_limits;
                client_limits.note_failed_authentication(&channel.output);
                self.handshake =
                    Some(client_limits.start_timeout(&channel.output, FAILURE_TIMEOUT));
                Ok(())
            }
        }
    }
}
