//! How a session does what a host asked: together what the drive does at once, the rest alone.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::proof::Heard;
use super::reply::Exchange;
use super::session::{Asked, Session};
use ssdlab_engine::{Command, Operation};
use ssdlab_nvme::admin::{self, Outcome};
use ssdlab_nvme::opcode::FABRICS;
use ssdlab_nvme::{Completion, Context, Sqe, Status};

/// Types of Fabrics command: Authentication Send and Receive.
const PROOF_SENT: u8 = 0x05;
const PROOF_RECEIVED: u8 = 0x06;
/// CDW10 of both: the protocol of `NVMe` itself, the first of it.
const SECURITY: u32 = 0xe901_0100;
/// How long a host that failed may take to ask for the reason.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Room for a message: for the longest, and no more than any host needs.
const PROOF_ROOM: RangeInclusive<usize> = 48..=4096;

impl Session<'_> {
    /// Does the batch as far as the drive takes it; an error where the power fails.
    pub(super) fn perform(&mut self) -> io::Result<()> {
        let alone = self.batch.len() <= 1;
        self.units.input.stream().linger_only_if(alone);
        while let Some(first) = self.batch.front() {
            if first.is_alone() {
                let asked = self.batch.pop_front().expect("there is one");
                self.do_alone(&asked)?;
            } else if !self.do_together()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Does the commands up to the next that is done alone; false where the drive takes no more.
    fn do_together(&mut self) -> io::Result<bool> {
        let count = self.batch.iter().take_while(|asked| !asked.is_alone()).count();
        let run: Vec<Asked> = self.batch.drain(..count).collect();
        let queue = self.queue.as_ref().expect("only a queue has such commands");
        let (subsystem, number) = (&self.target.subsystem, queue.number);
        let manner = self.manner();
        let for_drive: Vec<(&Asked, Command)> =
            run.iter().filter_map(|asked| Some((asked, asked.command()?))).collect();
        let commands: Vec<Command> = for_drive.iter().map(|(_, command)| *command).collect();
        let (units, replies) = (&self.units, &mut self.replies);
        let taken = subsystem.engine.perform(
            self.epoch,
            &commands,
            |which| &units.bytes(&for_drive[which].0.data)[..commands[which].length as usize],
            |which, taken, read| {
                let submission = &for_drive[which].0.submission;
                let about = (submission.cid(), commands[which].length);
                replies.add(taken.due, |out| {
                    let status = manner.read(out, about, read);
                    if !status.is_success() {
                        subsystem.record_error(number, submission, status);
                    }
                });
            },
        );
        let Some(taken) = taken else { return Err(io::ErrorKind::ConnectionAborted.into()) };
        let mut taken = taken.into_iter();
        let mut answered = 0;
        for asked in &run {
            let (status, due) = match (asked.plan, asked.command()) {
                (Err(status), _) => (status, None),
                (_, None) => unreachable!("what is done alone is not here"),
                (_, Some(command)) => {
                    let Some(taken) = taken.next() else { break };
                    let ended =
                        taken.ended.map_err(|errno| Status::from_errno(errno, command.operation));
                    if ended.is_ok() && command.operation == Operation::Read {
                        answered += 1;
                        continue;
                    }
                    (ended.err().unwrap_or(Status::SUCCESS), taken.due)
                }
            };
            answered += 1;
            if !status.is_success() {
                subsystem.record_error(number, &asked.submission, status);
            }
            let id = asked.submission.cid();
            self.replies.add(due, |out| manner.response(out, id, status.into()));
        }
        let is_all = answered == run.len();
        // What comes after the first that was not taken waits with it.
        for asked in run.into_iter().skip(answered).rev() {
            self.batch.push_front(asked);
        }
        Ok(is_all)
    }

    /// Does a command that is no single one of the drive's.
    fn do_alone(&mut self, asked: &Asked) -> io::Result<()> {
        let submission = &asked.submission;
        let id = submission.cid();
        let sent = self.units.bytes(&asked.data);
        let Some(queue) = &self.queue else {
            self.connect(asked);
            return Ok(());
        };
        if proves(submission) && self.target.secret.is_some() {
            return self.prove(asked);
        }
        if submission.opcode() == FABRICS {
            let completion = queue.fabrics(submission);
            self.respond(id, completion);
            return Ok(());
        }
        let mut exchange = Exchange { sent, room: asked.room(), given: Vec::new() };
        let controller = &queue.attached.controller;
        let mut context = Context { controller, sqe: submission, data: &mut exchange };
        let ended = if queue.number > 0 {
            let outcome = ssdlab_nvme::io::dispatch(queue.number, &mut context);
            outcome.map(|outcome| (outcome.completion, outcome.due))
        } else {
            match admin::dispatch(&mut context) {
                Some(Outcome::Outstanding) => return Ok(()),
                Some(Outcome::Completed(completion)) => Some((completion, None)),
                None => None,
            }
        };
        let Some((completion, due)) = ended else {
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        let (manner, given) = (self.manner(), exchange.given);
        self.replies.add(due, |out| manner.given(out, id, &given, completion));
        Ok(())
    }

    /// Takes or tells what a host says to prove that it may have its queue. After a failure it may
    /// ask for the reason, soon and once; an error where it does anything else.
    fn prove(&mut self, asked: &Asked) -> io::Result<()> {
        let submission = &asked.submission;
        let (id, room) = (submission.cid(), asked.room());
        let is_sent = submission.fctype() == PROOF_SENT;
        if self.has_failed && is_sent {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let fits = submission.cdw(10) == SECURITY
            && submission.cdw(11) as usize == room
            && (is_sent || PROOF_ROOM.contains(&room));
        let proof = self.queue.as_mut().and_then(|queue| queue.proof.as_mut());
        let (Some(proof), Some(secret)) = (proof.filter(|_| fits), &self.target.secret) else {
            self.respond(id, Status::INVALID_FIELD.into());
            return Ok(());
        };
        if is_sent {
            let drive = self.target.subsystem.identity.subnqn.as_bytes();
            let heard = proof.hear(self.units.bytes(&asked.data), secret, drive);
            self.respond(id, Completion::SUCCESS);
            return self.judge(heard);
        }
        let Some((mut message, is_last)) = proof.tell() else {
            self.respond(id, Status::COMMAND_SEQUENCE_ERROR.into());
            return Ok(());
        };
        self.leaving |= is_last;
        message.resize(room, 0);
        let manner = self.manner();
        manner.given(self.replies.now(), id, &message, Completion::SUCCESS);
        Ok(())
    }

    /// A host that has proved what it has to gets its queue's place; one that failed loses it.
    fn judge(&mut self, heard: Heard) -> io::Result<()> {
        let queue = self.queue.as_mut().expect("it has a proof");
        match heard {
            Heard::More => Ok(()),
            Heard::Proved => {
                self.handshake = None;
                queue.attached.hear();
                // Another host may have proved it meanwhile.
                let has_place = queue.occupy(&self.output);
                if has_place { Ok(()) } else { Err(io::ErrorKind::AddrInUse.into()) }
            }
            Heard::Failed => {
                self.has_failed = true;
                queue.vacate();
                let resources = &self.target.resources;
                resources.note_failed_authentication(&self.output);
                self.handshake = Some(resources.deadline(&self.output, AFTER_FAILURE));
                Ok(())
            }
        }
    }
}

/// Whether a host asks what became of its proof.
pub fn asks_for_proof(submission: &Sqe) -> bool {
    submission.opcode() == FABRICS && submission.fctype() == PROOF_RECEIVED
}

/// Whether a command is of a host that proves that it may have its queue.
pub fn proves(submission: &Sqe) -> bool {
    let is_part = [PROOF_SENT, PROOF_RECEIVED].contains(&submission.fctype());
    submission.opcode() == FABRICS && is_part
}
