//! `ListedRequest`: requests that a job lists one by one.

use serde::Deserialize;
use ssdlab_device::{Hint, LBA_BYTES, Lba, Op, Request};

/// A request of a list; in a job's text `[offset, length, hint]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedRequest {
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Hint of a write; ignored for a read.
    pub hint: ListedHint,
}

/// The hint of a listed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedHint {
    /// No hint.
    #[serde(rename = "nothing")]
    None,
    /// The write replaces content of a file in place.
    Overwrite,
    /// The write appends to a file whose previous block contains this byte.
    #[serde(rename = "after")]
    AppendAfter(u64),
    /// The write belongs to this stream, 0 to 255.
    Stream(u8),
}

impl From<ListedHint> for Hint {
    fn from(hint: ListedHint) -> Self {
        match hint {
            ListedHint::None => Self::None,
            ListedHint::Overwrite => Self::Overwrite,
            ListedHint::AppendAfter(byte) => Self::AppendAfter(Lba::new(byte / LBA_BYTES)),
            ListedHint::Stream(number) => Self::Stream(number),
        }
    }
}

/// The list of a job, repeated from the start after the last request.
pub struct RequestList {
    list: Vec<ListedRequest>,
    next: usize,
}

impl RequestList {
    /// A list that was checked to be not empty.
    pub fn new(list: &[ListedRequest]) -> Self {
        Self { list: list.to_vec(), next: 0 }
    }

    /// Gives a request, whose operation is set, the address, length and hint of the next entry.
    pub fn place(&mut self, request: &mut Request) {
        let listed = self.list[self.next];
        self.next = (self.next + 1) % self.list.len();
        request.lba = Lba::from_bytes(listed.offset_bytes);
        request.blocks = (listed.length_bytes / LBA_BYTES) as u32;
        request.hint = if request.op == Op::Write { listed.hint.into() } else { Hint::None };
    }
}
