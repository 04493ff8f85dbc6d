//! Commands on lists of ranges: Dataset Management and Copy.

use ssdlab_engine::{Command, Operation};
use zerocopy::FromBytes;

use super::check_mapped;
use crate::controller::Context;
use crate::drive_io::DriveIo;
use crate::namespace::{FUA, NamespaceView, PRINFO};
use crate::spec::command_data::{CopySourceRange, DatasetManagementRange};
use crate::status::{CommandError, Status};

/// Attribute - Deallocate (AD).
const AD: u32 = 1 << 2;
/// Maximum length of a trim of the drive: a multiple of every mapping unit.
const TRIM_BYTES: u64 = 1 << 30;

/// Maximum number of source ranges (MSRC, here not zeroes based).
pub const COPY_RANGES_MAX: u32 = 128;
/// Maximum logical blocks of a source range (MSSRL), unless that exceeds MDTS.
const RANGE_BLOCKS_MAX: u32 = 1024;

/// Fields of CDW12: Protection Information Field Read, Directive Type.
const PRINFOR: u32 = 0xf << 12;
const DTYPE: u32 = 0xf << 20;

/// Deallocates ranges. Without AD the command only describes how they will be used.
pub fn dataset_management(
    context: &Context<'_>,
    view: &NamespaceView,
    drive: &mut DriveIo<'_>,
) -> Result<(), CommandError> {
    let count = (context.sqe.cdw(10) & 0xff) as usize + 1;
    let deallocates = context.sqe.cdw(11) & AD != 0;
    let payload = context.payload(count * size_of::<DatasetManagementRange>())?;
    let ranges = <[DatasetManagementRange]>::ref_from_bytes(payload).expect("whole ranges");
    let mut trims = Vec::with_capacity(count);
    for range in ranges {
        let slba = range.slba.get();
        let end = slba.checked_add(range.nlb.get().into()).filter(|end| *end <= view.blocks);
        let end = end.ok_or(Status::LBA_OUT_OF_RANGE)? << view.lbads;
        let mut start = slba << view.lbads;
        while deallocates && start < end {
            let next = end.min((start / TRIM_BYTES + 1) * TRIM_BYTES);
            trims.push(Command::new(Operation::Trim, start, (next - start) as u32));
            start = next;
        }
    }
    drive.perform(&trims, &[])
}

/// Maximum logical blocks of a source range, for blocks of 2^`lbads` bytes.
pub fn copy_range_blocks_max(transfer_bytes_max: u32, lbads: u32) -> u32 {
    RANGE_BLOCKS_MAX.min(transfer_bytes_max >> lbads)
}

pub fn copy(
    context: &Context<'_>,
    view: &NamespaceView,
    drive: &mut DriveIo<'_>,
) -> Result<(), CommandError> {
    let durable = context.sqe.cdw(12) & FUA != 0 || view.write_through;
    let mut destination = context.sqe.cdw64(10);
    let ranges = source_ranges(context, view)?;
    let mut copies = Vec::with_capacity(ranges.len());
    for range in ranges {
        let blocks = u64::from(range.nlb.get()) + 1;
        let read = view.command_on(Operation::Read, range.slba.get(), blocks)?;
        let write = view.command_on(Operation::Write, destination, blocks)?;
        check_mapped(&context.subsystem().engine, view, &read)?;
        copies.push((read, Command { durable, ..write }));
        destination += blocks;
    }
    // One after the other: this takes the memory of one transfer only.
    for (read, write) in copies {
        let bytes = drive.read(read)?;
        drive.perform(&[write], &[&bytes])?;
    }
    Ok(())
}

fn source_ranges<'a>(
    context: &'a Context<'_>,
    view: &NamespaceView,
) -> Result<&'a [CopySourceRange], Status> {
    let cdw12 = context.sqe.cdw(12);
    let (count, descriptor_format) = ((cdw12 & 0xff) as usize + 1, cdw12 >> 8 & 0xf);
    // Format 0: without protection information, within one namespace. No directive is supported.
    if descriptor_format != 0 || cdw12 & (PRINFOR | DTYPE | PRINFO) != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if count > COPY_RANGES_MAX as usize {
        return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    }
    let payload = context.payload(count * size_of::<CopySourceRange>())?;
    let ranges = <[CopySourceRange]>::ref_from_bytes(payload).expect("whole ranges");
    let blocks_max = copy_range_blocks_max(view.transfer_bytes_max, view.lbads);
    if ranges.iter().any(|range| u32::from(range.nlb.get()) + 1 > blocks_max) {
        return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    }
    Ok(ranges)
}
