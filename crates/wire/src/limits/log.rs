//! `RateLimitedLog`: rate-limited lines on stderr about clients.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ssdlab_engine::pacing::wall_clock_now;

/// At most one line of each kind is printed in this time.
const PERIOD: Duration = Duration::from_secs(5);

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A host failed to authenticate.
    Authentication,
    /// The system has no file descriptor or no memory for a connection.
    Descriptors,
    /// The system cannot create a thread.
    Threads,
    /// The maximum number of connections is reached.
    TooMany,
}

/// When a line of each kind was last printed, and how many were omitted since.
#[derive(Debug, Default)]
pub struct RateLimitedLog {
    printed: Mutex<BTreeMap<Notice, (Instant, u64)>>,
}

impl RateLimitedLog {
    /// Prints a line, unless one of the same kind was printed recently.
    pub fn print(&self, notice: Notice, text: impl Display) {
        let now = wall_clock_now();
        let mut printed = self.printed.lock().expect("no panic while locked");
        let omitted = match printed.get_mut(&notice) {
            Some((last, omitted)) if now.saturating_duration_since(*last) < PERIOD => {
                *omitted += 1;
                return;
            }
            last => last.map_or(0, |(_, omitted)| *omitted),
        };
        printed.insert(notice, (now, 0));
        drop(printed);
        let omitted = match omitted {
            0 => String::new(),
            _ => format!(" ({omitted} more since the last line)"),
        };
        // Without stderr the line is lost.
        let _ = writeln!(std::io::stderr(), "ssdlab serve: {text}{omitted}");
    }
}
