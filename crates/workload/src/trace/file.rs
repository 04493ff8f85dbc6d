//! The file of a trace, plain or compressed with gzip or zstd, which its first bytes show; and
//! `TraceError`: why a trace cannot be read, in one line, with the number of the entry.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Buffer size for reading.
const CHUNK: usize = 1 << 17;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A reader of the decompressed bytes.
pub type Bytes = BufReader<Box<dyn Read + Send>>;

/// Opens a file and decompresses it while it is read.
pub fn open(path: &Path) -> Result<Bytes, TraceError> {
    unpack(path).map_err(|error| TraceError::file(path, &error))
}

fn unpack(path: &Path) -> io::Result<Bytes> {
    let mut file = BufReader::with_capacity(CHUNK, File::open(path)?);
    let first = file.fill_buf()?;
    let unpacked = if first.starts_with(&GZIP) {
        gunzip(file)?
    } else if first.starts_with(&ZSTD) {
        unzstd(file)?
    } else {
        Box::new(file)
    };
    Ok(BufReader::with_capacity(CHUNK, unpacked))
}

#[cfg(feature = "compressed-traces")]
#[expect(clippy::unnecessary_wraps, reason = "a build without compressed traces has an error")]
fn gunzip(file: BufReader<File>) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(flate2::bufread::MultiGzDecoder::new(file)))
}

#[cfg(feature = "compressed-traces")]
fn unzstd(file: BufReader<File>) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::stream::read::Decoder::with_buffer(file)?))
}

#[cfg(not(feature = "compressed-traces"))]
fn gunzip(_file: BufReader<File>) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::other("this build reads no compressed traces; decompress it with gunzip"))
}

#[cfg(not(feature = "compressed-traces"))]
fn unzstd(_file: BufReader<File>) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::other("this build reads no compressed traces; decompress it with unzstd"))
}

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
