//! `AsyncEvents`: outstanding Asynchronous Event Requests (AER) of a controller, and its events.

use std::collections::VecDeque;

use super::spec::log_page::lid;
use super::sqe::Completion;
use super::status::Status;

/// Asynchronous Event Request Limit (AERL).
pub const REQUESTS_MAX: usize = 4;

/// Asynchronous event types: bits 2:0 of DW0.
const SMART_HEALTH_STATUS: u32 = 1;
const NOTICE: u32 = 2;
/// Asynchronous event information of notices.
const ATTACHED_NAMESPACE_ATTRIBUTE_CHANGED: u32 = 0;

/// Attached Namespace Attribute Notices in Asynchronous Event Configuration.
const NAMESPACE_NOTICES: u32 = 1 << 8;

#[derive(Debug, Default)]
pub struct AsyncEvents {
    /// CIDs of outstanding requests.
    outstanding: VecDeque<u16>,
    /// CIDs of aborted requests that are still to be completed.
    aborted: VecDeque<u16>,
    /// Value of the feature Asynchronous Event Configuration.
    pub configuration: u32,
    health: HealthEvents,
    namespace: NamespaceEvents,
}

/// Events of critical warnings, by bit of the warning.
#[derive(Debug, Default)]
struct HealthEvents {
    /// Warnings at the last check.
    warnings: u8,
    /// Warnings to report.
    pending: u8,
    /// An event was reported and the host has not read the log page yet.
    is_masked: bool,
}

#[derive(Debug, Default)]
struct NamespaceEvents {
    /// Count of changes at the last check.
    changes: u64,
    is_pending: bool,
    /// Whether the Changed Namespace List has an entry.
    is_listed: bool,
    /// An event was reported and the host has not read the log page yet.
    is_masked: bool,
}

impl AsyncEvents {
    /// Events of a new controller; `changes` is the count of namespace changes before it.
    pub fn new(changes: u64) -> Self {
        let namespace = NamespaceEvents { changes, ..NamespaceEvents::default() };
        Self { namespace, ..Self::default() }
    }

    pub fn request(&mut self, cid: u16) -> Result<(), Status> {
        if self.outstanding.len() == REQUESTS_MAX {
            return Err(Status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED);
        }
        self.outstanding.push_back(cid);
        Ok(())
    }

    /// Aborts a request; false if it is not outstanding.
    pub fn abort(&mut self, cid: u16) -> bool {
        let before = self.outstanding.len();
        self.outstanding.retain(|each| *each != cid);
        let found = self.outstanding.len() < before;
        self.aborted.extend(found.then_some(cid));
        found
    }

    /// Drops all requests and events, as a controller reset does.
    pub fn clear(&mut self) {
        *self = Self::new(self.namespace.changes);
    }

    /// Whether requests are outstanding, or aborted and not completed yet.
    pub fn has_requests(&self) -> bool {
        !self.outstanding.is_empty() || !self.aborted.is_empty()
    }

    /// Takes in the state of the drive: critical warnings, and the count of namespace changes.
    pub fn update(&mut self, warnings: u8, changes: u64) {
        self.health.pending |= warnings & !self.health.warnings & self.configuration as u8;
        self.health.warnings = warnings;
        let has_changed = changes > self.namespace.changes;
        self.namespace.is_pending |= has_changed && self.configuration & NAMESPACE_NOTICES != 0;
        self.namespace.is_listed |= has_changed;
        self.namespace.changes = changes;
    }

    /// Clears the Changed Namespace List; whether it had an entry.
    pub fn take_changed_namespace(&mut self) -> bool {
        std::mem::take(&mut self.namespace.is_listed)
    }

    /// The host has read a log page: its events are reported again.
    pub fn unmask(&mut self, log_page: u8) {
        match log_page {
            lid::SMART => self.health.is_masked = false,
            lid::CHANGED_NAMESPACES => self.namespace.is_masked = false,
            _ => {}
        }
    }

    /// The next completion of a request: CID and completion.
    pub fn next_completion(&mut self) -> Option<(u16, Completion)> {
        if let Some(cid) = self.aborted.pop_front() {
            return Some((cid, Status::COMMAND_ABORT_REQUESTED.into()));
        }
        if self.outstanding.is_empty() {
            return None;
        }
        let (health, namespace) = (&mut self.health, &mut self.namespace);
        let (event_type, information, log_page) = if health.pending != 0 && !health.is_masked {
            let bit = health.pending.trailing_zeros();
            health.pending &= health.pending - 1;
            health.is_masked = true;
            (SMART_HEALTH_STATUS, health_information(bit), lid::SMART)
        } else if namespace.is_pending && !namespace.is_masked {
            (namespace.is_pending, namespace.is_masked) = (false, true);
            (NOTICE, ATTACHED_NAMESPACE_ATTRIBUTE_CHANGED, lid::CHANGED_NAMESPACES)
        } else {
            return None;
        };
        let cid = self.outstanding.pop_front()?;
        let dw0 = event_type | information << 8 | u32::from(log_page) << 16;
        Some((cid, Completion::with_dw0(dw0)))
    }
}

/// Event information of a critical warning: spare below threshold, temperature threshold, NVM
/// subsystem reliability.
fn health_information(warning_bit: u32) -> u32 {
    match warning_bit {
        0 => 2,
        1 => 1,
        _ => 0,
    }
}
