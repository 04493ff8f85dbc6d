//! `Context`: a command while it is executed.

use super::controller::Controller;
use super::sqe::{HostData, Sqe};
use super::status::Status;
use super::subsystem::Subsystem;

/// A command, the controller that executes it, and its data buffer.
pub struct Context<'a> {
    /// The controller.
    pub controller: &'a Controller,
    /// The command.
    pub sqe: &'a Sqe,
    /// The host's data buffer.
    pub data: &'a mut dyn HostData,
}

impl<'a> Context<'a> {
    pub(crate) fn subsystem(&self) -> &'a Subsystem {
        &self.controller.subsystem
    }

    /// Data that the host sent; an error if it is shorter than `length`.
    pub(crate) fn payload(&self, length: usize) -> Result<&[u8], Status> {
        self.data.payload().get(..length).ok_or(Status::DATA_SGL_LENGTH_INVALID)
    }

    /// Sends `length` bytes to the host: `bytes`, cut off or padded with zeros.
    pub(crate) fn send(&mut self, bytes: &[u8], length: u64) -> Result<(), Status> {
        if (self.data.length() as u64) < length {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        let length = length as usize;
        let sent = bytes.len().min(length);
        self.data.send(&bytes[..sent]);
        self.data.send(&vec![0; length - sent]);
        Ok(())
    }
}
