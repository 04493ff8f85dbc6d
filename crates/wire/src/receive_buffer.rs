//! `ReceiveBuffer`: what a client sent, as far as it was received: many small requests in one call.

use std::io::{self, IoSliceMut, Read};

use ssdlab_engine::failpoints::{self, Point};

/// Received at once, if so much is there: what a processor's own cache holds besides the content.
const ROOM: usize = 256 << 10;
/// The room of a connection on which less comes.
const ROOM_MIN: usize = 16 << 10;

/// A longer buffer is given up when what is in it was taken.
pub const KEPT_MAX: usize = 2 * ROOM;

/// A buffer before a stream. Bytes that were taken stay where they are until the next `wait_for`
/// after `release`.
pub struct ReceiveBuffer<R> {
    stream: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// As much came as there was room for: there may be more.
    was_full: bool,
    reads_ahead: bool,
}

impl<R: Read> ReceiveBuffer<R> {
    /// Nothing received yet.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), start: 0, end: 0, was_full: false, reads_ahead: true }
    }

    /// The stream.
    ///
    /// # Errors
    /// More was received of it than was taken.
    pub fn into_stream(self) -> io::Result<R> {
        if self.ready() > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it was not waited for"));
        }
        Ok(self.stream)
    }

    /// How many bytes are there.
    pub fn ready(&self) -> usize {
        self.end - self.start
    }

    /// The stream itself, to wait on.
    pub fn stream(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The bytes that are there, from the next on.
    pub fn peek(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether a read for `wait_for` also takes what follows, as it does at first. Off where the
    /// following bytes are better received elsewhere.
    pub fn set_read_ahead(&mut self, reads_ahead: bool) {
        self.reads_ahead = reads_ahead;
    }

    /// Waits until `count` bytes are there; false at the end of the stream.
    ///
    /// # Errors
    /// The stream's, and an end in the middle of what was waited for.
    pub fn wait_for(&mut self, count: usize) -> io::Result<bool> {
        let most = if self.reads_ahead { usize::MAX } else { count };
        while self.ready() < count {
            if !self.receive(count, most)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives what comes next, with room for `count` bytes and no more than `most` of them; false
    /// at the end of the stream.
    fn receive(&mut self, count: usize, most: usize) -> io::Result<bool> {
        self.make_room(count)?;
        let end = self.buffer.len().min(self.start.saturating_add(most));
        loop {
            match self.stream.read(&mut self.buffer[self.end..end]) {
                Ok(0) if self.ready() == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(received) => {
                    self.end += received;
                    self.was_full = self.end == self.buffer.len();
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes bytes into pieces: those that are there, then from the stream, waiting for them. With
    /// the last of them up to `beyond` bytes are received of what follows, if they are there.
    ///
    /// Bytes that were taken before do not stay where they are.
    ///
    /// # Errors
    /// The stream's, and its end.
    pub fn fill(&mut self, pieces: Vec<&mut [u8]>, beyond: usize) -> io::Result<()> {
        let mut left = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let here = piece.len().min(self.ready());
            let (now, later) = piece.split_at_mut(here);
            let place = self.take(here);
            now.copy_from_slice(self.at(place, here));
            if !later.is_empty() {
                left.push(later);
            }
        }
        if self.ready() > 0 {
            return Ok(());
        }
        (self.start, self.end) = (0, 0);
        let mut missing: usize = left.iter().map(|piece| piece.len()).sum();
        left.push(&mut self.buffer[..beyond]);
        let mut left: Vec<IoSliceMut<'_>> = left.into_iter().map(IoSliceMut::new).collect();
        let mut left = &mut left[..];
        while missing > 0 {
            match self.stream.read_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(received) => {
                    self.end = received.saturating_sub(missing);
                    missing = missing.saturating_sub(received);
                    IoSliceMut::advance_slices(&mut left, received);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves what is there to the front, or makes the buffer longer, where `count` bytes from the
    /// next on have no room.
    fn make_room(&mut self, count: usize) -> io::Result<()> {
        if self.start + count > self.buffer.len() || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let least = if self.was_full { ROOM } else { ROOM_MIN };
        let wanted = count.next_multiple_of(ROOM_MIN).max(least);
        if wanted > self.buffer.len() {
            failpoints::check(Point::Memory)?;
            self.buffer.try_reserve_exact(wanted - self.buffer.len())?;
            self.buffer.resize(wanted, 0);
        }
        Ok(())
    }

    /// Takes bytes that are there; returns their place for `at`.
    pub fn take(&mut self, count: usize) -> usize {
        assert!(count <= self.ready(), "only what is there can be taken");
        let place = self.start;
        self.start += count;
        place
    }

    /// Bytes that were taken, while nothing was waited for since.
    pub fn at(&self, place: usize, count: usize) -> &[u8] {
        &self.buffer[place..place + count]
    }

    /// Gives up the bytes that were taken.
    pub fn release(&mut self) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > KEPT_MAX {
                self.buffer = Vec::new();
            }
        }
    }

    /// Takes `N` bytes, waiting for them.
    ///
    /// # Errors
    /// As `wait_for`; an end of the stream is one too.
    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        if !self.wait_for(N)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let place = self.take(N);
        Ok(self.at(place, N).try_into().expect("so many were taken"))
    }

    /// Takes bytes and throws them away.
    ///
    /// # Errors
    /// As `array`.
    pub fn skip(&mut self, mut count: usize) -> io::Result<()> {
        loop {
            let here = count.min(self.ready());
            self.take(here);
            self.release();
            count -= here;
            if count == 0 {
                return Ok(());
            }
            if !self.receive(1, usize::MAX)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSliceMut, Read};

    use super::ReceiveBuffer;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = into.len().min(self.1);
            self.0.read(&mut into[..most])
        }
    }

    #[test]
    fn pieces_are_filled_from_what_is_there_and_from_the_stream_and_the_rest_stays() {
        let bytes: Vec<u8> = (0..100).collect();
        for at_once in [1, 7, 60, 100] {
            for there in [10, 30, 100] {
                let mut input = ReceiveBuffer::new(Slow(&bytes, at_once));
                assert!(input.wait_for(there).unwrap());
                input.take(5);
                let (mut first, mut second) = ([0; 20], [0; 40]);
                input.fill(vec![&mut first, &mut second], 4).unwrap();
                assert_eq!([&first[..], &second].concat(), bytes[5..65]);
                assert!(input.wait_for(35).unwrap());
                assert_eq!(input.peek()[..35], bytes[65..]);
                assert!(input.fill(vec![&mut [0; 36][..]], 4).is_err(), "it ends");
            }
        }
    }

    /// Fills the first thousand pieces at most, as the system does.
    struct Fills<'a>(&'a [u8]);

    impl Read for Fills<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }

        fn read_vectored(&mut self, pieces: &mut [IoSliceMut<'_>]) -> std::io::Result<usize> {
            let most = pieces.len().min(1000);
            self.0.read_vectored(&mut pieces[..most])
        }
    }

    #[test]
    fn more_pieces_than_the_system_takes_are_filled_also_where_most_bytes_are_there() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for there in [1, 1500, 2999] {
            let mut input = ReceiveBuffer::new(Fills(&bytes));
            input.receive(there, there).unwrap();
            let mut into = vec![0; 3000];
            input.fill(into.iter_mut().map(std::slice::from_mut).collect(), 4).unwrap();
            assert_eq!(into, bytes[..3000]);
        }
    }

    #[test]
    fn no_more_is_received_than_is_wanted() {
        let mut input = ReceiveBuffer::new(&[1; 100][..]);
        assert!(input.receive(28, 28).unwrap());
        assert_eq!(input.ready(), 28);
        assert!(input.receive(30, 30).unwrap());
        assert_eq!(input.ready(), 30);
        assert!(input.receive(1, usize::MAX).unwrap());
        assert_eq!(input.ready(), 100);
    }
}
