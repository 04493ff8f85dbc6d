//! Get Log Page: which logs there are, and what a command takes of one.

mod health;
mod place;
mod placement;

pub use health::warnings;

use super::controller::{Controller, ControllerType};
use super::io;
use super::opcode::{self, admin};
use super::page::Page;
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;
use super::subsystem::{ALL, NAMESPACE};

const LOGS: u8 = 0x00;
const ERRORS: u8 = 0x01;
const HEALTH: u8 = 0x02;
const FIRMWARE: u8 = 0x03;
const CHANGED: u8 = 0x04;
const EFFECTS: u8 = 0x05;
const ENDURANCE: u8 = 0x09;
const PLACEMENT: u8 = 0x20;
const HANDLES: u8 = 0x21;
const PLACEMENT_COUNTS: u8 = 0x22;
const PLACEMENT_EVENTS: u8 = 0x23;
const DISCOVERY: u8 = 0x70;
const SANITIZE: u8 = 0x81;
const OPEN_COMPUTE: u8 = 0xc0;

/// Of a log that is there; of a command that is.
const SUPPORTED: u32 = 1;
/// Of a command: it changes content, or what the namespace can do.
const CHANGES_CONTENT: u32 = 1 << 1;
const CHANGES_NAMESPACE: u32 = 1 << 2;
const CHANGES_INVENTORY: u32 = 1 << 3;

impl Controller {
    /// Gives the part of a log that a command asks for.
    pub(super) fn get_log(&self, sqe: &Sqe, data: &mut dyn HostData) -> Result<Completion, Status> {
        let (log, keeps) = (sqe.cdw(10) as u8, sqe.cdw(10) >> 15 & 1 != 0);
        let words = u64::from(sqe.cdw(10) >> 16) | u64::from(sqe.cdw(11) as u16) << 16;
        let (bytes, offset) = ((words + 1) * 4, sqe.cdw64(12));
        if ![0, NAMESPACE, ALL].contains(&sqe.nsid()) {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        let page = self.log(log, sqe)?;
        let whole = page.bytes();
        if !offset.is_multiple_of(4) || offset > whole.len() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        if (data.length() as u64) < bytes {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        let part = &whole[offset as usize..];
        let here = part.len().min(bytes as usize);
        data.send(&part[..here]);
        data.send(&vec![0; bytes as usize - here]);
        if !keeps {
            self.lock().events.was_read(log);
        }
        Ok(Completion::SUCCESS)
    }

    fn log(&self, log: u8, sqe: &Sqe) -> Result<Page, Status> {
        let (group, specific) = (sqe.cdw(11) >> 16, sqe.cdw(10) >> 8 & 0x7f);
        if !self.logs().contains(&log) {
            return Err(Status::INVALID_LOG_PAGE);
        }
        let of_group = [ENDURANCE, PLACEMENT, HANDLES, PLACEMENT_COUNTS, PLACEMENT_EVENTS];
        if of_group.contains(&log) && group != 1 {
            return Err(Status::INVALID_FIELD);
        }
        let is_of_use = [HANDLES, PLACEMENT_COUNTS, PLACEMENT_EVENTS].contains(&log);
        if is_of_use && self.subsystem.streams() == 0 {
            return Err(Status::FDP_DISABLED);
        }
        Ok(match log {
            LOGS => self.supported(),
            ERRORS => self.error_log(),
            HEALTH => self.health_log(),
            FIRMWARE => {
                let mut page = Page::new(512);
                page.u8(0, 1).text(8, 8, env!("CARGO_PKG_VERSION"));
                page
            }
            CHANGED => self.changed(),
            EFFECTS => self.effects(),
            ENDURANCE => self.endurance_log(),
            PLACEMENT => self.placement_log(),
            HANDLES => self.handles_log(),
            PLACEMENT_COUNTS => self.placement_counts(),
            DISCOVERY => self.discovery_log(),
            SANITIZE => self.sanitize_log(),
            OPEN_COMPUTE => self.open_compute_log(),
            _ => self.placement_events(specific & 1 != 0),
        })
    }

    /// The logs that this controller has.
    fn logs(&self) -> Vec<u8> {
        if self.cntrltype == ControllerType::Discovery {
            return vec![LOGS, DISCOVERY];
        }
        let mut logs = vec![LOGS, ERRORS, HEALTH, FIRMWARE, CHANGED, EFFECTS, ENDURANCE];
        logs.extend([SANITIZE, OPEN_COMPUTE]);
        if self.subsystem.geometry.streams > 0 {
            logs.extend([PLACEMENT, HANDLES, PLACEMENT_COUNTS, PLACEMENT_EVENTS]);
        }
        logs
    }

    fn supported(&self) -> Page {
        let mut page = Page::new(1024);
        for log in self.logs() {
            page.u32(4 * usize::from(log), SUPPORTED);
        }
        page
    }

    /// Namespaces that were changed since somebody read this; here always the one.
    fn changed(&self) -> Page {
        let mut page = Page::new(4096);
        let mut state = self.lock();
        self.look(&mut state);
        if state.events.take_changed() {
            page.u32(0, NAMESPACE);
        }
        page
    }

    /// Which commands there are, and what they change.
    fn effects(&self) -> Page {
        let mut page = Page::new(4096);
        let plain = [
            admin::GET_LOG_PAGE,
            admin::IDENTIFY,
            admin::ABORT,
            admin::SET_FEATURES,
            admin::GET_FEATURES,
            admin::ASYNC_EVENT_REQUEST,
            admin::KEEP_ALIVE,
            admin::GET_LBA_STATUS,
        ];
        for opcode in plain {
            page.u32(4 * usize::from(opcode), SUPPORTED);
        }
        let erases = SUPPORTED | CHANGES_CONTENT;
        page.u32(4 * usize::from(admin::FORMAT_NVM), erases | CHANGES_NAMESPACE);
        page.u32(4 * usize::from(admin::SANITIZE), erases);
        page.u32(4 * usize::from(admin::NAMESPACE_MANAGEMENT), erases | CHANGES_INVENTORY);
        page.u32(4 * usize::from(admin::NAMESPACE_ATTACHMENT), SUPPORTED | CHANGES_INVENTORY);
        for (opcode, changes) in io::COMMANDS {
            let placement = [opcode::io::IO_MANAGEMENT_RECEIVE, opcode::io::IO_MANAGEMENT_SEND]
                .contains(&opcode);
            if !placement || self.subsystem.geometry.streams > 0 {
                let effect = if changes { CHANGES_CONTENT } else { 0 };
                page.u32(1024 + 4 * usize::from(opcode), SUPPORTED | effect);
            }
        }
        page
    }

    fn sanitize_log(&self) -> Page {
        let asked = self.subsystem.sanitized();
        let mut page = Page::new(512);
        // Nothing is in progress; no time is estimated.
        page.u16(0, u16::MAX).u16(2, u16::from(asked != 0)).u32(4, asked);
        for place in (8..32).step_by(4) {
            page.u32(place, u32::MAX);
        }
        page
    }
}
