//! What leaves for a host: responses, data with or without one, in the form that was agreed on.

use super::frame::Frame;
use ssdlab_engine::SendBuffer;
use ssdlab_engine::{CommandResult, Operation};
use ssdlab_nvme::{Completion, HostData, Status};

/// How a queue's answers look now.
#[derive(Clone, Copy)]
pub struct Manner {
    pub frame: Frame,
    /// How far the submission queue was read.
    pub head: u16,
    /// Whether data may stand for a response that has nothing to tell.
    pub data_ends: bool,
}

/// A command's data, received as far as it is needed, and to be sent.
pub struct Exchange<'a> {
    pub sent: &'a [u8],
    pub room: usize,
    pub given: Vec<u8>,
}

impl HostData for Exchange<'_> {
    fn length(&self) -> usize {
        self.room
    }

    fn payload(&self) -> &[u8] {
        self.sent
    }

    fn send(&mut self, bytes: &[u8]) {
        assert!(self.given.len() + bytes.len() <= self.room, "more than the host has room for");
        self.given.extend(bytes);
    }
}

impl Manner {
    /// A response.
    pub fn response(&self, out: &mut SendBuffer, id: u16, completion: Completion) {
        self.frame.response(out.bytes(), self.head, id, completion);
    }

    /// A read's data, or why there is none; returns that.
    pub fn read(
        &self,
        out: &mut SendBuffer,
        (id, length): (u16, u32),
        read: &dyn Fn(&mut SendBuffer) -> CommandResult,
    ) -> Status {
        let begin = out.end();
        self.frame.data_head(out.bytes(), id, length, self.data_ends);
        let data = out.end();
        if let Err(errno) = read(out) {
            let status = Status::from_errno(errno, Operation::Read);
            out.take_back(begin);
            self.response(out, id, status.into());
            return status;
        }
        self.frame.data_end(out, data);
        if !self.data_ends {
            self.response(out, id, Completion::SUCCESS);
        }
        Status::SUCCESS
    }

    /// What a command brought and how it ended.
    pub fn given(&self, out: &mut SendBuffer, id: u16, given: &[u8], completion: Completion) {
        if given.is_empty() || !completion.status.is_success() {
            self.response(out, id, completion);
            return;
        }
        let ends = self.data_ends && completion == Completion::SUCCESS;
        self.frame.data_head(out.bytes(), id, given.len() as u32, ends);
        let data = out.end();
        out.bytes().extend(given);
        self.frame.data_end(out, data);
        if !ends {
            self.response(out, id, completion);
        }
    }
}
