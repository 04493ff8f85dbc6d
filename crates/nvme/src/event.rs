//! `Events`: what a controller tells unasked: requests for events that wait, and what happened.

use std::collections::VecDeque;

use super::sqe::Completion;
use super::status::Status;

/// So many requests for events may wait.
pub const REQUESTS_MAX: usize = 4;

/// Which kind of event a completion tells of: bits 2:0 of its result.
const HEALTH: u32 = 1;
const NOTICE: u32 = 2;

/// A log that tells more, by which its event can come again.
const HEALTH_LOG: u8 = 2;
const CHANGED_LOG: u8 = 4;

/// Bit of the configuration that lets changes of the namespace be told.
const TELLS_CHANGES: u32 = 1 << 8;

/// Events of one controller.
#[derive(Debug, Default)]
pub struct Events {
    /// The ids of requests that wait.
    waiting: VecDeque<u16>,
    /// Those of requests that were given up, to be told so.
    aborted: VecDeque<u16>,
    /// Which are told; a feature.
    pub told: u32,
    health: Health,
    change: Change,
}

/// Warnings of the health log, by bit.
#[derive(Debug, Default)]
struct Health {
    /// Those that were seen last, and those that are news.
    seen: u8,
    news: u8,
    /// Whether an event was told and nobody has read the log since.
    is_unread: bool,
}

/// Changes of the namespace.
#[derive(Debug, Default)]
struct Change {
    /// How many were seen.
    seen: u64,
    is_news: bool,
    /// Whether the log has one that nobody has read.
    is_logged: bool,
    /// Whether an event was told and nobody has read the log since.
    is_unread: bool,
}

impl Events {
    /// Those of a new controller, which has seen so many changes.
    pub fn new(changes: u64) -> Self {
        Self { change: Change { seen: changes, ..Change::default() }, ..Self::default() }
    }

    /// Takes a request; an error where too many wait.
    pub fn request(&mut self, id: u16) -> Result<(), Status> {
        if self.waiting.len() == REQUESTS_MAX {
            return Err(Status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED);
        }
        self.waiting.push_back(id);
        Ok(())
    }

    /// Gives up a request; false where it does not wait.
    pub fn abort(&mut self, id: u16) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|each| *each != id);
        let found = self.waiting.len() < before;
        self.aborted.extend(found.then_some(id));
        found
    }

    /// Gives all requests up.
    pub fn clear(&mut self) {
        *self = Self::new(self.change.seen);
    }

    /// Whether a request waits, or waits to hear that it was given up.
    pub fn is_asked(&self) -> bool {
        !self.waiting.is_empty() || !self.aborted.is_empty()
    }

    /// The state of the drive: warnings of its health log, changes of its namespace.
    pub fn look(&mut self, warnings: u8, changes: u64) {
        self.health.news |= warnings & !self.health.seen & self.told as u8;
        self.health.seen = warnings;
        let is_new = changes > self.change.seen;
        self.change.is_news |= is_new && self.told & TELLS_CHANGES != 0;
        self.change.is_logged |= is_new;
        self.change.seen = changes;
    }

    /// Whether the namespace was changed since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.change.is_logged)
    }

    /// A log was read: its events may come again.
    pub fn was_read(&mut self, log: u8) {
        match log {
            HEALTH_LOG => self.health.is_unread = false,
            CHANGED_LOG => self.change.is_unread = false,
            _ => {}
        }
    }

    /// Answers to requests that wait, as far as there is news.
    pub fn take(&mut self) -> Option<(u16, Completion)> {
        if let Some(id) = self.aborted.pop_front() {
            return Some((id, Status::COMMAND_ABORT_REQUESTED.into()));
        }
        if self.waiting.is_empty() {
            return None;
        }
        let (health, change) = (&mut self.health, &mut self.change);
        let (kind, what, log) = if health.news != 0 && !health.is_unread {
            let bit = health.news.trailing_zeros();
            health.news &= health.news - 1;
            health.is_unread = true;
            (HEALTH, happened(bit), HEALTH_LOG)
        } else if change.is_news && !change.is_unread {
            (change.is_news, change.is_unread) = (false, true);
            (NOTICE, 0, CHANGED_LOG)
        } else {
            return None;
        };
        let id = self.waiting.pop_front()?;
        Some((id, Completion::with_dw0(kind | what << 8 | u32::from(log) << 16)))
    }
}

/// What a warning of the health log is called as an event: spare below its threshold, temperature,
/// or the drive's reliability.
fn happened(bit: u32) -> u32 {
    match bit {
        0 => 2,
        1 => 1,
        _ => 0,
    }
}
