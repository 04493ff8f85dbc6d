//! `DriveIo`: commands of the drive that a controller executes itself, as steps of its own command.

use std::time::{Duration, Instant};

use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_engine::{Command, Engine, Epoch, Operation, SendBuffer};

use super::status::{CommandError, Status};

/// Retry interval while the drive's queue is full and does not say when it has room.
const RETRY: Duration = Duration::from_micros(50);

/// Access to the drive for one command of a host.
pub struct DriveIo<'a> {
    engine: &'a Engine,
    epoch: Epoch,
    /// When the completion may leave: the latest due time of all steps; `None` at once.
    pub due: Option<Instant>,
}

impl<'a> DriveIo<'a> {
    /// Access in an epoch of the drive; all steps fail when it is over.
    pub(crate) fn new(engine: &'a Engine, epoch: Epoch) -> Self {
        Self { engine, epoch, due: None }
    }

    /// Executes commands, with the data of the `writes`, in as many batches as the drive's queue
    /// needs. All are executed; returns the first error.
    pub fn perform(&mut self, commands: &[Command], writes: &[&[u8]]) -> Result<(), CommandError> {
        self.execute(commands, writes, &mut SendBuffer::default())
    }

    /// Executes a read; returns the data.
    pub fn read(&mut self, command: Command) -> Result<Vec<u8>, CommandError> {
        let mut buffer = SendBuffer::default();
        self.execute(&[command], &[], &mut buffer)?;
        let mut bytes = Vec::with_capacity(command.length as usize);
        buffer.send(&mut bytes).expect("a Vec accepts all bytes");
        Ok(bytes)
    }

    fn execute(
        &mut self,
        commands: &[Command],
        payloads: &[&[u8]],
        data: &mut SendBuffer,
    ) -> Result<(), CommandError> {
        let (mut done, mut result) = (0, Ok(()));
        while done < commands.len() {
            let mut read_result = Ok(());
            let accepted = self.engine.perform(
                self.epoch,
                &commands[done..],
                |number| payloads[done + number],
                |_, _, read| read_result = read_result.and(read(data)),
            );
            let accepted = accepted.ok_or(CommandError::PowerLost)?;
            for (command, accepted) in commands[done..].iter().zip(&accepted) {
                let status = accepted.result.and(read_result);
                let status = status.map_err(|errno| Status::from_errno(errno, command.operation));
                result = result.and(status);
                self.due = self.due.max(accepted.due);
            }
            done += accepted.len();
            if done < commands.len() && accepted.is_empty() {
                let next = self.engine.next_free().unwrap_or(wall_clock_now() + RETRY);
                // If the system cannot wait, the command is tried again at once.
                let _ = wait_precisely(next, self.engine.clock.spin());
            }
        }
        Ok(result?)
    }

    /// Erases all content of the drive.
    pub fn erase(&self) -> Result<(), CommandError> {
        let erased = self.engine.erase(self.epoch).ok_or(CommandError::PowerLost)?;
        Ok(erased.map_err(|errno| Status::from_errno(errno, Operation::Trim))?)
    }
}
