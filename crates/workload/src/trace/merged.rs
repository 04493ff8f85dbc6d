//! `blktrace`'s files, one a processor, as one stream in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use ssdlab_time::Nanos;

use super::file::{self, Bytes};
use super::format::blktrace::{self, Record};
use super::{Entry, TraceError};

/// All processors' files of one trace.
pub struct Merged {
    files: Vec<Processor>,
    /// The next entry of each file that has one more: its time, and which file.
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The file of the entry that came last.
    last: usize,
}

struct Processor {
    path: PathBuf,
    bytes: Bytes,
    /// Records read so far.
    number: u64,
    head: Option<Entry>,
}

impl Merged {
    /// Opens the file, and those of the other processors beside it.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut files = Vec::new();
        for path in processors(path) {
            let bytes = file::open(&path).map_err(|error| TraceError::file(&path, &error))?;
            files.push(Processor { path, bytes, number: 0, head: None });
        }
        let mut merged = Self { files, next: BinaryHeap::new(), last: 0 };
        for index in 0..merged.files.len() {
            merged.advance(index)?;
        }
        Ok(merged)
    }

    /// The next entry of all.
    pub fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        self.last = index;
        let entry = self.files[index].head.take();
        self.advance(index)?;
        Ok(entry)
    }

    /// How many records of the last entry's file were read.
    pub fn number(&self) -> u64 {
        self.files[self.last].number
    }

    /// Reads on in a file up to its next entry.
    fn advance(&mut self, index: usize) -> Result<(), TraceError> {
        let file = &mut self.files[index];
        loop {
            file.number += 1;
            let read = blktrace::next(&mut file.bytes).map_err(|what| TraceError::Entry {
                path: file.path.clone(),
                unit: "record",
                number: file.number,
                what,
            })?;
            match read {
                Record::End => return Ok(()),
                Record::Other => {}
                Record::Entry(entry) => {
                    self.next.push(Reverse((entry.at, index)));
                    file.head = Some(entry);
                    return Ok(());
                }
            }
        }
    }
}

/// `NAME.blktrace.0`, `.1` ... where the path is one of them; else the path itself.
fn processors(path: &Path) -> Vec<PathBuf> {
    let name = path.to_string_lossy();
    let Some((stem, number)) = name.rsplit_once('.') else { return vec![path.to_owned()] };
    if !stem.ends_with(".blktrace") || number.parse::<u32>().is_err() {
        return vec![path.to_owned()];
    }
    let numbered = (0..).map(|number| PathBuf::from(format!("{stem}.{number}")));
    let mut found: Vec<PathBuf> = numbered.take_while(|path| path.exists()).collect();
    if !found.iter().any(|each| each == path) {
        found = vec![path.to_owned()];
    }
    found
}
