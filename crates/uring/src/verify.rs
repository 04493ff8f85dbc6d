//! `verify`: reads stamped content back and finds what is not as it was written.

use std::os::unix::fs::FileExt;
use std::path::Path;

use ssdlab_device::Region;

use crate::buffers::Buffers;
use crate::content::{Maker, STAMPED, Stamp};
use crate::target::Target;
use crate::{Content, OpenError, OpenOptions};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// What a look at stamped content found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Bytes that carry this run's stamps and are as they were written.
    pub good_bytes: u64,
    /// The first that do not.
    pub mismatch: Option<Mismatch>,
}

/// The first 512 bytes that are not as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where they are, in bytes.
    pub offset: u64,
    /// The stamp that they carry: of another place, of another run, or sound with damage behind it.
    pub found: Option<Stamp>,
}

/// Reads a region of what a run wrote with `Content::Stamped`, past the page cache if the options
/// say so, up to the first mismatch.
///
/// # Errors
/// A file that cannot be opened or read.
///
/// # Panics
/// With a region that is not whole sectors of the device, or ends beyond it.
pub fn verify(
    path: &Path,
    options: &OpenOptions,
    region: Region,
    run: u64,
) -> Result<Verified, OpenError> {
    let content = Content::Stamped { run };
    let request_bytes_max = PIECE;
    let options = OpenOptions {
        queue_depth: 1,
        writable: false,
        content,
        request_bytes_max,
        ..options.clone()
    };
    let target = Target::open(path, &options)?;
    let end = region.start.bytes() + region.bytes();
    assert!(end <= target.capacity, "a region beyond the end");
    let mut buffers = Buffers::new(&options, target.memory_align)?;
    let maker = Maker::new(content, 0);
    let mut good_bytes = 0;
    let mut offset = region.start.bytes();
    while offset < end {
        let length = (end - offset).min(PIECE as u64) as usize;
        let bytes = buffers.bytes(Buffers::read_index(0), length);
        let read = target.file.read_exact_at(bytes, offset);
        read.map_err(|source| {
            let path = path.display().to_string();
            OpenError::System { path, what: "read back", source }
        })?;
        for (part, at) in bytes.chunks(STAMPED).zip((offset..).step_by(STAMPED)) {
            let found = Stamp::read(part);
            let ours = found.filter(|stamp| stamp.offset == at && stamp.run == run);
            if !ours.is_some_and(|stamp| maker.is_body(part, stamp.count)) {
                return Ok(Verified { good_bytes, mismatch: Some(Mismatch { offset: at, found }) });
            }
            good_bytes += part.len() as u64;
        }
        offset += length as u64;
    }
    Ok(Verified { good_bytes, mismatch: None })
}
