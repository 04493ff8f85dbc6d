//! `Trace`: the entries of a trace in the order of their times, with their faults told by line.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::fields::Wrong;
use super::file::{self, Bytes};
use super::format::{Format, Parse};
use super::merged::Merged;
use super::{Entry, TraceError};

/// How much of a file tells its format.
const BEGINNING: usize = 1 << 16;

/// An entry may come so much before the one before it: hosts log what is done, not what is asked.
const DISORDER: Nanos = Nanos::from_millis(1000);

/// No host asks for more at once: the kernel counts a request's bytes in 32 bits. The footprint is
/// counted unit by unit, which for a longer entry would take hours.
const LENGTH_BYTES_MAX: u64 = 1 << 32;

/// No line of a trace is longer.
const LINE_MAX: u64 = 1 << 16;

/// How a trace is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Its format; known by its beginning where none is given.
    pub format: Option<Format>,
    /// Only the entries of this volume.
    pub volume: Option<u32>,
    /// Entries may come at any time before others: they count as of the time of the latest.
    pub any_order: bool,
}

/// A trace that is open: an iterator over its entries.
///
/// Times count from the first entry on and never go back.
pub struct Trace {
    path: PathBuf,
    format: Format,
    entries: Entries,
    reading: Reading,
    first: Option<Nanos>,
    latest: Nanos,
    /// Entries that came before the one before them, by at most a second.
    pub early: u64,
    /// Reads, writes and trims of no bytes: left out.
    pub empty: u64,
}

enum Entries {
    Text(Lines),
    Records(Merged),
}

/// The lines of a text.
struct Lines {
    bytes: Bytes,
    parser: Box<dyn Parse>,
    line: Vec<u8>,
    number: u64,
}

impl Trace {
    /// Opens a trace. Of `blktrace`'s files, any one stands for all of their processors.
    ///
    /// # Errors
    /// A file that cannot be read, or is of no format known here.
    pub fn open(path: &Path, reading: Reading) -> Result<Self, TraceError> {
        let format = reading.format.map_or_else(|| format_of(path), Ok)?;
        let entries = match format.parser() {
            None => Entries::Records(Merged::open(path)?),
            Some(parser) => {
                let bytes = file::open(path).map_err(|error| TraceError::file(path, &error))?;
                Entries::Text(Lines { bytes, parser, line: Vec::new(), number: 0 })
            }
        };
        let path = path.to_owned();
        let (first, latest) = (None, Nanos::ZERO);
        Ok(Self { path, format, entries, reading, first, latest, early: 0, empty: 0 })
    }

    /// The format that is read.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The next entry as it stands there.
    fn raw(&mut self) -> Result<Option<Entry>, TraceError> {
        match &mut self.entries {
            Entries::Records(merged) => merged.next(),
            Entries::Text(lines) => lines.next(&self.path),
        }
    }

    /// Its time from the first entry on, not before that of any other.
    fn in_order(&mut self, at: Nanos) -> Result<Nanos, Wrong> {
        let first = *self.first.get_or_insert(at);
        let time = at.saturating_sub(first);
        if time >= self.latest && at >= first {
            self.latest = time;
            return Ok(time);
        }
        let before = (first + self.latest) - at;
        if before > DISORDER && !self.reading.any_order {
            return Err(format!(
                "its time is {:.3} s before that of an earlier entry; sort the trace, or give \
                 --any-order",
                before.get() as f64 / 1e9
            ));
        }
        self.early += 1;
        Ok(self.latest)
    }

    fn wrong(&self, what: Wrong) -> TraceError {
        let (unit, number) = match &self.entries {
            Entries::Text(lines) => ("line", lines.number),
            Entries::Records(merged) => ("record", merged.number()),
        };
        TraceError::Entry { path: self.path.clone(), unit, number, what }
    }

    fn step(&mut self) -> Result<Option<Entry>, TraceError> {
        while let Some(mut entry) = self.raw()? {
            if self.reading.volume.is_some_and(|volume| volume != entry.volume) {
                continue;
            }
            if entry.op != Op::Flush && entry.length_bytes == 0 {
                self.empty += 1;
                continue;
            }
            if entry.length_bytes > LENGTH_BYTES_MAX {
                let what =
                    format!("its length is {} bytes; may be up to 4 GiB", entry.length_bytes);
                return Err(self.wrong(what));
            }
            entry.at = self.in_order(entry.at).map_err(|what| self.wrong(what))?;
            return Ok(Some(entry));
        }
        Ok(None)
    }
}

impl Iterator for Trace {
    type Item = Result<Entry, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// The format of a file, by its beginning.
fn format_of(path: &Path) -> Result<Format, TraceError> {
    let beginning = file::beginning(path, BEGINNING);
    let beginning = beginning.map_err(|error| TraceError::file(path, &error))?;
    if beginning.trim_ascii().is_empty() {
        let what = "it is empty".to_owned();
        return Err(TraceError::File { path: path.to_owned(), what });
    }
    Format::of(&beginning).ok_or_else(|| TraceError::Unknown { path: path.to_owned() })
}

impl Lines {
    fn next(&mut self, path: &Path) -> Result<Option<Entry>, TraceError> {
        loop {
            self.line.clear();
            let mut limited = std::io::Read::take(&mut self.bytes, LINE_MAX);
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
                Err("it has no end within 64 KiB".to_owned())
            } else {
                self.parser.line(line)
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
