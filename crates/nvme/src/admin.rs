//! The admin commands of a controller.

use super::controller::{Controller, Kind, Outcome};
use super::status::Status;
use super::submission::{Completion, HostData, Submission};

pub const GET_LOG: u8 = 0x02;
pub const IDENTIFY: u8 = 0x06;
pub const ABORT: u8 = 0x08;
pub const SET_FEATURES: u8 = 0x09;
pub const GET_FEATURES: u8 = 0x0a;
pub const EVENT: u8 = 0x0c;
pub const MANAGE: u8 = 0x0d;
pub const ATTACH: u8 = 0x15;
pub const KEEP_ALIVE: u8 = 0x18;
pub const FORMAT: u8 = 0x80;
pub const SANITIZE: u8 = 0x84;
pub const BLOCKS: u8 = 0x86;

impl Controller {
    /// Does an admin command, whatever comes of it; `None` where the power is gone.
    pub(super) fn try_admin(
        &self,
        submission: &Submission,
        data: &mut dyn HostData,
    ) -> Option<Outcome> {
        let ended = |ended: Result<Completion, Status>| {
            Some(Outcome::Ended(ended.unwrap_or_else(Completion::from)))
        };
        if !self.is_ready() {
            return ended(Err(Status::SEQUENCE));
        }
        if submission.flags() & 3 != 0 {
            return ended(Err(Status::INVALID_FIELD));
        }
        if let Err(status) = self.subsystem.view().check_transfer(true, submission) {
            return ended(Err(status));
        }
        match submission.opcode() {
            IDENTIFY => ended(self.identify(submission).and_then(|page| {
                if data.room() < page.bytes().len() {
                    return Err(Status::DATA_LENGTH);
                }
                data.give(page.bytes());
                Ok(Completion::DONE)
            })),
            GET_LOG => ended(self.get_log(submission, data)),
            KEEP_ALIVE => ended(Ok(Completion::DONE)),
            SET_FEATURES => ended(self.set_feature(submission, data.sent())),
            GET_FEATURES => ended(self.get_feature(submission, data)),
            EVENT => match self.lock().events.request(submission.id()) {
                Ok(()) => Some(Outcome::Waits),
                Err(status) => ended(Err(status)),
            },
            ABORT => ended(Ok(self.abort(submission))),
            MANAGE if self.kind == Kind::Drive => ended(self.manage(submission, data)?),
            ATTACH if self.kind == Kind::Drive => ended(self.attach(submission, data)),
            BLOCKS if self.kind == Kind::Drive => ended(self.block_status(submission, data)),
            FORMAT if self.kind == Kind::Drive => ended(self.format(submission)?),
            SANITIZE if self.kind == Kind::Drive => ended(self.sanitize(submission)?),
            _ => ended(Err(Status::INVALID_OPCODE)),
        }
    }

    /// Only a request for events can be aborted: all else is done before it could be.
    fn abort(&self, submission: &Submission) -> Completion {
        let (queue, id) = (submission.word(10) as u16, (submission.word(10) >> 16) as u16);
        let found = queue == 0 && self.lock().events.abort(id);
        // The lowest bit says that it was not aborted.
        Completion::told(u32::from(!found))
    }
}
