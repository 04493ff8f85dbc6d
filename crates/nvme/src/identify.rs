//! Identify: what the drive, its namespace and its command set are; by the profile and its state.

use super::controller::{Controller, ControllerType, QUEUE_ENTRIES, VERSION};
use super::event::REQUESTS_MAX;
use super::identity::DISCOVERY_NQN;
use super::io::{COPY_RANGES_MAX, copy_blocks_max};
use super::namespace::Namespace;
use super::page::Page;
use super::sqe::Sqe;
use super::status::Status;
use super::subsystem::{ALL, ERRORS_MAX, FORMATS, NAMESPACE};

/// Every structure has so many bytes.
const BYTES: usize = 4096;
/// Data that an I/O command's capsule may carry.
pub const CAPSULE_DATA: u32 = 16 << 10;

/// Log page attributes: health by namespace, effects, offsets into logs, which logs there are.
const LOGS: u8 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
/// Optional admin commands: format, namespaces, status of blocks.
const ADMIN: u16 = 1 << 1 | 1 << 3 | 1 << 9;
/// Optional I/O commands: compare, dataset management, write zeroes, select in features, verify,
/// copy.
const COMMANDS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 7 | 1 << 8;
/// Attributes: host ids of 128 bits, traffic keeps alive.
const ATTRIBUTES: u32 = 1 | 1 << 6;
const ENDURANCE_GROUPS: u32 = 1 << 4;
const FLEXIBLE_PLACEMENT: u32 = 1 << 19;
/// Sanitize: erasing blocks and keys; a drive whose blocks are deallocated afterwards.
const SANITIZE: u32 = 0b11 | 2 << 30;

