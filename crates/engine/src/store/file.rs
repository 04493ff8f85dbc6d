//! `FileStore`: content in a sparse file, which outlives the server.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom, fallocate, flock, seek};
use rustix::io::Errno;

/// The file. It is locked, because two servers would destroy each other's content.
pub struct FileStore {
    file: File,
    capacity: u64,
}

impl FileStore {
    /// Opens a file of exactly this size, or creates one.
    pub fn open(path: &Path, capacity: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another server has this file open"))?;
        let length = file.metadata()?.len();
        if length == 0 {
            file.set_len(capacity)?;
        } else if length != capacity {
            let what = format!("it holds {length} bytes, the drive has {capacity}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Ok(Self { file, capacity })
    }

    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// As `Store::allocated`; if the file system has no holes, the whole file.
    pub fn allocated(&self, unit_bytes: u64) -> impl Iterator<Item = io::Result<Range<u64>>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(start) => start,
                Err(Errno::NXIO) => return None,
                Err(error) => return Some(Err(error.into())),
            };
            let end = match seek(&self.file, SeekFrom::Hole(start)) {
                Ok(end) => end.next_multiple_of(unit_bytes).min(self.capacity),
                Err(error) => return Some(Err(error.into())),
            };
            at = end;
            Some(Ok(start / unit_bytes * unit_bytes..end))
        })
    }

    /// Punches a hole, or writes zeros if the file system has no holes.
    pub fn zero(&self, offset: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, offset, length) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(offset, length),
            Err(error) => Err(error.into()),
        }
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_zeros(&self, offset: u64, length: u64) -> io::Result<()> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let end = offset + length;
        (offset..end).step_by(ZEROS.len()).try_for_each(|at| {
            let here = (end - at).min(ZEROS.len() as u64);
            self.write(at, &ZEROS[..here as usize])
        })
    }
}
