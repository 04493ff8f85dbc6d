//! Flexible data placement where hosts change it: on or off, updates of handles, events.
//!
//! Events are of two kinds: a reclaim unit that was left before it was full, and a write whose
//! handle there is not. Not modelled: events of what the drive does by itself (data that is moved).

use std::collections::{BTreeSet, VecDeque};

use super::controller::Controller;
use super::page::Page;
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;
use super::subsystem::{NAMESPACE, Subsystem, View};

/// Kinds of events that there are: a reclaim unit is not fully written, a handle is not valid.
const NOT_FULL: u8 = 0x00;
const NO_HANDLE: u8 = 0x03;
const KINDS: [u8; 2] = [NOT_FULL, NO_HANDLE];
/// A log has so many.
const EVENTS_MAX: usize = 63;
/// Of an event: its handle, its namespace and where it was are valid.
const ALL_VALID: u8 = 0b111;
/// An event, and the log's header, have so many bytes.
const BYTES: usize = 64;
/// A kind of event and whether it is noted.
const DESCRIPTOR: usize = 2;

/// Something that befell a handle.
#[derive(Clone, Copy, Debug)]
struct Event {
    kind: u8,
    /// As the host named it, and which that is.
    named: u16,
    handle: u8,
    /// In milliseconds of the drive's running.
    at: u64,
}

/// Whether data is placed, and what was noted of it.
#[derive(Debug, Default)]
pub struct Placement {
    pub is_off: bool,
    /// Kinds of events that are noted, by handle.
    noted: BTreeSet<(u32, u8)>,
    /// The oldest first.
    events: VecDeque<Event>,
}

impl Subsystem {
    /// Streams that writes can be kept apart by; 0 where none, or where a host turned that off.
    pub(crate) fn streams(&self) -> u32 {
        if self.placement().is_off { 0 } else { self.geometry.streams }
    }

    /// Notes an event of a handle, where a host wants that.
    fn note(&self, kind: u8, named: u16, handle: u32) {
        let at = self.engine.life().running.as_secs_f64() * 1e3;
        let mut placement = self.placement();
        if placement.noted.contains(&(handle, kind)) {
            let handle = handle as u8;
            placement.events.push_back(Event { kind, named, handle, at: at as u64 });
            let more = placement.events.len().saturating_sub(EVENTS_MAX);
            placement.events.drain(..more);
        }
    }
}

impl Controller {
    /// Notes a write whose handle there is not: the first takes it.
    pub(super) fn note_handle(&self, view: &View, sqe: &Sqe) {
        let (directive, named) = (sqe.cdw(12) >> 20 & 0xf, sqe.cdw(13) >> 16);
        if directive != 0 && named >= view.streams {
            self.subsystem.note(NO_HANDLE, named as u16, 0);
        }
    }

    /// Gives handles new reclaim units: the rest of the old ones is left. `None` without power.
    pub(super) fn update_handles(
        &self,
        view: &View,
        sqe: &Sqe,
        sent: &[u8],
    ) -> Option<Result<(), Status>> {
        let count = (sqe.cdw(10) >> 16) as usize + 1;
        let Some(named) = sent.get(..2 * count) else {
            return Some(Err(Status::DATA_SGL_LENGTH_INVALID));
        };
        let named: Vec<u16> =
            named.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
        if count > view.streams as usize || named.iter().any(|each| view.streams <= (*each).into())
        {
            return Some(Err(Status::INVALID_FIELD));
        }
        for handle in named {
            if self.subsystem.engine.renew_stream(self.epoch, handle.into())? {
                self.subsystem.note(NOT_FULL, handle, handle.into());
            }
        }
        Some(Ok(()))
    }

    /// Turns placement on or off, which needs that no namespace is there.
    pub(super) fn set_placement(&self, sqe: &Sqe) -> Result<Completion, Status> {
        if sqe.cdw(11) != 1 || sqe.cdw(12) >> 8 & 0xff != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if self.subsystem.namespace().is_some() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        self.subsystem.placement().is_off = sqe.cdw(12) & 1 == 0;
        Ok(Completion::SUCCESS)
    }

    /// Has kinds of events of a handle noted, or not.
    pub(super) fn set_events(&self, sqe: &Sqe, sent: &[u8]) -> Result<Completion, Status> {
        let (handle, count) = of_events(sqe);
        let kinds = sent.get(..count).ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
        self.check_events(handle)?;
        if kinds.iter().any(|kind| !KINDS.contains(kind)) {
            return Err(Status::INVALID_FIELD);
        }
        let mut placement = self.subsystem.placement();
        for kind in kinds {
            if sqe.cdw(12) & 1 != 0 {
                placement.noted.insert((handle, *kind));
            } else {
                placement.noted.remove(&(handle, *kind));
            }
        }
        Ok(Completion::SUCCESS)
    }

    /// Tells which kinds of events of a handle there are, and which of them are noted.
    pub(super) fn get_events(
        &self,
        sqe: &Sqe,
        data: &mut dyn HostData,
    ) -> Result<Completion, Status> {
        let (handle, count) = of_events(sqe);
        self.check_events(handle)?;
        if data.length() < DESCRIPTOR * count {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        let mut page = Page::new(DESCRIPTOR * count);
        let placement = self.subsystem.placement();
        for (place, kind) in KINDS.iter().enumerate().take(count) {
            let is_noted = placement.noted.contains(&(handle, *kind));
            page.u8(DESCRIPTOR * place, *kind).u8(DESCRIPTOR * place + 1, is_noted.into());
        }
        data.send(page.bytes());
        Ok(Completion::with_dw0(KINDS.len() as u32))
    }

    fn check_events(&self, handle: u32) -> Result<(), Status> {
        let streams = self.subsystem.view().streams;
        match streams {
            0 => Err(Status::FDP_DISABLED),
            _ if handle >= streams => Err(Status::INVALID_FIELD),
            _ => Ok(()),
        }
    }

    /// What befell handles because of hosts; of what the drive does nothing is noted.
    pub(super) fn placement_events(&self, of_hosts: bool) -> Page {
        let mut page = Page::new(BYTES + BYTES * EVENTS_MAX);
        if !of_hosts {
            return page;
        }
        let placement = self.subsystem.placement();
        page.u32(0, placement.events.len() as u32);
        for (place, event) in placement.events.iter().enumerate() {
            let at = BYTES + BYTES * place;
            page.u8(at, event.kind).u8(at + 1, ALL_VALID).u16(at + 2, event.named);
            page.put(at + 4, &event.at.to_le_bytes()[..6]).u32(at + 12, NAMESPACE);
            page.u8(at + 34, event.handle);
        }
        page
    }
}

/// The handle that a feature of events is about, and how many kinds.
fn of_events(sqe: &Sqe) -> (u32, usize) {
    (sqe.cdw(11) & 0xffff, (sqe.cdw(11) >> 16 & 0xff) as usize)
}
