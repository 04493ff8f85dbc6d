//! Merges the per-CPU files of `blktrace` in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use ssdlab_time::Nanos;

use super::file::{self, Bytes};
use super::format::blktrace::{self, Record};
use super::{Entry, TraceError};

/// The per-CPU files of one trace.
pub struct Merged {
    files: Vec<CpuFile>,
    /// Time and file of each file's next entry.
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The file of the last entry returned.
    last: usize,
}

struct CpuFile {
    path: PathBuf,
    bytes: Bytes,
    /// Records read so far.
    number: u64,
    next: Option<Entry>,
}

impl Merged {
    /// Opens the file and those of the other CPUs in the same folder.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut files = Vec::new();
        for path in cpu_files(path) {
            let bytes = file::open(&path)?;
            files.push(CpuFile { path, bytes, number: 0, next: None });
        }
        let mut merged = Self { files, next: BinaryHeap::new(), last: 0 };
        for index in 0..merged.files.len() {
            merged.advance(index)?;
        }
        Ok(merged)
    }

    pub fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        self.last = index;
        let entry = self.files[index].next.take();
        self.advance(index)?;
        Ok(entry)
    }

    /// The number of records read from the file of the last entry.
    pub fn number(&self) -> u64 {
        self.files[self.last].number
    }

    /// Reads a file up to its next entry.
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
                    file.next = Some(entry);
                    return Ok(());
                }
            }
        }
    }
}

/// `NAME.blktrace.0`, `.1` ... if the path is one of them; otherwise the path itself.
fn cpu_files(path: &Path) -> Vec<PathBuf> {
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
