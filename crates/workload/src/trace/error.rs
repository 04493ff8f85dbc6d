//! `TraceError`: why a trace cannot be read, in one line, with the number of the entry.

use std::io;
use std::path::PathBuf;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read or decompressed.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What failed and what to do.
        what: String,
    },
    /// The format is unknown.
    #[error(
        "{}: no format known here ({}); name one with --format", path.display(),
        super::Format::NAMES.join(", ")
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// An entry is invalid.
    #[error("{}, {unit} {number}: {what}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// `line`, or `record` of a binary trace.
        unit: &'static str,
        /// Counted from 1.
        number: u64,
        /// The invalid field and the allowed values.
        what: String,
    },
}

impl TraceError {
    /// A failure to read a file.
    pub fn file(path: impl Into<PathBuf>, error: &io::Error) -> Self {
        let path = path.into();
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it is truncated: copy it again".to_owned(),
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        Self::File { path, what }
    }
}