impl Controller {
    /// The structure that an Identify command asks for.
    pub(crate) fn identify(&self, sqe: &Sqe) -> Result<Page, Status> {
        let (which, namespace) = (sqe.cdw(10) as u8, sqe.nsid());
        let set = sqe.cdw(11) >> 24;
        if self.cntrltype == ControllerType::Discovery {
            return if which == 1 {
                Ok(self.identify_discovery())
            } else {
                Err(Status::INVALID_FIELD)
            };
        }
        let (found, allocated) = (self.subsystem.found(), self.subsystem.namespace());
        if [0x05, 0x06, 0x07].contains(&which) && set != 0 {
            return Err(Status::INVALID_FIELD);
        }
        match which {
            0x00 if namespace == ALL => Ok(self.identify_any_namespace()),
            0x00 => named(namespace).map(|()| self.identify_namespace(found)),
            0x01 => Ok(self.identify_drive()),
            0x02 | 0x07 => listed(namespace, found),
            0x03 if found.is_none() => Err(Status::INVALID_NAMESPACE_OR_FORMAT),
            0x03 => named(namespace).map(|()| self.names()),
            0x05 => named(namespace).map(|()| Page::new(BYTES)),
            0x06 => Ok(Page::new(BYTES)),
            0x08 => named(namespace).map(|()| {
                let mut page = Page::new(BYTES);
                if found.is_some() {
                    page.u16(12, 1).u8(14, 1);
                }
                page
            }),
            0x10 => listed(namespace, allocated),
            0x11 => named(namespace).map(|()| self.identify_namespace(allocated)),
            0x12 if namespace == ALL => Err(Status::INVALID_FIELD),
            0x12 => named(namespace).map(|()| match found {
                Some(_) => self.controllers(sqe.cdw(10) >> 16),
                None => Page::new(BYTES),
            }),
            0x13 => Ok(self.controllers(sqe.cdw(10) >> 16)),
            // The I/O command sets: the NVM one alone, in the first combination.
            0x1c => {
                let mut page = Page::new(BYTES);
                page.u64(0, 1);
                Ok(page)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn common(&self, kind: u8, name: &str) -> Page {
        let identity = &self.subsystem.identity;
        let mut page = Page::new(BYTES);
        page.text(4, 20, &identity.serial).text(24, 40, &identity.model);
        page.text(64, 8, env!("CARGO_PKG_VERSION"));
        page.u8(77, self.subsystem.transfer_shift())
            .u16(78, self.cntlid)
            .u32(80, VERSION)
            .u8(111, kind);
        page.u8(259, REQUESTS_MAX as u8 - 1).u8(261, LOGS).u8(262, ERRORS_MAX as u8 - 1);
        // Keep-alive timers count in 100 ms.
        page.u16(320, 1).u16(514, QUEUE_ENTRIES as u16);
        // Data by one SGL descriptor, also with an offset into the capsule.
        page.u32(536, 1 | 1 << 20);
        page.put(768, name.as_bytes());
        page
    }

    fn identify_discovery(&self) -> Page {
        self.common(2, DISCOVERY_NQN)
    }

    fn identify_drive(&self) -> Page {
        let subsystem = &self.subsystem;
        let places = subsystem.geometry.streams > 0;
        let placement = if places { FLEXIBLE_PLACEMENT } else { 0 };
        let mut page = self.common(1, &subsystem.identity.subnqn);
        page.u32(92, 1 << 8).u32(96, ATTRIBUTES | ENDURANCE_GROUPS | placement);
        page.u16(256, ADMIN).u8(258, 3).u8(260, 0b11);
        // Warned of from 70 C on, in danger from 80 C on.
        page.u16(266, 343).u16(268, 353);
        page.u128(280, subsystem.engine.shape().capacity).u128(296, subsystem.unallocated());
        page.u32(328, SANITIZE).u16(340, 1);
        page.u8(512, 6 << 4 | 6).u8(513, 4 << 4 | 4).u32(516, NAMESPACE).u16(520, COMMANDS);
        // A format is of all namespaces, and can erase keys.
        page.u8(524, 0b101);
        page.u8(525, 0b110 | u8::from(subsystem.is_volatile));
        page.u16(534, 1).u32(540, NAMESPACE);
        page.u32(1792, (64 + CAPSULE_DATA) / 16).u32(1796, 1).u8(1803, 1);
        page
    }

    /// What all namespaces have in common.
    fn identify_any_namespace(&self) -> Page {
        let mut page = Page::new(BYTES);
        self.put_formats(&mut page);
        page
    }

    /// All zeros where there is none.
    fn identify_namespace(&self, namespace: Option<Namespace>) -> Page {
        let Some(namespace) = namespace else { return Page::new(BYTES) };
        let (subsystem, format) = (&self.subsystem, namespace.format);
        let (shift, blocks) = (namespace.shift(), namespace.blocks());
        let engine = &subsystem.engine;
        let unit = engine.unit_bytes();
        let used = (engine.life().health.mapped_units * unit) >> shift;
        let in_blocks = |bytes: u64| ((bytes >> shift).clamp(1, 1 << 16) - 1) as u16;
        let mut page = Page::new(BYTES);
        self.put_formats(&mut page);
        page.u64(0, blocks).u64(8, blocks).u64(16, used.min(blocks)).u8(26, format as u8);
        page.u128(48, blocks << shift);
        for place in [64, 66, 68, 70] {
            page.u16(place, in_blocks(unit));
        }
        page.u16(72, in_blocks(subsystem.geometry.stripe_bytes.max(unit)));
        let copied = copy_blocks_max(4096 << subsystem.transfer_shift(), shift);
        page.u16(74, copied as u16).u32(76, copied * COPY_RANGES_MAX);
        page.u8(80, COPY_RANGES_MAX as u8 - 1).u16(102, 1);
        page.put(104, &subsystem.identity.namespace);
        page
    }

    fn put_formats(&self, page: &mut Page) {
        let engine = &self.subsystem.engine;
        // Reads of what is not mapped can fail; preferred sizes are told.
        page.u8(24, 1 << 2 | 1 << 4).u8(25, FORMATS.len() as u8 - 1);
        // What is not mapped reads as zeros, and write zeroes can deallocate, where that is so.
        page.u8(33, if engine.unmapped_is_zero() { 1 | 1 << 3 } else { 0 });
        for (number, shift) in FORMATS.iter().enumerate() {
            // Of two formats the one of whole units is better.
            let fits = engine.unit_bytes() <= 1 << shift;
            page.u8(128 + 4 * number + 2, *shift as u8).u8(128 + 4 * number + 3, u8::from(!fits));
        }
    }

    /// The namespace's identifier in both forms, and its command set.
    fn names(&self) -> Page {
        let id = &self.subsystem.identity.namespace;
        let mut page = Page::new(BYTES);
        page.u8(0, 2).u8(1, 16).put(4, id);
        page.u8(20, 3).u8(21, 16).put(24, id);
        page.u8(40, 4).u8(41, 1);
        page
    }

    /// Controllers from a number on.
    fn controllers(&self, first: u32) -> Page {
        let there = self.subsystem.controllers();
        let listed = there.range(first as u16..).take(BYTES / 2 - 1);
        let mut page = Page::new(BYTES);
        page.u16(0, listed.clone().count() as u16);
        for (place, number) in listed.enumerate() {
            page.u16(2 + 2 * place, *number);
        }
        page
    }
}

/// Whether it is the namespace that there can be.
fn named(namespace: u32) -> Result<(), Status> {
    if namespace == NAMESPACE { Ok(()) } else { Err(Status::INVALID_NAMESPACE_OR_FORMAT) }
}

/// Namespaces beyond a number.
fn listed(beyond: u32, namespace: Option<Namespace>) -> Result<Page, Status> {
    if beyond >= ALL - 1 {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let mut page = Page::new(BYTES);
    if beyond < NAMESPACE && namespace.is_some() {
        page.u32(0, NAMESPACE);
    }
    Ok(page)
}
