//! `Trace`: reads the entries of a trace in the order of time and reports errors by line.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::fields::Message;
use super::file::{self, Bytes};
use super::format::{Format, Parser};
use super::merged::Merged;
use super::{Entry, TraceError};

/// Bytes at the start of a file from which its format is detected.
const DETECTION_BYTES: u64 = 1 << 16;

/// An entry may be this much earlier than the one before it: some hosts log completions, in which
/// case the times of arrival are not in order.
const DISORDER_MAX: Nanos = Nanos::from_millis(1000);

/// Maximum length of an entry: the kernel has 32 bits for the bytes of a request. The footprint is
/// counted unit by unit, which would take hours for a longer entry.
const LENGTH_BYTES_MAX: u64 = 1 << 32;

const LINE_MAX: u64 = 1 << 16;

/// Options for reading a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// The format; `None` to detect it.
    pub format: Option<Format>,
    /// Only the entries of this volume.
    pub volume: Option<u32>,
    /// Accepts entries in any order; an entry out of order gets the latest time so far.
    pub any_order: bool,
}

/// An open trace: an iterator over its entries.
///
/// Times are relative to the first entry and never decrease.
pub struct Trace {
    path: PathBuf,
    format: Format,
    entries: Entries,
    options: ReadOptions,
    first: Option<Nanos>,
    latest: Nanos,
    /// Number of entries with an earlier time than the entry before.
    pub out_of_order: u64,
    /// Number of reads, writes and trims of length 0, which are skipped.
    pub empty: u64,
}

enum Entries {
    Text(Lines),
    Records(Merged),
}

struct Lines {
    bytes: Bytes,
    parser: Parser,
    line: Vec<u8>,
    number: u64,
}

impl Trace {
    /// Opens a trace. For `blktrace`, any one of its per-CPU files.
    pub fn open(path: &Path, options: ReadOptions) -> Result<Self, TraceError> {
        let format = options.format.map_or_else(|| format_of(path), Ok)?;
        let entries = match format.parser() {
            None => Entries::Records(Merged::open(path)?),
            Some(parser) => {
                let bytes = file::open(path)?;
                Entries::Text(Lines { bytes, parser, line: Vec::new(), number: 0 })
            }
        };
        let path = path.to_owned();
        let (first, latest) = (None, Nanos::ZERO);
        Ok(Self { path, format, entries, options, first, latest, out_of_order: 0, empty: 0 })
    }

    /// The format of the trace.
    pub const fn format(&self) -> Format {
        self.format
    }

    fn next_raw(&mut self) -> Result<Option<Entry>, TraceError> {
        match &mut self.entries {
            Entries::Records(merged) => merged.next(),
            Entries::Text(lines) => lines.next(&self.path),
        }
    }

    /// The entry's time relative to the first entry, at least the latest time so far.
    fn ordered_time(&mut self, at: Nanos) -> Result<Nanos, Message> {
        let first = *self.first.get_or_insert(at);
        let time = at.saturating_sub(first);
        if time >= self.latest && at >= first {
            self.latest = time;
            return Ok(time);
        }
        let before = (first + self.latest) - at;
        if before > DISORDER_MAX && !self.options.any_order {
            return Err(format!(
                "its time is {:.3} s before that of an earlier entry; sort the trace, or give \
                 --any-order",
                before.get() as f64 / 1e9
            ));
        }
        self.out_of_order += 1;
        Ok(self.latest)
    }

    fn entry_error(&self, what: Message) -> TraceError {
        let (unit, number) = match &self.entries {
            Entries::Text(lines) => ("line", lines.number),
            Entries::Records(merged) => ("record", merged.number()),
        };
        TraceError::Entry { path: self.path.clone(), unit, number, what }
    }

    fn next_checked(&mut self) -> Result<Option<Entry>, TraceError> {
        while let Some(mut entry) = self.next_raw()? {
            if self.options.volume.is_some_and(|volume| volume != entry.volume) {
                continue;
            }
            if entry.op != Op::Flush && entry.length_bytes == 0 {
                self.empty += 1;
                continue;
            }
            if entry.length_bytes > LENGTH_BYTES_MAX {
                let what =
                    format!("its length is {} bytes; may be up to 4 GiB", entry.length_bytes);
                return Err(self.entry_error(what));
            }
            entry.at = self.ordered_time(entry.at).map_err(|what| self.entry_error(what))?;
            return Ok(Some(entry));
        }
        Ok(None)
    }
}

impl Iterator for Trace {
    type Item = Result<Entry, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_checked().transpose()
    }
}

fn format_of(path: &Path) -> Result<Format, TraceError> {
    let mut prefix = Vec::new();
    let read = file::open(path)?.take(DETECTION_BYTES).read_to_end(&mut prefix);
    read.map_err(|error| TraceError::file(path, &error))?;
    if prefix.trim_ascii().is_empty() {
        let what = "it is empty".to_owned();
        return Err(TraceError::File { path: path.to_owned(), what });
    }
    Format::detect(&prefix).ok_or_else(|| TraceError::Unknown { path: path.to_owned() })
}

impl Lines {
    fn next(&mut self, path: &Path) -> Result<Option<Entry>, TraceError> {
        loop {
            self.line.clear();
            let mut limited = (&mut self.bytes).take(LINE_MAX);
            let read = limited.read_until(b'\n', &mut self.line);
            if read.map_err(|error| TraceError::file(path, &error))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let line = self.line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let parsed = if self.line.len() as u64 == LINE_MAX {
                Err("it is longer than 64 KiB".to_owned())
            } else {
                (self.parser)(line)
            };
            match parsed {
                Ok(None) => {}
                Ok(entry) => return Ok(entry),
                Err(what) => {
                    let (path, number) = (path.to_owned(), self.number);
                    return Err(TraceError::Entry { path, unit: "line", number, what });
                }
            }
        }
    }
}
