//! How a session does what a host asked: together what the drive does at once, the rest alone.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::connect::{PROOF_SENT, proves};
use super::proof::Heard;
use super::reply::Exchange;
use super::session::{Request, Session};
use ssdlab_nvme::{Completion, FABRICS, Outcome, Status};
use ssdlab_wire::Channel;

/// Of a connection's result: its host has to prove that it may have it.
const PROOF_REQUIRED: u32 = 1 << 17;

/// CDW10 of both: the protocol of `NVMe` itself, the first of it.
const SECURITY: u32 = 0xe901_0100;
/// How long a host that failed may take to ask for the reason.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Room for a message: for the longest, and no more than any host needs.
const PROOF_ROOM: RangeInclusive<usize> = 48..=4096;

impl Session<'_> {
    /// Does a command that is no single one of the drive's.
    pub fn perform(&mut self, channel: &mut Channel<'_>, request: &Request) -> io::Result<()> {
        let submission = &request.submission;
        let id = submission.id();
        let sent = request.data.bytes(&channel.input);
        let Some(queue) = &self.queue else {
            self.connect(channel, request);
            return Ok(());
        };
        if proves(submission) && self.target.secret.is_some() {
            return self.prove(channel, request);
        }
        if submission.opcode() == FABRICS {
            let completion = queue.fabrics(submission);
            self.respond(channel, id, completion);
            return Ok(());
        }
        let mut exchange = Exchange { sent, room: request.room(), given: Vec::new() };
        let controller = &queue.attached.controller;
        let ended = if queue.number > 0 {
            controller.io(queue.number, submission, &mut exchange)
        } else {
            match controller.admin(submission, &mut exchange) {
                Some(Outcome::Waits) => return Ok(()),
                Some(Outcome::Ended(completion)) => Some((completion, None)),
                None => None,
            }
        };
        let Some((completion, due)) = ended else {
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        let (manner, given) = (self.manner(), exchange.given);
        channel.replies.add(due, |out| manner.given(out, id, &given, completion));
        Ok(())
    }

    /// The first command of a connection makes it a queue.
    fn connect(&mut self, channel: &mut Channel<'_>, request: &Request) {
        let (submission, id) = (&request.submission, request.submission.id());
        if submission.opcode() != FABRICS {
            self.respond(channel, id, Status::SEQUENCE.into());
            return;
        }
        let sent = request.data.bytes(&channel.input);
        match self.target.connect(submission, sent, &channel.output, channel.epoch) {
            Ok(mut queue) => {
                queue.advance();
                let number = queue.attached.controller.number;
                let proof = if queue.is_open() { 0 } else { PROOF_REQUIRED };
                if queue.is_open() {
                    self.handshake = None;
                }
                self.queue = Some(queue);
                self.respond(channel, id, Completion::told(u32::from(number) | proof));
            }
            Err(completion) => self.respond(channel, id, completion),
        }
    }

    /// Takes or tells what a host says to prove that it may have its queue. After a failure it may
    /// ask for the reason, soon and once; an error where it does anything else.
    fn prove(&mut self, channel: &mut Channel<'_>, request: &Request) -> io::Result<()> {
        let submission = &request.submission;
        let (id, room) = (submission.id(), request.room());
        let is_sent = submission.fabrics_type() == PROOF_SENT;
        if self.has_failed && is_sent {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let fits = submission.word(10) == SECURITY
            && submission.word(11) as usize == room
            && (is_sent || PROOF_ROOM.contains(&room));
        let proof = self.queue.as_mut().and_then(|queue| queue.proof.as_mut());
        let (Some(proof), Some(secret)) = (proof.filter(|_| fits), &self.target.secret) else {
            self.respond(channel, id, Status::INVALID_FIELD.into());
            return Ok(());
        };
        if is_sent {
            let drive = self.target.subsystem.identity.name.as_bytes();
            let heard = proof.hear(request.data.bytes(&channel.input), secret, drive);
            self.respond(channel, id, Completion::DONE);
            return self.judge(channel, heard);
        }
        let Some((mut message, is_last)) = proof.tell() else {
            self.respond(channel, id, Status::SEQUENCE.into());
            return Ok(());
        };
        channel.leaving |= is_last;
        message.resize(room, 0);
        self.manner().given(channel.replies.now(), id, &message, Completion::DONE);
        Ok(())
    }

    /// A host that has proved what it has to gets its queue's place; one that failed loses it.
    fn judge(&mut self, channel: &Channel<'_>, heard: Heard) -> io::Result<()> {
        let queue = self.queue.as_mut().expect("it has a proof");
        match heard {
            Heard::More => Ok(()),
            Heard::Proved => {
                self.handshake = None;
                queue.attached.hear();
                // Another host may have proved it meanwhile.
                let has_place = queue.occupy(&channel.output);
                if has_place { Ok(()) } else { Err(io::ErrorKind::AddrInUse.into()) }
            }
            Heard::Failed => {
                self.has_failed = true;
                queue.vacate();
                let resources = &self.target.resources;
                resources.note_failed_authentication(&channel.output);
                self.handshake = Some(resources.deadline(&channel.output, AFTER_FAILURE));
                Ok(())
            }
        }
    }
}
