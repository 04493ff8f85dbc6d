//! A trace's file, plain or packed by gzip or zstd: which of them, its first bytes tell.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Result};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder;

/// How much is read at a time.
const CHUNK: usize = 1 << 17;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What reads a trace's bytes.
pub type Bytes = BufReader<Box<dyn Read + Send>>;

/// Opens a file; what is packed is unpacked as it is read.
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

/// What a file begins with: up to `bytes` of it.
pub fn beginning(path: &Path, bytes: usize) -> Result<Vec<u8>> {
    let mut first = Vec::with_capacity(bytes);
    open(path)?.take(bytes as u64).read_to_end(&mut first)?;
    Ok(first)
}
