//! The file of a trace, plain or compressed with gzip or zstd, which its first bytes show.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Result};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder;

/// Buffer size for reading.
const CHUNK: usize = 1 << 17;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A reader of the decompressed bytes.
pub type Bytes = BufReader<Box<dyn Read + Send>>;

/// Opens a file and decompresses it while it is read.
pub fn open(path: &Path) -> Result<Bytes> {
    let mut file = BufReader::with_capacity(CHUNK, File::open(path)?);
    let first = file.fill_buf()?;
    let unpacked: Box<dyn Read + Send> = if first.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(file))
    } else if first.starts_with(&ZSTD) {
        Box::new(Decoder::with_buffer(file)?)
    } else {
        Box::new(file)
    };
    Ok(BufReader::with_capacity(CHUNK, unpacked))
}

/// The first `bytes` decompressed bytes of a file.
pub fn read_prefix(path: &Path, bytes: usize) -> Result<Vec<u8>> {
    let mut first = Vec::with_capacity(bytes);
    open(path)?.take(bytes as u64).read_to_end(&mut first)?;
    Ok(first)
}
