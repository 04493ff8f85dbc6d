//! `Frame`: how units leave on a connection: digests, alignment, what both sides agreed on.

use super::pdu::{
    DATA_DIGEST, DATA_RECEIVED, DIGEST_BYTES, DRIVE_TERMINATES, HEADER_DIGEST, LAST, READY,
    RESPONSE, Reason, SHORT_BYTES, SUCCESS,
};
use ssdlab_engine::SendBuffer;
use ssdlab_nvme::Completion;
use zerocopy::IntoBytes;

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Which digests there are, as flags.
    pub digests: u8,
    /// Data begins at multiples of so many bytes.
    pub alignment: usize,
}

impl Frame {
    /// A response; `head` is how far its submission queue was read.
    pub fn response(&self, out: &mut Vec<u8>, head: u16, id: u16, completion: Completion) {
        let from = self.begin(out, RESPONSE, 0, 0);
        out.extend(completion.cqe(head, id).as_bytes());
        self.end_header(out, from);
    }

    /// The head of data for a host, which follows; `ends` says that no response does.
    pub fn data_head(&self, out: &mut Vec<u8>, id: u16, length: u32, ends: bool) {
        let flags = LAST | if ends { SUCCESS } else { 0 } | self.digests & DATA_DIGEST;
        let header = SHORT_BYTES + self.digest(HEADER_DIGEST);
        let data_at = header.next_multiple_of(self.alignment.max(4));
        let after = length as usize + self.digest(DATA_DIGEST);
        let from = self.begin(out, DATA_RECEIVED, flags, data_at - header + after);
        out[from + 3] = data_at as u8;
        out.extend(id.to_le_bytes());
        out.extend([0, 0]);
        out.extend(0_u32.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend([0; 4]);
        self.end_header(out, from);
        out.resize(from + data_at, 0);
    }

    /// The end of data that began at `from`.
    pub fn data_end(&self, out: &mut SendBuffer, from: (usize, usize)) {
        if self.digests & DATA_DIGEST != 0 {
            let digest = out.since(from).fold(0, crc32c::crc32c_append);
            out.bytes().extend(digest.to_le_bytes());
        }
    }

    /// A request for so many bytes of a command's data; its id is the data's tag as well.
    pub fn ready(&self, out: &mut Vec<u8>, id: u16, length: u32) {
        let from = self.begin(out, READY, 0, 0);
        out.extend(id.to_le_bytes());
        out.extend(id.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend([0; 4]);
        self.end_header(out, from);
    }

    /// The end of a connection, and the header that is to blame.
    pub fn termination(out: &mut Vec<u8>, reason: Reason, header: &[u8]) {
        let (status, information) = reason.told();
        let bare = Self::default();
        let from = bare.begin(out, DRIVE_TERMINATES, 0, header.len());
        out.extend(status.to_le_bytes());
        out.extend(information.to_le_bytes());
        out.resize(from + SHORT_BYTES, 0);
        out.extend(header);
    }

    /// A header of 24 bytes is begun, after which `after` more follow; returns where it began.
    fn begin(&self, out: &mut Vec<u8>, kind: u8, flags: u8, after: usize) -> usize {
        let from = out.len();
        let whole = SHORT_BYTES + self.digest(HEADER_DIGEST) + after;
        out.extend([kind, flags | self.digests & HEADER_DIGEST, SHORT_BYTES as u8, 0]);
        out.extend((whole as u32).to_le_bytes());
        from
    }

    fn end_header(&self, out: &mut Vec<u8>, from: usize) {
        if self.digests & HEADER_DIGEST != 0 {
            let digest = crc32c::crc32c(&out[from..]);
            out.extend(digest.to_le_bytes());
        }
    }

    fn digest(&self, flag: u8) -> usize {
        if self.digests & flag == 0 { 0 } else { DIGEST_BYTES }
    }
}
