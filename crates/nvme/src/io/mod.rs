//! I/O commands.
//!
//! A command is checked when it arrives: `prepare`. Most become one command of the drive; the
//! transport submits these to the engine in batches. The others are executed by `dispatch`.
//!
//! Data placement has two forms. Directive type 2 names a placement handle (TP4146): a stream of
//! the drive. Two more bits of a write mean that it appends to a file, after the block whose
//! address is in CDW2 and CDW3, or that it overwrites one: the host interface of "We Ain't Afraid
//! of No File Fragmentation" (USENIX FAST 2024). The first of them is the specification's bit for a
//! storage tag check (STC), which a drive without protection information ignores.

mod io_management;
mod ranges;

use ssdlab_device::{Hint, Lba};
use ssdlab_engine::{Command, Engine, Operation};

use super::controller::{Context, Controller};
use super::drive_io::DriveIo;
use super::namespace::NamespaceView;
use super::opcode::io::{
    COMPARE, COPY, DATASET_MANAGEMENT, FLUSH, IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND, READ,
    SUPPORTED, VERIFY, WRITE, WRITE_ZEROES, is_fdp,
};
use super::spec::log_page::fdp_event::INVALID_PLACEMENT_IDENTIFIER;
use super::spec::{BROADCAST_NSID, NSID};
use super::sqe::Sqe;
use super::status::{CommandError, Status};

pub(crate) use ranges::{COPY_RANGES_MAX, copy_range_blocks_max};

/// CDW12 of Write Zeroes: DEAC. CDW12 of Write: the placement bits of the module's documentation.
const DEAC: u32 = 1 << 25;
const APPENDS: u32 = 1 << 24;
const OVERWRITES: u32 = 1 << 25;
/// Directive type (DTYPE) of CDW12: Data Placement.
const DATA_PLACEMENT: u32 = 2;

/// How a checked I/O command is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// As this command of the drive. The data of a read or write is the command's data.
    Drive(Command),
    /// By `dispatch`.
    Controller,
}

/// Checks a command with a data buffer of `length` bytes; returns how it is executed.
pub fn prepare(
    controller: &Controller,
    view: &NamespaceView,
    sqe: &Sqe,
    length: usize,
) -> Result<Execution, Status> {
    let execution = check(view, sqe, length)?;
    if let Execution::Drive(command) = execution {
        check_mapped(&controller.subsystem.engine, view, &command)?;
        if command.operation == Operation::Write && view.handles > 0 {
            check_placement_identifier(controller, view, sqe);
        }
    }
    Ok(execution)
}

/// Executes a command for which `prepare` returned `Execution::Controller`.
pub(crate) fn execute(
    context: &mut Context<'_>,
    drive: &mut DriveIo<'_>,
) -> Result<(), CommandError> {
    let view = context.controller.view();
    // The namespace may have changed since the command arrived.
    check(&view, context.sqe, context.data.length())?;
    match context.sqe.opcode() {
        COMPARE => compare(context, &view, drive),
        DATASET_MANAGEMENT => ranges::dataset_management(context, &view, drive),
        COPY => ranges::copy(context, &view, drive),
        IO_MANAGEMENT_RECEIVE => Ok(io_management::receive(context, &view)?),
        IO_MANAGEMENT_SEND => io_management::send(context, &view),
        _ => Err(Status::INVALID_OPCODE.into()),
    }
}

fn check(view: &NamespaceView, sqe: &Sqe, length: usize) -> Result<Execution, Status> {
    if !view.is_ready {
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    if sqe.fuse() != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let (opcode, nsid) = (sqe.opcode(), sqe.nsid());
    let is_known = SUPPORTED.iter().any(|(each, _)| *each == opcode);
    if !is_known || is_fdp(opcode) && view.handles == 0 {
        return Err(Status::INVALID_OPCODE);
    }
    view.check_mdts(false, sqe)?;
    let flushes_all = opcode == FLUSH && nsid == BROADCAST_NSID;
    if !flushes_all && (nsid != NSID || view.blocks == 0) {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let command = match opcode {
        FLUSH => Command::new(Operation::Flush, 0, 0),
        READ => {
            let command = view.command(Operation::Read, sqe)?;
            check_length(&command, length)?;
            command
        }
        WRITE => {
            let command = view.command(Operation::Write, sqe)?;
            check_length(&command, length)?;
            Command { hint: hint(view, sqe)?, ..command }
        }
        WRITE_ZEROES => {
            let may_trim = sqe.cdw(12) & DEAC != 0;
            view.command(Operation::Zero { may_trim }, sqe)?
        }
        VERIFY => view.command(Operation::Cache, sqe)?,
        _ => return Ok(Execution::Controller),
    };
    Ok(Execution::Drive(command))
}

fn compare(
    context: &Context<'_>,
    view: &NamespaceView,
    drive: &mut DriveIo<'_>,
) -> Result<(), CommandError> {
    let payload = context.data.payload();
    let command = view.command(Operation::Read, context.sqe)?;
    check_length(&command, payload.len())?;
    check_mapped(&context.subsystem().engine, view, &command)?;
    let bytes = drive.read(command)?;
    let is_equal = bytes == payload[..bytes.len()];
    if is_equal { Ok(()) } else { Err(Status::COMPARE_FAILURE.into()) }
}

fn hint(view: &NamespaceView, sqe: &Sqe) -> Result<Hint, Status> {
    let cdw12 = sqe.cdw(12);
    match cdw12 >> 20 & 0xf {
        0 => {}
        DATA_PLACEMENT if view.handles > 0 => {
            // An invalid placement identifier means the first handle.
            let handle = sqe.cdw(13) >> 16;
            return Ok(Hint::Stream(if handle < view.handles { handle as u8 } else { 0 }));
        }
        _ => return Err(Status::INVALID_FIELD),
    }
    if cdw12 & APPENDS != 0 {
        let previous = sqe.cdw64(2);
        return Ok(if previous < view.blocks {
            Hint::AppendAfter(Lba::from_bytes(previous << view.lbads))
        } else {
            Hint::None
        });
    }
    Ok(if cdw12 & OVERWRITES != 0 { Hint::Overwrite } else { Hint::None })
}

/// Records a write with an invalid placement identifier; it goes to the first handle.
fn check_placement_identifier(controller: &Controller, view: &NamespaceView, sqe: &Sqe) {
    let (dtype, pid) = (sqe.cdw(12) >> 20 & 0xf, sqe.cdw(13) >> 16);
    if dtype != 0 && pid >= view.handles {
        controller.subsystem.record_fdp_event(INVALID_PLACEMENT_IDENTIFIER, pid as u16, 0);
    }
}

fn check_length(command: &Command, length: usize) -> Result<(), Status> {
    if length < command.length as usize {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    Ok(())
}

/// With DULBE, checks that all blocks that a command reads are mapped.
fn check_mapped(engine: &Engine, view: &NamespaceView, command: &Command) -> Result<(), Status> {
    let reads = matches!(command.operation, Operation::Read | Operation::Cache);
    if reads && view.dulbe && !engine.is_mapped(command.offset, command.length.into()) {
        return Err(Status::DEALLOCATED_OR_UNWRITTEN_BLOCK);
    }
    Ok(())
}
