//! Format and sanitize: all content is gone.

use super::controller::Controller;
use super::namespace::Namespace;
use super::sqe::{Completion, Sqe};
use super::status::Status;
use super::subsystem::{ALL, FORMATS, NAMESPACE};
use ssdlab_engine::Operation;

/// Kinds of sanitize: leave the failure mode, erase blocks, erase the key.
const LEAVE: u32 = 1;
const ERASE_BLOCKS: u32 = 2;
const ERASE_KEY: u32 = 4;

impl Controller {
    /// Formats the namespace; `None` where the power is gone.
    pub(super) fn format(&self, sqe: &Sqe) -> Option<Result<Completion, Status>> {
        let asked = sqe.cdw(10);
        let (format, erases) = ((asked & 0xf) as usize, asked >> 9 & 7);
        let is_there = self.subsystem.found().is_some() && sqe.nsid() == NAMESPACE;
        if !is_there && sqe.nsid() != ALL {
            return Some(Err(Status::INVALID_NAMESPACE_OR_FORMAT));
        }
        // No metadata, no protection, no format beyond sixteen.
        if format >= FORMATS.len() || asked >> 4 & 0x1f != 0 || asked >> 12 & 3 != 0 {
            return Some(Err(Status::INVALID_FORMAT));
        }
        if erases > 2 {
            return Some(Err(Status::INVALID_FIELD));
        }
        Some(self.erase()?.map(|()| {
            let set = |is: &mut Namespace| is.format = format;
            self.subsystem.change_namespace(|is| is.as_mut().map(set));
            Completion::SUCCESS
        }))
    }

    /// Sanitizes the drive; `None` where the power is gone.
    pub(super) fn sanitize(&self, sqe: &Sqe) -> Option<Result<Completion, Status>> {
        let asked = sqe.cdw(10);
        match asked & 7 {
            LEAVE => Some(Ok(Completion::SUCCESS)),
            ERASE_BLOCKS | ERASE_KEY => Some(self.erase()?.map(|()| {
                self.subsystem.note_sanitized(asked);
                Completion::SUCCESS
            })),
            _ => Some(Err(Status::INVALID_FIELD)),
        }
    }

    pub(super) fn erase(&self) -> Option<Result<(), Status>> {
        let ended = self.subsystem.engine.erase(self.epoch)?;
        Some(ended.map_err(|errno| Status::from_errno(errno, Operation::Trim)))
    }
}
