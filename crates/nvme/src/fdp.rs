//! `Fdp`: the state of flexible data placement (FDP): enabled or not, and its events.
//!
//! Modelled events: a reclaim unit that was left before it was full, and a write with an invalid
//! placement identifier. Not modelled: events of what the drive does by itself (moving data).

use std::collections::{BTreeSet, VecDeque};

use super::spec::log_page::fdp_event::{INVALID_PLACEMENT_IDENTIFIER, RU_NOT_FULLY_WRITTEN};

/// Types of the events that can be enabled.
pub const EVENT_TYPES: [u8; 2] = [RU_NOT_FULLY_WRITTEN, INVALID_PLACEMENT_IDENTIFIER];
/// The FDP Events log page keeps the newest events up to this number.
pub const EVENTS_MAX: usize = 63;

#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub event_type: u8,
    /// The placement identifier in the host's command, and the handle that was used.
    pub pid: u16,
    pub ruhid: u16,
    /// Drive time in milliseconds.
    pub timestamp: u64,
}

#[derive(Debug, Default)]
pub struct Fdp {
    pub is_disabled: bool,
    /// Handles and event types that are enabled.
    enabled: BTreeSet<(u32, u8)>,
    /// The oldest first.
    pub events: VecDeque<Record>,
}

impl Fdp {
    pub fn is_enabled(&self, handle: u32, event_type: u8) -> bool {
        self.enabled.contains(&(handle, event_type))
    }

    pub fn enable(&mut self, handle: u32, event_type: u8, enable: bool) {
        if enable {
            self.enabled.insert((handle, event_type));
        } else {
            self.enabled.remove(&(handle, event_type));
        }
    }

    /// Records an event if its type is enabled for the handle.
    pub fn record(&mut self, event: Record) {
        if self.is_enabled(event.ruhid.into(), event.event_type) {
            self.events.push_back(event);
            let excess = self.events.len().saturating_sub(EVENTS_MAX);
            self.events.drain(..excess);
        }
    }
}
