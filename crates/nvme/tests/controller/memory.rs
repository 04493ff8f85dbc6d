//! A host in memory: it submits commands to a controller as the transport does.

use ssdlab_engine::{Command, Operation};
use ssdlab_nvme::io::Execution;
use ssdlab_nvme::{
    CommandError, Completion, Context, Controller, HostData, Sqe, Status, dispatch, io,
};
use ssdlab_testing::nvme::Entry;

/// A host's data buffer.
pub struct Memory {
    pub length: usize,
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
}

impl Memory {
    /// A buffer to receive data.
    pub fn new(length: usize) -> Self {
        Self { length, sent: Vec::new(), received: Vec::new() }
    }

    /// A buffer with data to send.
    pub fn with(sent: Vec<u8>) -> Self {
        Self { length: sent.len(), sent, received: Vec::new() }
    }
}

impl HostData for Memory {
    fn length(&self) -> usize {
        self.length
    }

    fn payload(&self) -> &[u8] {
        &self.sent
    }

    fn send(&mut self, bytes: &[u8]) {
        self.received.extend(bytes);
        assert!(self.received.len() <= self.length, "more data than the host has a buffer for");
    }
}

/// Executes an admin command; `None` if it stays outstanding.
pub fn admin(controller: &Controller, entry: Entry, data: &mut Memory) -> Option<Completion> {
    let sqe = Sqe::new(entry.0);
    dispatch(0, &mut Context { controller, sqe: &sqe, data }).expect("the power is on").completion
}

/// Executes an I/O command of queue 1: by the drive or by the controller, as `io::prepare` says.
pub fn io(controller: &Controller, entry: Entry, data: &mut Memory) -> Completion {
    let sqe = Sqe::new(entry.0);
    let status = match io::prepare(controller, &controller.view(), &sqe, data.length) {
        Ok(Execution::Controller) => {
            let outcome = dispatch(1, &mut Context { controller, sqe: &sqe, data });
            return outcome.and_then(|outcome| outcome.completion).expect("the power is on");
        }
        Ok(Execution::Drive(command)) => perform(controller, command, data),
        Err(status) => status,
    };
    if !status.is_success() {
        controller.subsystem.record_error(1, &sqe, status);
    }
    status.into()
}

/// Executes a command of the drive, when its queue has room.
fn perform(controller: &Controller, command: Command, data: &mut Memory) -> Status {
    let mut drive = controller.drive_io();
    let result = match command.operation {
        Operation::Read => drive.read(command).map(|bytes| data.send(&bytes)),
        Operation::Write => match data.sent.get(..command.length as usize) {
            Some(payload) => drive.perform(&[command], &[payload]),
            // A transport has received all data before it executes a command.
            None => return Status::DATA_SGL_LENGTH_INVALID,
        },
        _ => drive.perform(&[command], &[&[]]),
    };
    match result {
        Ok(()) => Status::SUCCESS,
        Err(CommandError::Status(status)) => status,
        Err(CommandError::PowerLost) => panic!("the power is on"),
    }
}
