//! The discovery log: where the drive is.

use crate::controller::Controller;
use crate::page::Page;

/// A header and an entry of so many bytes each.
const PART: usize = 1024;
const TCP: u8 = 3;
const IPV4: u8 = 1;
const IPV6: u8 = 2;
/// An I/O subsystem.
const DRIVE: u8 = 2;
/// Sqe queues can go without flow control.
const NO_FLOW_CONTROL: u8 = 1 << 2;

impl Controller {
    pub(super) fn discovery_log(&self) -> Page {
        let Some(port) = self.port else { return Page::new(PART) };
        let mut page = Page::new(2 * PART);
        page.u64(0, 1).u64(8, 1);
        let family = if port.is_ipv4() { IPV4 } else { IPV6 };
        page.u8(PART, TCP).u8(PART + 1, family).u8(PART + 2, DRIVE).u8(PART + 3, NO_FLOW_CONTROL);
        // Any controller, by the first port; an admin queue of 32 entries.
        page.u16(PART + 4, 1).u16(PART + 6, u16::MAX).u16(PART + 8, 32);
        page.text(PART + 32, 32, &port.port().to_string());
        page.put(PART + 256, self.subsystem.identity.subnqn.as_bytes());
        page.text(PART + 512, 256, &port.ip().to_string());
        page
    }
}
