//! Opens a file or block device, and determines its size, sector and alignment.

use std::fs::{self, File, FileType};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use serde::Deserialize;
use ssdlab_device::{DeviceError, LBA_BYTES, Op, Request};

use crate::{Content, OpenError};

/// Sector size of a file if the kernel (before 6.1, or btrfs) does not report it: a page is a
/// multiple of any.
const FILE_SECTOR_BYTES: u64 = 4096;

/// The system call of a flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    /// `fsync`: data and all metadata of the file.
    #[default]
    Fsync,
    /// `fdatasync`: data and the metadata needed to read it.
    Fdatasync,
}

/// Options for opening a device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags, as in open(2)")]
pub struct OpenOptions {
    /// Bypass the page cache (`O_DIRECT`). Without it the page cache is measured, not the drive.
    pub direct: bool,
    /// Allow writes and trims, which destroy existing data.
    pub writable: bool,
    /// Fail if a block device is mounted or in use (`O_EXCL`). Ignored for regular files.
    pub exclusive: bool,
    /// Maximum number of requests in flight, 1 to 1024.
    pub queue_depth: usize,
    /// Maximum length of a read or write in bytes, which is the size of each buffer: one sector to
    /// 1 GiB.
    pub request_bytes_max: usize,
    /// Pin the buffers once instead of for each request, which needs locked memory (`ulimit -l`).
    /// `None` pins them if the process may; `UringDevice::registered_buffers` shows whether.
    pub registered_buffers: Option<bool>,
    /// Submit requests together when completions are reaped, and wait for a quarter of those in
    /// flight: fewer system calls and wake-ups, but longer latencies, and lower throughput on some
    /// virtual disks.
    pub batch: bool,
    /// Only one thread uses the device at a time, and another one only when nothing is in flight.
    /// The kernel then interrupts the thread less; calls fail if the rule is broken. No gain with
    /// `batch`, where each completion then wakes the thread separately.
    #[serde(skip)]
    pub single_issuer: bool,
    /// Every write is durable on completion (`O_DSYNC`).
    pub dsync: bool,
    /// The system call of a flush.
    pub flush: Flush,
    /// The data of writes.
    pub content: Content,
    /// The seed of that data.
    pub seed: u64,
}

impl Default for OpenOptions {
    /// Direct, read-only, shared, 32 requests of up to 1 MiB, registered buffers if permitted.
    fn default() -> Self {
        Self {
            direct: true,
            writable: false,
            exclusive: false,
            queue_depth: 32,
            request_bytes_max: 1 << 20,
            registered_buffers: None,
            batch: false,
            single_issuer: false,
            dsync: false,
            flush: Flush::Fsync,
            content: Content::Incompressible,
            seed: 0,
        }
    }
}

impl OpenOptions {
    fn check(&self, sector: u64) -> Result<(), OpenError> {
        let refuse = |name, given, allowed| Err(OpenError::Option { name, given, allowed });
        if !(1..=1024).contains(&self.queue_depth) {
            return refuse("queue_depth", self.queue_depth, "1 to 1024");
        }
        if !(sector as usize..=1 << 30).contains(&self.request_bytes_max) {
            let allowed = "one sector of the device to 1 GiB";
            return refuse("request_bytes_max", self.request_bytes_max, allowed);
        }
        if let Some(share) = self.content.share()
            && !(0.0..=1.0).contains(&share)
        {
            return Err(OpenError::Share { given: share });
        }
        Ok(())
    }
}

/// An open file or block device and its properties.
#[derive(Debug)]
pub struct Target {
    pub file: File,
    /// In bytes, a multiple of the sector.
    pub capacity: u64,
    /// In bytes, at least `LBA_BYTES`.
    pub sector: u64,
    /// Alignment that direct I/O requires of a buffer's address, in bytes.
    pub memory_align: usize,
    /// Maximum length of a read or write in bytes.
    pub request_bytes_max: u64,
    pub writable: bool,
}

