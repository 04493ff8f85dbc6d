//! Dataset Management.

use ssdlab_engine::{Command, Operation};
use zerocopy::FromBytes;

use crate::context::Context;
use crate::drive_io::DriveIo;
use crate::namespace::NamespaceView;
use crate::spec::command_data::DatasetManagementRange;
use crate::status::{CommandError, Status};

/// Attribute - Deallocate (AD).
const AD: u32 = 1 << 2;
/// Maximum length of a trim of the drive: a multiple of every mapping unit.
const TRIM_BYTES: u64 = 1 << 30;

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
