//! The I/O commands of a controller: what each asks of the drive.
//!
//! Placement arrives in two forms. Directive type 2 names a handle (TP4146): a stream of the drive.
//! Two more bits of a write say that it appends to a file, after the block whose address stands in
//! CDW2 and CDW3, or that it overwrites one: the host interface of "We Ain't Afraid of No File
//! Fragmentation" (USENIX FAST 2024). The first of them is the specification's bit for checking a
//! storage tag, which no drive without protection information heeds.

use std::time::Instant;

use ssdlab_device::{Hint, Lba};

use super::controller::{Controller, ControllerType};
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;
use super::subsystem::{NAMESPACE, View};
use ssdlab_engine::{Command, Operation};

use super::opcode::io::{
    COMPARE, COPY, DATASET_MANAGEMENT, FLUSH, IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND, READ,
    VERIFY, WRITE, WRITE_ZEROES,
};

/// All of them, and whether they change content.
pub const COMMANDS: [(u8, bool); 10] = [
    (FLUSH, false),
    (WRITE, true),
    (READ, false),
    (COMPARE, false),
    (WRITE_ZEROES, true),
    (DATASET_MANAGEMENT, true),
    (VERIFY, false),
    (IO_MANAGEMENT_RECEIVE, false),
    (COPY, true),
    (IO_MANAGEMENT_SEND, false),
];

/// A copy has so many ranges at most.
pub const COPY_RANGES_MAX: u32 = 128;
/// And each so many blocks, unless so many make more than one transfer.
const COPY_BLOCKS_MAX: u32 = 1024;

/// Blocks of 2^`shift` bytes that a range of a copy has at most.
pub fn copy_blocks_max(transfer_max: u32, shift: u32) -> u32 {
    COPY_BLOCKS_MAX.min(transfer_max >> shift)
}

/// Bits of CDW12.
const FUA: u32 = 1 << 30;
const PROTECTION: u32 = 0xf << 26;
const DEALLOCATE: u32 = 1 << 25;
const APPENDS: u32 = 1 << 24;
const OVERWRITES: u32 = 1 << 25;
/// The directive that places data.
const PLACEMENT: u32 = 2;

/// How an I/O command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// By this one command of the drive; a read's and a write's data is the sqe's.
    Drive(Command),
    /// In several steps: `Controller::io` does it.
    Steps,
}

/// How an I/O command ended, and when its answer may leave.
pub type CommandResult = (Completion, Option<Instant>);

