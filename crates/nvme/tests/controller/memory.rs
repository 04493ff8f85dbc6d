//! A host in memory: it submits commands to a controller as the transport does.

use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_engine::{Command, Operation, SendBuffer};
use ssdlab_nvme::io::Execution;
use ssdlab_nvme::{Completion, Context, Controller, HostData, Sqe, Status, admin, io};
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
    match admin::dispatch(&mut Context { controller, sqe: &sqe, data }).expect("the power is on") {
        admin::Outcome::Completed(completion) => Some(completion),
        admin::Outcome::Outstanding => None,
    }
}

/// Executes an I/O command of queue 1: by the drive or by the controller, as `io::prepare` says.
pub fn io(controller: &Controller, entry: Entry, data: &mut Memory) -> Completion {
    let sqe = Sqe::new(entry.0);
    let status = match io::prepare(controller, &controller.view(), &sqe, data.length) {
        Ok(Execution::Controller) => {
            let outcome = io::dispatch(1, &mut Context { controller, sqe: &sqe, data });
            return outcome.expect("the power is on").completion;
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
    let engine = &controller.subsystem.engine;
    let length = command.length as usize;
    if command.operation == Operation::Write && data.sent.len() < length {
        // A transport has received all data before it executes a command.
        return Status::DATA_SGL_LENGTH_INVALID;
    }
    loop {
        let (mut buffer, mut read_result) = (SendBuffer::default(), Ok(()));
        let accepted = engine.perform(
            controller.parameters.epoch,
            &[command],
            |_| &data.sent[..length],
            |_, _, read| read_result = read(&mut buffer),
        );
        let Some(accepted) = accepted.expect("the power is on").first().copied() else {
            let next = engine.next_free().unwrap_or_else(wall_clock_now);
            wait_precisely(next, engine.clock().spin()).expect("the system waits");
            continue;
        };
        buffer.send(&mut data.received).expect("memory accepts all bytes");
        let result = accepted.result.and(read_result);
        return result.map_or_else(
            |errno| Status::from_errno(errno, command.operation),
            |()| Status::SUCCESS,
        );
    }
}
