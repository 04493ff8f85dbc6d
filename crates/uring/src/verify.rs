//! `verify`: reads stamped content back and finds the first difference.

use std::os::unix::fs::FileExt;
use std::path::Path;

use ssdlab_device::Region;

use crate::buffers::Buffers;
use crate::content::{ContentGenerator, STAMPED_BYTES, Stamp};
use crate::target::Target;
use crate::{Content, OpenError, OpenOptions};

/// Bytes per read.
const CHUNK: usize = 1 << 20;

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Bytes up to the first mismatch, or all.
    pub good_bytes: u64,
    /// The first mismatch, if any.
    pub mismatch: Option<Mismatch>,
}

/// The first 512 bytes that differ from the written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Their byte offset.
    pub offset: u64,
    /// Their stamp: of another offset or run, or correct if the bytes after it are damaged.
    pub found: Option<Stamp>,
}

/// Reads a region that a run wrote with `Content::Stamped`, without the page cache if
/// `options.direct`, up to the first mismatch.
///
/// # Panics
/// If the region is not made of whole sectors, or ends beyond the device.
pub fn verify(
    path: &Path,
    options: &OpenOptions,
    region: Region,
    run: u64,
) -> Result<Verified, OpenError> {
    let (content, request_bytes_max) = (Content::Stamped { run }, CHUNK);
    let own = OpenOptions { queue_depth: 1, content, request_bytes_max, ..options.clone() };
    let options = OpenOptions { writable: false, ..own };
    let target = Target::open(path, &options)?;
    let end = region.start.bytes() + region.bytes();
    assert!(end <= target.capacity, "the region ends beyond the device");
    let mut buffers = Buffers::new(&options, target.memory_align)?;
    let generator = ContentGenerator::new(content, 0);
    let mut good_bytes = 0;
    let mut offset = region.start.bytes();
    while offset < end {
        let length = (end - offset).min(CHUNK as u64) as usize;
        let bytes = buffers.bytes(Buffers::read_index(0), length);
        let read = target.file.read_exact_at(bytes, offset);
        read.map_err(|source| {
            let path = path.display().to_string();
            OpenError::System { path, what: "read back", source }
        })?;
        for (part, at) in bytes.chunks(STAMPED_BYTES).zip((offset..).step_by(STAMPED_BYTES)) {
            let found = Stamp::read(part);
            let ours = found.filter(|stamp| stamp.offset == at && stamp.run == run);
            if !ours.is_some_and(|stamp| generator.is_body(part, stamp.count)) {
                return Ok(Verified { good_bytes, mismatch: Some(Mismatch { offset: at, found }) });
            }
            good_bytes += part.len() as u64;
        }
        offset += length as u64;
    }
    Ok(Verified { good_bytes, mismatch: None })
}
