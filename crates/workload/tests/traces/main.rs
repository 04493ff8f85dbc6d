//! Traces of every format, valid and damaged.

mod damaged;
mod formats;
mod replayed;

use std::fs;
use std::path::PathBuf;

use ssdlab_workload::trace::{Entry, ReadOptions, Replay, Trace, TraceError};
use tempfile::TempDir;

struct TraceFile {
    folder: TempDir,
    path: PathBuf,
}

impl TraceFile {
    fn named(name: &str, content: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        Self { folder, path }
    }

    fn of(content: &str) -> Self {
        Self::named("trace", content.as_bytes())
    }

    fn read(&self) -> Result<Vec<Entry>, TraceError> {
        self.read_with(ReadOptions::default())
    }

    fn read_with(&self, reading: ReadOptions) -> Result<Vec<Entry>, TraceError> {
        Trace::open(&self.path, reading)?.collect()
    }

    /// A replay of the trace; `format` is `None` to detect it.
    fn replay(&self, format: Option<&str>) -> Replay {
        let format = format.map(str::to_owned);
        Replay { path: self.path.clone(), format, ..Replay::default() }
    }

    /// The error of reading it, with `TRACE` for its path.
    fn error_text(&self) -> String {
        let path = format!("{}", self.path.display());
        self.read().unwrap_err().to_string().replace(&path, "TRACE")
    }
}
