//! Get LBA Status: mapped blocks, and blocks that a read may fail on.

use ssdlab_engine::ExtentQuery;
use zerocopy::IntoBytes;

use crate::controller::Context;
use crate::spec::NSID;
use crate::spec::command_data::{LbaStatusDescriptor, LbaStatusDescriptorList};
use crate::sqe::Completion;
use crate::status::Status;

/// Action Type (ATYPE): allocated blocks; possibly unrecoverable blocks, after a scan or of the
/// tracked ones.
const ALLOCATED: u32 = 0x02;
const SCAN: u32 = 0x10;
const TRACKED: u32 = 0x11;

/// Completion Condition (CMPC): the list is full, or complete.
const INCOMPLETE: u8 = 1;
const COMPLETE: u8 = 2;

pub fn get_lba_status(context: &mut Context<'_>) -> Result<Completion, Status> {
    let (sqe, view) = (context.sqe, context.controller.view());
    if sqe.nsid() != NSID || view.blocks == 0 {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let query = match sqe.cdw(13) >> 24 {
        ALLOCATED => ExtentQuery::Mapped,
        SCAN => ExtentQuery::Unreadable { hit_only: false },
        TRACKED => ExtentQuery::Unreadable { hit_only: true },
        _ => return Err(Status::INVALID_FIELD),
    };
    let (slba, range_length) = (sqe.cdw64(10), u64::from(sqe.cdw(13) as u16));
    let end = match range_length {
        // To the end of the namespace.
        0 => view.blocks,
        _ => slba.checked_add(range_length).ok_or(Status::LBA_OUT_OF_RANGE)?,
    };
    if slba >= view.blocks || end > view.blocks {
        return Err(Status::LBA_OUT_OF_RANGE);
    }
    // Maximum Number of Dwords (MNDW), zeroes based.
    let length = (u64::from(sqe.cdw(12)) + 1) * 4;
    if (context.data.length() as u64) < length {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    let room = (length as usize).saturating_sub(size_of::<LbaStatusDescriptorList>());
    let count = room / size_of::<LbaStatusDescriptor>();
    let bytes = slba << view.lbads..end << view.lbads;
    let (extents, is_complete) = context.subsystem().engine.extents(bytes, count, query);
    let list = LbaStatusDescriptorList {
        nlsd: (extents.len() as u32).into(),
        cmpc: if is_complete { COMPLETE } else { INCOMPLETE },
        unused_5: [0; 3],
    };
    let descriptors = extents.iter().map(|extent| {
        let (first, end) = (extent.start >> view.lbads, extent.end.div_ceil(1 << view.lbads));
        LbaStatusDescriptor {
            dslba: first.into(),
            nlb: ((end - first).min(u32::MAX.into()) as u32).into(),
            unused_12: [0; 4],
        }
    });
    let descriptors: Vec<LbaStatusDescriptor> = descriptors.collect();
    context.send(&[list.as_bytes(), descriptors.as_bytes()].concat(), length)?;
    Ok(Completion::SUCCESS)
}
