//! `WriteLog`: records every change of the content, in order, in a file.
//!
//! The format is that of the kernel's dm-log-writes (Documentation/admin-guide/device-mapper/
//! log-writes.rst, drivers/md/dm-log-writes.c), all numbers little-endian: a super block (magic,
//! version, entries, sector size), then for each entry a sector (sector, sectors, flags, bytes of a
//! mark), then its data. Discarded sectors read as zeros.
//!
//! Differs from that target: writes are logged when they are executed and not when they are
//! flushed, so that every prefix of the log is a content that the drive had.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
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

pub enum Change<'a> {
    /// These bytes are written at this offset.
    Write(u64, &'a [u8]),
    /// This range now reads as zeros.
    Zero(Range<u64>),
    /// All earlier changes are durable.
    Flush,
}

/// A write log; its count of entries in the file is correct after each flush, mark and `finish`.
pub struct WriteLog {
    file: BufWriter<File>,
    entries: u64,
}

impl WriteLog {
    /// Creates a log; an error if the file exists.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(path)?;
        let mut log = Self { file: BufWriter::with_capacity(1 << 20, file), entries: 0 };
        log.file.write_all(&log.super_block())?;
        Ok(log)
    }

    /// Appends a change; `durable` sets its FUA flag.
    pub(crate) fn record(&mut self, change: &Change<'_>, durable: bool) -> io::Result<()> {
        let fua = if durable { FUA } else { 0 };
        match change {
            Change::Write(offset, bytes) => {
                self.entry(*offset..*offset + bytes.len() as u64, fua, b"")?;
                self.file.write_all(bytes)
            }
            Change::Zero(range) if range.is_empty() => Ok(()),
            Change::Zero(range) => self.entry(range.clone(), DISCARD | fua, b""),
            Change::Flush => {
                self.entry(0..0, FLUSH, b"")?;
                self.finish()
            }
        }
    }

    /// Appends a named mark; panics if the name is longer than `MARK_MAX`.
    pub(crate) fn mark(&mut self, name: &str) -> io::Result<()> {
        self.entry(0..0, MARK, name.as_bytes())?;
        self.finish()
    }

    /// Writes out buffered entries and the count of entries.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().write_all_at(&self.super_block(), 0)
    }

    fn entry(&mut self, range: Range<u64>, flags: u64, mark: &[u8]) -> io::Result<()> {
        assert!(mark.len() <= MARK_MAX, "a mark of {} bytes", mark.len());
        let sectors = (range.end - range.start) / LBA_BYTES;
        let numbers = [range.start / LBA_BYTES, sectors, flags, mark.len() as u64];
        self.entries += 1;
        self.file.write_all(&sector(numbers, mark))
    }

    fn super_block(&self) -> Vec<u8> {
        // The sector size has four bytes only; the rest of the sector is zeros.
        sector([MAGIC, VERSION, self.entries, LBA_BYTES], b"")
    }
}

fn sector(numbers: [u64; 4], mark: &[u8]) -> Vec<u8> {
    let mut sector = [&numbers.map(u64::to_le_bytes).concat(), mark].concat();
    sector.resize(LBA_BYTES as usize, 0);
    sector
}

impl Drop for WriteLog {
    fn drop(&mut self) {
        // A caller that checks for errors has called `finish`.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, DISCARD, FLUSH, FUA, MARK, WriteLog};

    fn number(sector: &[u8], field: usize) -> u64 {
        u64::from_le_bytes(sector[field * 8..][..8].try_into().unwrap())
    }

    #[test]
    fn each_change_is_an_entry_and_its_data_and_empty_trims_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = WriteLog::create(&path).unwrap();
        log.record(&Change::Write(1024, &[7; 512]), true).unwrap();
        log.record(&Change::Zero(4096..8192), false).unwrap();
        log.record(&Change::Zero(4096..4096), false).unwrap();
        log.record(&Change::Flush, false).unwrap();
        assert_eq!(number(&std::fs::read(&path).unwrap(), 2), 3, "entries after a flush");
        log.mark("here").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let sectors: Vec<&[u8]> = bytes.chunks(512).collect();
        assert_eq!(number(sectors[0], 2), 4, "entries");
        let entry = |sector: &[u8]| [0, 1, 2].map(|field| number(sector, field));
        assert_eq!(entry(sectors[1]), [2, 1, FUA]);
        assert_eq!(sectors[2], [7; 512]);
        assert_eq!(entry(sectors[3]), [8, 8, DISCARD]);
        assert_eq!(entry(sectors[4]), [0, 0, FLUSH]);
        assert_eq!(entry(sectors[5]), [0, 0, MARK]);
        assert_eq!(&sectors[5][32..36], b"here");
        assert_eq!(sectors.len(), 6);
    }
}