impl Target {
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        let refused = |source| explain(&name, options, source);
        // Checked before opening, because opening a pipe would wait for a writer.
        let kind = fs::metadata(path).map_err(refused)?.file_type();
        check_kind(&name, kind)?;
        let flag = |on: bool, flag: i32| if on { flag } else { 0 };
        // On a regular file O_EXCL without O_CREAT has no defined meaning.
        let flags = flag(options.direct, libc::O_DIRECT)
            | flag(options.dsync, libc::O_DSYNC)
            | flag(options.exclusive && kind.is_block_device(), libc::O_EXCL);
        let opened =
            File::options().read(true).write(options.writable).custom_flags(flags).open(path);
        match opened {
            Ok(file) => Self::inspect(file, name, options),
            Err(error) if options.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                let system = rustix::fs::statfs(path).map(|found| found.f_type);
                Err(no_direct_io(name, system))
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// Uses an open file, if it was opened as the options require.
    pub fn from_file(file: File, options: &OpenOptions) -> Result<Self, OpenError> {
        let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_or_else(|_| "the file given".to_owned(), |path| path.display().to_string());
        let refused = |source: io::Error| explain(&name, options, source);
        check_kind(&name, file.metadata().map_err(refused)?.file_type())?;
        let flags = rustix::fs::fcntl_getfl(&file).map_err(|errno| refused(errno.into()))?;
        let access = flags & OFlags::ACCMODE;
        let missing = if options.direct && !flags.contains(OFlags::DIRECT) {
            Some("O_DIRECT")
        } else if options.dsync && !flags.contains(OFlags::DSYNC) {
            Some("O_DSYNC")
        } else if options.writable && access != OFlags::RDWR {
            Some("O_RDWR")
        } else if access == OFlags::WRONLY {
            Some("O_RDONLY or O_RDWR")
        } else {
            None
        };
        match missing {
            Some(missing) => Err(OpenError::Opened { path: name, missing }),
            None => Self::inspect(file, name, options),
        }
    }

    /// The same open file, for requests of these options.
    pub fn try_clone(&self, options: &OpenOptions) -> Result<Self, OpenError> {
        let file = self.file.try_clone().map_err(|source| {
            let path = "the open device".to_owned();
            OpenError::System { path, what: "opened again", source }
        })?;
        Ok(Self { file, request_bytes_max: options.request_bytes_max as u64, ..*self })
    }

    /// Checks a request before it is submitted.
    pub fn check(&self, request: &Request) -> Result<(), DeviceError> {
        DeviceError::check(request, self.capacity, self.sector)?;
        let moves = matches!(request.op, Op::Read | Op::Write);
        assert!(
            !moves || request.bytes() <= self.request_bytes_max,
            "a request of {} bytes on a device opened for {}",
            request.bytes(),
            self.request_bytes_max,
        );
        if !self.writable && matches!(request.op, Op::Write | Op::Trim) {
            return Err(DeviceError::Unsupported { op: request.op });
        }
        Ok(())
    }

    fn inspect(mut file: File, path: String, options: &OpenOptions) -> Result<Self, OpenError> {
        // Checked again, because the path may have changed before the file was opened.
        let kind = file.metadata().map_err(|e| explain(&path, options, e))?.file_type();
        check_kind(&path, kind)?;
        let (sector, memory_align) =
            if options.direct { direct_alignment(&file, &path, kind)? } else { (LBA_BYTES, 1) };
        options.check(sector)?;
        // The same as BLKGETSIZE64 for a block device, without an unsafe call.
        let bytes = file.seek(SeekFrom::End(0)).map_err(|e| explain(&path, options, e))?;
        let capacity = bytes - bytes % sector;
        if capacity == 0 {
            return Err(OpenError::Empty { path, bytes, sector });
        }
        let request_bytes_max = options.request_bytes_max as u64;
        let writable = options.writable;
        Ok(Self { file, capacity, sector, memory_align, request_bytes_max, writable })
    }
}

/// The smallest direct I/O, and the required alignment of buffers, in bytes.
///
/// From `statx` with `STATX_DIOALIGN` (Linux 6.1). If that is not supported, the logical sector of
/// a block device (BLKSSZGET), or 4096 for a file.
fn direct_alignment(file: &File, path: &str, kind: FileType) -> Result<(u64, usize), OpenError> {
    let system = rustix::fs::fstatfs(file).map(|found| found.f_type);
    if kind.is_file() && system == Ok(magic::TMPFS) {
        // Since Linux 6.6 tmpfs accepts the flag but still copies memory.
        return Err(no_direct_io(path.to_owned(), system));
    }
    let refused = |what| {
        move |errno: Errno| OpenError::System { path: path.to_owned(), what, source: errno.into() }
    };
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .map_err(refused("queried for its direct I/O alignment"))?;
    if found.stx_mask & StatxFlags::DIOALIGN.bits() != 0 {
        if found.stx_dio_offset_align == 0 {
            return Err(no_direct_io(path.to_owned(), system));
        }
        let sector = u64::from(found.stx_dio_offset_align).max(LBA_BYTES);
        return Ok((sector, found.stx_dio_mem_align as usize));
    }
    let sector = if kind.is_block_device() {
        rustix::fs::ioctl_blksszget(file).map_err(refused("queried for its sector size"))?.into()
    } else {
        FILE_SECTOR_BYTES
    };
    Ok((sector.max(LBA_BYTES), sector as usize))
}

fn check_kind(path: &str, found: FileType) -> Result<(), OpenError> {
    let kind = if found.is_file() || found.is_block_device() {
        return Ok(());
    } else if found.is_dir() {
        "directory"
    } else if found.is_char_device() {
        "character device"
    } else {
        "pipe or socket"
    };
    Err(OpenError::Kind { path: path.to_owned(), kind })
}

fn explain(path: &str, options: &OpenOptions, source: io::Error) -> OpenError {
    let path = path.to_owned();
    let access = if options.writable { "reading and writing" } else { "reading" };
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => OpenError::NotFound { path },
        Some(libc::EACCES | libc::EPERM) => OpenError::Permission { path, access },
        Some(libc::EBUSY) => OpenError::Busy { path },
        _ => OpenError::System { path, what: "opened", source },
    }
}

fn no_direct_io(path: String, system: Result<i64, Errno>) -> OpenError {
    let file_system = match system {
        Ok(magic::TMPFS) => "tmpfs (memory)".to_owned(),
        Ok(magic::RAMFS) => "ramfs (memory)".to_owned(),
        Ok(magic::OVERLAY) => "overlayfs".to_owned(),
        Ok(magic::FUSE) => "a FUSE file system".to_owned(),
        Ok(magic::SQUASHFS) => "squashfs".to_owned(),
        Ok(magic::EXT) => "ext4 (with encryption, verity or journalled data)".to_owned(),
        Ok(other) => format!("a file system of type {other:#x}"),
        Err(errno) => format!("an unknown file system ({errno})"),
    };
    OpenError::NoDirectIo { path, file_system }
}

/// File system types of `statfs` (linux/magic.h).
mod magic {
    pub const TMPFS: i64 = 0x0102_1994;
    pub const RAMFS: i64 = 0x8584_58f6;
    pub const OVERLAY: i64 = 0x794c_7630;
    pub const FUSE: i64 = 0x6573_5546;
    pub const SQUASHFS: i64 = 0x7371_7368;
    pub const EXT: i64 = 0xef53;
}
