//! `TraceError`: what is wrong with a trace, with its line, in one line.

use std::io;
use std::path::PathBuf;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file, or what it is packed with.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What failed, and what to do.
        what: String,
    },
    /// It is none of the formats.
    #[error(
        "{}: no format known here ({}); name one with --format", path.display(),
        super::Format::NAMES
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// An entry that cannot be.
    #[error("{}, {unit} {number}: {what}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// `line`, or `record` of a binary trace.
        unit: &'static str,
        /// From 1 on.
        number: u64,
        /// What it says, and what it may.
        what: String,
    },
}

impl TraceError {
    /// A failure to read a file.
    pub fn file(path: impl Into<PathBuf>, error: &io::Error) -> Self {
        let path = path.into();
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends in the middle: copy it again".to_owned(),
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        Self::File { path, what }
    }
}
