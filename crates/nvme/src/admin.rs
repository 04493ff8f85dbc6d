//! The admin commands of a controller.

use super::controller::{Controller, ControllerType, Outcome};
use super::opcode::admin::{
    ABORT, ASYNC_EVENT_REQUEST, FORMAT_NVM, GET_FEATURES, GET_LBA_STATUS, GET_LOG_PAGE, IDENTIFY,
    KEEP_ALIVE, NAMESPACE_ATTACHMENT, NAMESPACE_MANAGEMENT, SANITIZE, SET_FEATURES,
};
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;

impl Controller {
    /// Does an admin command, whatever comes of it; `None` where the power is gone.
    pub(super) fn try_admin(&self, sqe: &Sqe, data: &mut dyn HostData) -> Option<Outcome> {
        let ended = |ended: Result<Completion, Status>| {
            Some(Outcome::Completed(ended.unwrap_or_else(Completion::from)))
        };
        if !self.is_ready() {
            return ended(Err(Status::COMMAND_SEQUENCE_ERROR));
        }
        if sqe.fuse() != 0 {
            return ended(Err(Status::INVALID_FIELD));
        }
        if let Err(status) = self.subsystem.view().check_mdts(true, sqe) {
            return ended(Err(status));
        }
        match sqe.opcode() {
            IDENTIFY => ended(self.identify(sqe).and_then(|page| {
                if data.length() < page.bytes().len() {
                    return Err(Status::DATA_SGL_LENGTH_INVALID);
                }
                data.send(page.bytes());
                Ok(Completion::SUCCESS)
            })),
            GET_LOG_PAGE => ended(self.get_log(sqe, data)),
            KEEP_ALIVE => ended(Ok(Completion::SUCCESS)),
            SET_FEATURES => ended(self.set_feature(sqe, data.payload())),
            GET_FEATURES => ended(self.get_feature(sqe, data)),
            ASYNC_EVENT_REQUEST => match self.lock().events.request(sqe.cid()) {
                Ok(()) => Some(Outcome::Outstanding),
                Err(status) => ended(Err(status)),
            },
            ABORT => ended(Ok(self.abort(sqe))),
            NAMESPACE_MANAGEMENT if self.cntrltype == ControllerType::Io => {
                ended(self.manage(sqe, data)?)
            }
            NAMESPACE_ATTACHMENT if self.cntrltype == ControllerType::Io => {
                ended(self.attach(sqe, data))
            }
            GET_LBA_STATUS if self.cntrltype == ControllerType::Io => {
                ended(self.block_status(sqe, data))
            }
            FORMAT_NVM if self.cntrltype == ControllerType::Io => ended(self.format(sqe)?),
            SANITIZE if self.cntrltype == ControllerType::Io => ended(self.sanitize(sqe)?),
            _ => ended(Err(Status::INVALID_OPCODE)),
        }
    }

    /// Only a request for events can be aborted: all else is done before it could be.
    fn abort(&self, sqe: &Sqe) -> Completion {
        let (queue, id) = (sqe.cdw(10) as u16, (sqe.cdw(10) >> 16) as u16);
        let found = queue == 0 && self.lock().events.abort(id);
        // The lowest bit says that it was not aborted.
        Completion::with_dw0(u32::from(!found))
    }
}
