//! `SendBuffer`: what is to be sent, in which parts of the store stand without a copy.

use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::buffer_pool::{BufferPart, PooledBuffer};

/// What is to be sent before the byte at `at`.
struct Inset {
    at: usize,
    part: BufferPart,
}

/// Bytes, and parts of slabs between them.
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

/// The most buffers that one writev or recvmsg takes (`IOV_MAX`).
pub const PIECES_MAX: usize = 1024;
/// So much room is kept for the next message.
const ROOM: usize = 1 << 20;
/// Smaller parts are copied: a piece of its own would cost more.
const COPIED_MAX: usize = 8 << 10;

impl SendBuffer {
    /// The bytes, to be added to.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.insets.iter().map(|each| each.part.len()).sum::<usize>()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a range of a slab; of a read of `whole` bytes, which is copied if it is short.
    pub fn add(&mut self, slab: &Arc<PooledBuffer>, range: Range<usize>, whole: usize) {
        if whole <= COPIED_MAX {
            self.bytes.extend_from_slice(&slab[range]);
        } else {
            self.insets.push(Inset { at: self.bytes.len(), part: BufferPart::of(slab, range) });
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

    /// Adds another one.
    pub fn append(&mut self, other: Self) {
        let before = self.bytes.len();
        self.bytes.extend(other.bytes);
        let insets = other.insets.into_iter();
        self.insets.extend(insets.map(|inset| Inset { at: before + inset.at, ..inset }));
    }

    /// Sends all of it, and is empty then.
    ///
    /// # Errors
    /// The stream's.
    pub fn send(&mut self, stream: &mut impl Write) -> io::Result<()> {
        if self.insets.is_empty() {
            stream.write_all(&self.bytes)?;
        } else {
            let pieces: Vec<&[u8]> = self.pieces_since(SendPosition::default()).collect();
            for some in pieces.chunks(PIECES_MAX) {
                send_pieces(
                    stream,
                    &mut some.iter().map(|each| IoSlice::new(each)).collect::<Vec<_>>(),
                )?;
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(ROOM);
        self.insets.clear();
        Ok(())
    }
}

fn send_pieces(stream: &mut impl Write, mut left: &mut [IoSlice<'_>]) -> io::Result<()> {
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

    /// Takes a few bytes at a time.
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
    fn parts_leave_in_their_place_among_the_bytes_however_little_is_taken_at_once() {
        let mut slab = BufferPool::new(100).take();
        slab.iter_mut().zip(0..).for_each(|(byte, number)| *byte = number);
        let slab = Arc::new(slab);
        for whole in [10, COPIED_MAX + 1] {
            let (mut message, mut other) = (SendBuffer::default(), SendBuffer::default());
            message.bytes().extend(b"head");
            message.add(&slab, 10..20, whole);
            let end = message.position();
            message.add(&slab, 50..60, whole);
            message.bytes().extend(b"wrong");
            message.truncate(end);
            other.add(&slab, 0..5, whole);
            other.bytes().extend(b"tail");
            message.append(other);
            assert_eq!(message.len(), 4 + 10 + 5 + 4);
            let mut slow = Slow(Vec::new());
            message.send(&mut slow).unwrap();
            assert_eq!(slow.0, [b"head", &slab[10..20], &slab[..5], b"tail"].concat());
            assert_eq!(message.len(), 0);
        }
    }
}
