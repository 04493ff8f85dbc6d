//! Get LBA Status: which blocks the drive's map has, and which it may fail to read.

use crate::controller::Controller;
use crate::page::Page;
use crate::sqe::{Completion, HostData, Sqe};
use crate::status::Status;
use crate::subsystem::NAMESPACE;
use ssdlab_engine::ExtentQuery;

/// What can be asked for: blocks that are mapped; those that reads may fail at, also the ones that
/// nobody has met yet.
const MAPPED: u32 = 0x02;
const SCAN: u32 = 0x10;
const TRACKED: u32 = 0x11;

/// A header and a descriptor have so many bytes.
const HEAD: usize = 8;
const DESCRIPTOR: usize = 16;
/// Why the list ends: it takes no more, or there is no more.
const FULL: u8 = 1;
const COMPLETE: u8 = 2;

impl Controller {
    /// Tells runs of blocks of a range.
    pub(crate) fn block_status(
        &self,
        sqe: &Sqe,
        data: &mut dyn HostData,
    ) -> Result<Completion, Status> {
        let view = self.view();
        if sqe.nsid() != NAMESPACE || view.blocks == 0 {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        let sought = match sqe.cdw(13) >> 24 {
            MAPPED => ExtentQuery::Mapped,
            SCAN => ExtentQuery::Unreadable { met: false },
            TRACKED => ExtentQuery::Unreadable { met: true },
            _ => return Err(Status::INVALID_FIELD),
        };
        let (first, blocks) = (sqe.cdw64(10), u64::from(sqe.cdw(13) as u16));
        let end = match blocks {
            // As far as the namespace goes.
            0 => view.blocks,
            _ => first.checked_add(blocks).ok_or(Status::LBA_OUT_OF_RANGE)?,
        };
        if first >= view.blocks || end > view.blocks {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let room = (u64::from(sqe.cdw(12)) + 1) * 4;
        if (data.length() as u64) < room {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        let room = room as usize;
        let most = room.saturating_sub(HEAD) / DESCRIPTOR;
        let bytes = first << view.shift..end << view.shift;
        let (runs, is_whole) = self.subsystem.engine.stretches(bytes, most, sought);
        let mut page = Page::new(HEAD.max(room));
        page.u32(0, runs.len() as u32).u8(4, if is_whole { COMPLETE } else { FULL });
        for (place, run) in runs.iter().enumerate() {
            let (from, to) = (run.start >> view.shift, run.end.div_ceil(1 << view.shift));
            let at = HEAD + DESCRIPTOR * place;
            page.u64(at, from).u32(at + 8, (to - from).min(u32::MAX.into()) as u32);
        }
        data.send(&page.bytes()[..room]);
        Ok(Completion::SUCCESS)
    }
}