impl View {
    /// How a command is done; `room` is what its host has set aside for data.
    ///
    /// # Errors
    /// It is not done, and why.
    pub fn plan(&self, sqe: &Sqe, room: usize) -> Result<Plan, Status> {
        if !self.ready {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        if sqe.fuse() != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let (opcode, namespace) = (sqe.opcode(), sqe.nsid());
        let is_known = COMMANDS.iter().any(|(each, _)| *each == opcode);
        let for_placement = [IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND].contains(&opcode);
        if !is_known || for_placement && self.streams == 0 {
            return Err(Status::INVALID_OPCODE);
        }
        self.check_mdts(false, sqe)?;
        let all = opcode == FLUSH && namespace == super::subsystem::ALL;
        if (namespace != NAMESPACE || self.blocks == 0) && !all {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        match opcode {
            FLUSH => Ok(Plan::Drive(Command::new(Operation::Flush, 0, 0))),
            READ => {
                let command = self.command(Operation::Read, sqe)?;
                fits(&command, room).map(|()| Plan::Drive(command))
            }
            WRITE => {
                let command = self.command(Operation::Write, sqe)?;
                fits(&command, room)?;
                Ok(Plan::Drive(Command { hint: self.hint(sqe)?, ..command }))
            }
            WRITE_ZEROES => {
                let may_trim = sqe.cdw(12) & DEALLOCATE != 0;
                self.command(Operation::Zero { may_trim }, sqe).map(Plan::Drive)
            }
            VERIFY => self.command(Operation::Cache, sqe).map(Plan::Drive),
            _ => Ok(Plan::Steps),
        }
    }

    /// A command of the drive on the blocks of a sqe.
    pub fn command(&self, operation: Operation, sqe: &Sqe) -> Result<Command, Status> {
        let words = sqe.cdw(12);
        if words & PROTECTION != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let blocks = u64::from(words & 0xffff) + 1;
        let range = self.range(sqe.cdw64(10), blocks)?;
        let durable = words & FUA != 0 || self.writes_through;
        Ok(Command { durable, ..Command::new(operation, range.0, range.1) })
    }

    /// Blocks as bytes: where they begin, how many they are.
    pub fn range(&self, first: u64, blocks: u64) -> Result<(u64, u32), Status> {
        let fits = first.checked_add(blocks).is_some_and(|end| end <= self.blocks);
        let bytes = u32::try_from(blocks << self.shift);
        match bytes {
            Ok(bytes) if fits => Ok((first << self.shift, bytes)),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    /// Whether a command moves no more data than MDTS allows, to or from its host. Every command is
    /// checked here before its data is asked for and before memory is set aside for it.
    pub fn check_mdts(&self, is_admin: bool, sqe: &Sqe) -> Result<(), Status> {
        let moved = sqe.transfer_bytes(is_admin, self.shift);
        if moved > self.transfer_max.into() { Err(Status::INVALID_FIELD) } else { Ok(()) }
    }

    /// Where a write says that it belongs.
    fn hint(&self, sqe: &Sqe) -> Result<Hint, Status> {
        let words = sqe.cdw(12);
        match words >> 20 & 0xf {
            0 => {}
            PLACEMENT if self.streams > 0 => {
                // A handle that there is not stands for the first.
                let handle = sqe.cdw(13) >> 16;
                return Ok(Hint::Stream(if handle < self.streams { handle as u8 } else { 0 }));
            }
            _ => return Err(Status::INVALID_FIELD),
        }
        if words & APPENDS != 0 {
            let prior = sqe.cdw64(2);
            let known = prior < self.blocks;
            let prior = Lba::from_bytes((if known { prior } else { 0 }) << self.shift);
            return Ok(if known { Hint::AppendAfter(prior) } else { Hint::None });
        }
        Ok(if words & OVERWRITES != 0 { Hint::Overwrite } else { Hint::None })
    }
}

/// Whether a command's data has the room that it needs.
pub fn fits(command: &Command, room: usize) -> Result<(), Status> {
    if room < command.length as usize { Err(Status::DATA_SGL_LENGTH_INVALID) } else { Ok(()) }
}

impl Controller {
    /// How a command is done, as `View::plan` says, where what it reads was written.
    ///
    /// # Errors
    /// It is not done, and why.
    pub fn plan(&self, view: &View, sqe: &Sqe, room: usize) -> Result<Plan, Status> {
        let plan = view.plan(sqe, room)?;
        if let Plan::Drive(command) = plan {
            self.check(view, &command)?;
            if command.operation == Operation::Write && view.streams > 0 {
                self.note_handle(view, sqe);
            }
        }
        Ok(plan)
    }

    /// Does an I/O command by itself; `None` if the epoch is over.
    pub fn io(&self, queue: u16, sqe: &Sqe, data: &mut dyn HostData) -> Option<CommandResult> {
        self.check_epoch()?;
        let view = self.view();
        let (ended, due) = match self.plan(&view, sqe, data.length()) {
            Err(status) => (Err(status), None),
            Ok(_) if self.cntrltype == ControllerType::Discovery => {
                (Err(Status::COMMAND_SEQUENCE_ERROR), None)
            }
            Ok(Plan::Drive(command)) => self.one(command, data)?,
            Ok(Plan::Steps) => self.steps(&view, sqe, data)?,
        };
        if let Err(status) = ended {
            self.subsystem.record_error(queue, sqe, status);
        }
        Some((ended.map_or_else(Completion::from, |()| Completion::SUCCESS), due))
    }

    /// Does what the drive does as one command.
    fn one(&self, command: Command, data: &mut dyn HostData) -> Option<super::steps::Done> {
        if command.operation == Operation::Read {
            let (read, due) = self.read(command)?;
            return Some((read.map(|bytes| data.send(&bytes)), due));
        }
        if command.operation != Operation::Write {
            return self.perform_all(&[command], &[]);
        }
        let Some(sent) = data.payload().get(..command.length as usize) else {
            return Some((Err(Status::DATA_SGL_LENGTH_INVALID), None));
        };
        self.perform_all(&[command], &[sent])
    }

    /// Whether what a command reads was written, where it has to be.
    pub(crate) fn check(&self, view: &View, command: &Command) -> Result<(), Status> {
        let reads = matches!(command.operation, Operation::Read | Operation::Cache);
        let (offset, length) = (command.offset, command.length.into());
        if reads && view.unwritten_fails && !self.subsystem.engine.is_mapped(offset, length) {
            return Err(Status::DEALLOCATED_OR_UNWRITTEN_BLOCK);
        }
        Ok(())
    }
}
