//! `SendBuffer`: bytes to send, with parts of the store between them that are not copied.

use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::buffer_pool::{BufferPart, PooledBuffer};

/// A part of the store that is sent before the byte at `at`.
struct Inset {
    at: usize,
    part: BufferPart,
}

/// Bytes to send, with parts of pooled buffers between them.
#[derive(Default)]
pub struct SendBuffer {
    bytes: Vec<u8>,
    insets: Vec<Inset>,
}

/// A position in a `SendBuffer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendPosition {
    bytes: usize,
    insets: usize,
}

/// Maximum number of buffers of one writev or recvmsg (`IOV_MAX`).
pub const PIECES_MAX: usize = 1024;
/// Capacity in bytes that is kept for reuse after sending.
const KEPT_CAPACITY: usize = 1 << 20;
/// Reads up to this size are copied: that costs less than a further buffer in writev.
const COPIED_MAX: usize = 8 << 10;

impl SendBuffer {
    /// The end of the bytes, to append to.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Total bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.insets.iter().map(|each| each.part.len()).sum::<usize>()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a range of a buffer, which is part of a read of `read_bytes`. Short reads are copied.
    pub fn add(&mut self, buffer: &Arc<PooledBuffer>, range: Range<usize>, read_bytes: usize) {
        if read_bytes <= COPIED_MAX {
            self.bytes.extend_from_slice(&buffer[range]);
        } else {
            self.insets.push(Inset { at: self.bytes.len(), part: BufferPart::of(buffer, range) });
        }
    }

    /// The current end, for `truncate` and `pieces_since`.
    pub fn position(&self) -> SendPosition {
        SendPosition { bytes: self.bytes.len(), insets: self.insets.len() }
    }

    /// The pieces added after a position.
    pub fn pieces_since(&self, position: SendPosition) -> impl Iterator<Item = &[u8]> {
        let mut start = position.bytes;
        let insets = &self.insets[position.insets..];
        let between = insets.iter().flat_map(move |inset| {
            let before = &self.bytes[start..inset.at];
            start = inset.at;
            [before, &*inset.part]
        });
        let last = insets.last().map_or(position.bytes, |inset| inset.at);
        between.chain([&self.bytes[last..]]).filter(|piece| !piece.is_empty())
    }

    /// Removes everything added after a position.
    pub fn truncate(&mut self, position: SendPosition) {
        self.bytes.truncate(position.bytes);
        self.insets.truncate(position.insets);
    }

    /// Appends another one.
    pub fn append(&mut self, other: Self) {
        let before = self.bytes.len();
        self.bytes.extend(other.bytes);
        let insets = other.insets.into_iter();
        self.insets.extend(insets.map(|inset| Inset { at: before + inset.at, ..inset }));
    }

    /// Sends everything; it is empty afterwards.
    pub fn send(&mut self, stream: &mut impl Write) -> io::Result<()> {
        if self.insets.is_empty() {
            stream.write_all(&self.bytes)?;
        } else {
            let pieces: Vec<&[u8]> = self.pieces_since(SendPosition::default()).collect();
            for chunk in pieces.chunks(PIECES_MAX) {
                let mut slices: Vec<_> = chunk.iter().map(|piece| IoSlice::new(piece)).collect();
                send_slices(stream, &mut slices)?;
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
        self.insets.clear();
        Ok(())
    }
}

fn send_slices(stream: &mut impl Write, mut left: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !left.is_empty() {
        match stream.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => IoSlice::advance_slices(&mut left, sent),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{COPIED_MAX, SendBuffer};
    use crate::buffer_pool::BufferPool;

    /// A stream that accepts at most 7 bytes at a time.
    struct Slow(Vec<u8>);

    impl std::io::Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let here = bytes.len().min(7);
            self.0.extend(&bytes[..here]);
            Ok(here)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn parts_are_sent_in_their_place_also_by_short_writes() {
        let mut buffer = BufferPool::new(100).take();
        buffer.iter_mut().zip(0..).for_each(|(byte, number)| *byte = number);
        let buffer = Arc::new(buffer);
        for read_bytes in [10, COPIED_MAX + 1] {
            let (mut message, mut other) = (SendBuffer::default(), SendBuffer::default());
            message.bytes().extend(b"head");
            message.add(&buffer, 10..20, read_bytes);
            let end = message.position();
            message.add(&buffer, 50..60, read_bytes);
            message.bytes().extend(b"wrong");
            message.truncate(end);
            other.add(&buffer, 0..5, read_bytes);
            other.bytes().extend(b"tail");
            message.append(other);
            assert_eq!(message.len(), 4 + 10 + 5 + 4);
            let mut slow = Slow(Vec::new());
            message.send(&mut slow).unwrap();
            assert_eq!(slow.0, [b"head", &buffer[10..20], &buffer[..5], b"tail"].concat());
            assert_eq!(message.len(), 0);
        }
    }
}
