//! `WriteLog`: every change of the content, in the order in which they were made, as a file.
//!
//! The format is that of the kernel's dm-log-writes (Documentation/admin-guide/device-mapper/
//! log-writes.rst, drivers/md/dm-log-writes.c), all numbers little-endian: a super block (magic,
//! version, entries, sector size), then for each entry a sector (sector, sectors, flags, bytes of a
//! mark), then its data. Discarded sectors read as zeros.
//!
//! Differs from that target: writes are logged as they are done, and not when they are flushed; so
//! any beginning of the log is a content that the drive had.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ssdlab_device::LBA_BYTES;

const MAGIC: u64 = 0x6a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;

/// The longest mark: the rest of an entry's sector.
pub const MARK_MAX: usize = LBA_BYTES as usize - 32;

/// A log that is being written; its count of entries is right after each flush, mark and `finish`.
pub struct WriteLog {
    file: BufWriter<File>,
    entries: u64,
}

impl WriteLog {
    /// A new log.
    ///
    /// # Errors
    /// There is such a file, or it cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(path)?;
        let mut log = Self { file: BufWriter::with_capacity(1 << 20, file), entries: 0 };
        log.file.write_all(&log.super_block())?;
        Ok(log)
    }

    /// Bytes were written at a byte.
    ///
    /// # Errors
    /// The file's; as everywhere.
    pub fn write(&mut self, offset: u64, bytes: &[u8], durable: bool) -> io::Result<()> {
        let flags = if durable { FUA } else { 0 };
        self.entry(offset..offset + bytes.len() as u64, flags, b"")?;
        self.file.write_all(bytes)
    }

    /// A range became zeros.
    pub fn zero(&mut self, range: std::ops::Range<u64>, durable: bool) -> io::Result<()> {
        self.entry(range, if durable { DISCARD | FUA } else { DISCARD }, b"")
    }

    /// All before it was flushed.
    pub fn flush(&mut self) -> io::Result<()> {
        self.entry(0..0, FLUSH, b"")?;
        self.finish()
    }

    /// A name for this moment.
    ///
    /// # Panics
    /// Where it is longer than `MARK_MAX`.
    pub fn mark(&mut self, name: &str) -> io::Result<()> {
        self.entry(0..0, MARK, name.as_bytes())?;
        self.finish()
    }

    /// Writes out what is held back, and the count of entries.
    pub fn finish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().write_all_at(&self.super_block(), 0)
    }

    fn entry(&mut self, range: std::ops::Range<u64>, flags: u64, mark: &[u8]) -> io::Result<()> {
        assert!(mark.len() <= MARK_MAX, "a mark of {} bytes", mark.len());
        let sectors = (range.end - range.start) / LBA_BYTES;
        let mut sector = Vec::with_capacity(LBA_BYTES as usize);
        for number in [range.start / LBA_BYTES, sectors, flags, mark.len() as u64] {
            sector.extend(number.to_le_bytes());
        }
        sector.extend(mark);
        sector.resize(LBA_BYTES as usize, 0);
        self.entries += 1;
        self.file.write_all(&sector)
    }

    fn super_block(&self) -> Vec<u8> {
        let mut sector = Vec::with_capacity(LBA_BYTES as usize);
        for number in [MAGIC, VERSION, self.entries] {
            sector.extend(number.to_le_bytes());
        }
        sector.extend((LBA_BYTES as u32).to_le_bytes());
        sector.resize(LBA_BYTES as usize, 0);
        sector
    }
}

impl Drop for WriteLog {
    fn drop(&mut self) {
        // Who wants to hear of an error has called `finish`.
        let _ = self.finish();
    }
}
