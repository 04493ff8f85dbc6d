//! Traces of every format, whole and damaged.

mod damaged;
mod formats;
mod replayed;

use std::fs;
use std::path::PathBuf;

use ssdlab_workload::trace::{Entry, Reading, Replay, Trace, TraceError};
use tempfile::TempDir;

/// A trace in a file of its own.
struct Kept {
    folder: TempDir,
    path: PathBuf,
}

impl Kept {
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
        self.read_by(Reading::default())
    }

    fn read_by(&self, reading: Reading) -> Result<Vec<Entry>, TraceError> {
        Trace::open(&self.path, reading)?.collect()
    }

    /// How a job asks for it; by this name of a format, where it is not to be guessed.
    fn replay(&self, format: Option<&str>) -> Replay {
        Replay {
            path: self.path.clone(),
            format: format.map(str::to_owned),
            volume: None,
            any_order: false,
            volumes: Vec::new(),
            requests: 0,
            speed: None,
        }
    }

    /// What is wrong with it, without its path.
    fn wrong(&self) -> String {
        let path = format!("{}", self.path.display());
        self.read().unwrap_err().to_string().replace(&path, "TRACE")
    }
}
