//! How a session takes in what a host sends: all that is there, or it waits.

use std::io;
use std::time::{Duration, Instant};

use super::connect::Queue;
use super::input::{Coming, Data, Unit, located};
use super::pdu::{COMMON_BYTES, Reason};
use super::perform::{asks_for_proof, proves};
use super::session::{Asked, Session};
use ssdlab_engine::Operation;
use ssdlab_engine::pacing::wall;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_nvme::io::Execution;
use ssdlab_nvme::opcode::FABRICS;
use ssdlab_nvme::{NamespaceView, Sqe, Status};

/// Commands that are done together, if a host has sent so many.
const BATCH: usize = 256;
/// And as many as are answered with so many bytes: who asks for more reads the first meanwhile.
const BATCH_BYTES: usize = 128 << 10;
/// So often it is looked whether there is an event to tell of.
const LOOK: Duration = Duration::from_secs(1);
/// The longest message of a proof: a negotiation that offers 255 protocols.
const PROOF_SENT_MAX: u32 = 8 + 255 * 64;
/// So much may wait for its time; then nothing more is taken.
const WAITING_MAX: usize = 256 << 20;

impl Session<'_> {
    /// Waits for a unit or until something is due, and takes all units that are there; false where
    /// the host leaves.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        if self.replies.waiting_bytes() > WAITING_MAX {
            wait_precisely(self.replies.next_due().expect("something waits"), self.spin())?;
            return Ok(true);
        }
        if self.units.input.ready() < COMMON_BYTES && !self.await_unit()? {
            return Ok(true);
        }
        if self.units.input.ready() == 0 {
            return Ok(false);
        }
        let view = self.queue.as_ref().map(|queue| {
            if queue.is_open() {
                queue.attached.hear();
            }
            queue.attached.controller.view()
        });
        let mut asked_bytes = 0;
        while self.batch.len() < BATCH && asked_bytes < BATCH_BYTES {
            let whole = self.units.next_whole().unwrap_or(COMMON_BYTES);
            if self.units.input.ready() >= COMMON_BYTES
                && let Err(reason) = self.units.check()
            {
                return Err(self.terminate(reason));
            }
            if self.units.input.ready() < whole.max(COMMON_BYTES) {
                // What was answered leaves before more is waited for.
                let waits = self.batch.is_empty() && self.replies.now().is_empty();
                if !waits || self.units.input.ready() == 0 {
                    return Ok(true);
                }
                self.units.input.wait_for(whole.max(COMMON_BYTES))?;
                continue;
            }
            let taken = self.units.take().map_err(|reason| self.terminate(reason));
            match taken? {
                Unit::End => return Ok(false),
                Unit::Part => {}
                Unit::Command(submission, data) => {
                    asked_bytes += self.command(submission, data, view.as_ref())?;
                }
                Unit::Complete(submission, data) => self.ask(submission, data, view.as_ref()),
            }
        }
        Ok(true)
    }

    /// Waits for a unit's beginning; false where something else is due first. At the end of the
    /// stream nothing is there.
    fn await_unit(&mut self) -> io::Result<bool> {
        let since = wall();
        let expires = self.expires();
        if expires.is_some_and(|expires| expires <= since) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let spin = self.spin();
        if let Some(until) = self.wakes(since).into_iter().chain(expires).min()
            && !self.units.input.stream().wait_until(until, spin)?
        {
            return Ok(false);
        }
        loop {
            match self.units.input.wait_for(COMMON_BYTES) {
                Ok(_) => break,
                // Nothing was begun, and a queue may rest as long as it likes.
                Err(error) if is_time_out(&error) && self.may_rest() => {}
                Err(error) => return Err(error),
            }
        }
        let clock = self.target.subsystem.engine.clock();
        self.units.input.stream().note_waited(since, clock);
        Ok(true)
    }

    fn may_rest(&self) -> bool {
        self.queue.as_ref().is_some_and(Queue::is_open) && self.units.input.ready() == 0
    }

    /// When the host is taken for dead; only its admin queue knows that.
    fn expires(&self) -> Option<Instant> {
        self.queue.as_ref().filter(|queue| queue.number == 0)?.attached.expires()
    }

    /// When there is something to do even if the host sends nothing.
    fn wakes(&self, now: Instant) -> Option<Instant> {
        let looks = self.queue.as_ref().is_some_and(|queue| {
            queue.number == 0 && queue.attached.controller.has_event_requests()
        });
        self.replies.next_due().into_iter().chain(looks.then_some(now + LOOK)).min()
    }

    /// Takes a command in, or asks for its data; returns with how many bytes it will be answered.
    fn command(
        &mut self,
        submission: Sqe,
        came: Data,
        view: Option<&NamespaceView>,
    ) -> io::Result<usize> {
        if let Some(queue) = &mut self.queue {
            queue.advance();
        }
        if self.has_failed && !asks_for_proof(&submission) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let id = submission.cid();
        if self.units.is_pending(id) {
            self.respond(id, Status::COMMAND_ID_CONFLICT.into());
            return Ok(0);
        }
        if self.queue.as_ref().is_some_and(|queue| !queue.is_open()) && !proves(&submission) {
            self.respond(id, Status::AUTHENTICATION_REQUIRED.into());
            return Ok(0);
        }
        let is_admin = self.queue.as_ref().is_none_or(|queue| queue.number == 0);
        let checked = match view {
            Some(view) => view.check_mdts(is_admin, &submission),
            None => self.target.subsystem.view().check_mdts(is_admin, &submission),
        };
        let is_proof = proves(&submission);
        if checked.is_err() || is_proof && submission.sgl_length() > PROOF_SENT_MAX {
            self.respond(id, Status::INVALID_FIELD.into());
            return Ok(0);
        }
        match located(&submission, came) {
            Err(status) => self.respond(id, status.into()),
            Ok((data, Coming::Now)) => self.ask(submission, data, view),
            Ok((_, Coming::OnDemand)) => {
                if self.queue.is_none() || self.units.pending() >= BATCH {
                    return Err(self.terminate(Reason::Sequence));
                }
                self.units.defer(submission);
                self.units.ask_for_data(self.replies.now().bytes());
            }
        }
        Ok(self.batch.back().and_then(Asked::command).map_or(0, |command| {
            match command.operation {
                Operation::Read => command.length as usize,
                _ => 0,
            }
        }))
    }

    /// Adds a command whose data is there to those that are to be done.
    fn ask(&mut self, submission: Sqe, data: Data, view: Option<&NamespaceView>) {
        let id = submission.cid();
        if data == Data::Broken {
            self.respond(id, Status::TRANSIENT_TRANSPORT_ERROR.into());
            return;
        }
        let is_io = self.queue.as_ref().is_some_and(|queue| queue.number > 0);
        let plan = match (&self.queue, view) {
            (Some(queue), Some(view)) if is_io && submission.opcode() != FABRICS => {
                let room = submission.sgl_length() as usize;
                ssdlab_nvme::io::prepare(&queue.attached.controller, view, &submission, room)
            }
            _ => Ok(Execution::Controller),
        };
        self.batch.push_back(Asked { submission, data, plan });
    }
}

fn is_time_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
