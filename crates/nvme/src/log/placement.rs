//! Flexible data placement: how the drive is divided, and what its handles have taken.

use crate::controller::Controller;
use crate::page::Page;
use crate::subsystem::View;
use ssdlab_engine::DriveState;

/// Kinds of handle: what is moved goes to one place for all, or stays with its handle.
const INITIALLY_ISOLATED: u8 = 1;
const PERSISTENTLY_ISOLATED: u8 = 2;
/// Of a configuration: it is valid, and the write cache may hold back what handles get.
const VALID: u8 = 1 << 7;
const CACHED: u8 = 1 << 4;
/// Of a handle: hosts use it.
const OF_HOST: u8 = 1;

impl Controller {
    /// The only configuration: one reclaim group, a handle a stream, superblocks as reclaim units.
    pub(super) fn placement_log(&self) -> Page {
        let geometry = &self.subsystem.geometry;
        let handles = geometry.streams as usize;
        let length = (64 + 4 * handles).next_multiple_of(8);
        let mut page = Page::new(16 + length);
        page.u32(4, 16 + length as u32);
        let cached = if self.subsystem.is_volatile { CACHED } else { 0 };
        page.u16(16, length as u16).u8(18, VALID | cached).u32(20, 1);
        page.u16(24, handles as u16).u16(26, handles as u16 - 1).u32(28, 1);
        page.u64(32, geometry.superblock_bytes);
        let kind =
            if geometry.persistently_isolated { PERSISTENTLY_ISOLATED } else { INITIALLY_ISOLATED };
        for handle in 0..handles {
            page.u8(16 + 64 + 4 * handle, kind);
        }
        page
    }

    /// Who uses which handle: the namespace, as many as it was created with.
    pub(super) fn handles_log(&self) -> Page {
        let handles = self.subsystem.geometry.streams as usize;
        let mut page = Page::new(8 + 8 * handles);
        page.u16(0, handles as u16);
        let used = self.subsystem.namespace().map_or(0, |namespace| namespace.handles as usize);
        for handle in 0..used {
            page.u8(8 + 8 * handle, OF_HOST);
        }
        page
    }

    /// Bytes that hosts wrote, that were programmed, that were erased.
    pub(super) fn placement_counts(&self) -> Page {
        let health = self.subsystem.engine.status().health;
        let mut page = Page::new(64);
        page.u128(0, health.written_bytes)
            .u128(16, health.programmed_bytes)
            .u128(32, health.erased_bytes);
        page
    }

    /// What each handle's reclaim unit still takes, in blocks.
    pub(crate) fn handles_status(&self, view: &View) -> Page {
        let mut rooms = self.subsystem.engine.inspect(DriveState::stream_rooms);
        rooms.truncate(view.streams as usize);
        let mut page = Page::new(16 + 32 * rooms.len());
        page.u16(14, rooms.len() as u16);
        for (handle, room) in rooms.iter().enumerate() {
            let at = 16 + 32 * handle;
            page.u16(at, handle as u16).u16(at + 2, handle as u16).u64(at + 8, room >> view.shift);
        }
        page
    }
}
