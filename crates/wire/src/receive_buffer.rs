//! `ReceiveBuffer`: bytes that a client has sent; one read call receives many small requests.

use std::io::{self, IoSliceMut, Read};

use ssdlab_engine::failpoints::{self, Point};

/// Size of the buffer of a busy connection: a processor's cache holds it, together with the content
/// that is read and written.
const CAPACITY: usize = 256 << 10;
/// Size of the buffer at first.
const CAPACITY_MIN: usize = 16 << 10;

/// A longer buffer is freed once its bytes have been consumed.
pub const RETAINED_BYTES_MAX: usize = 2 * CAPACITY;

/// A buffer before a stream. Consumed bytes stay in place until bytes are received after `release`.
pub struct ReceiveBuffer<R> {
    /// The stream.
    pub stream: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read filled the buffer: more bytes may have arrived.
    was_full: bool,
    reads_ahead: bool,
}

impl<R: Read> ReceiveBuffer<R> {
    /// An empty buffer.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), start: 0, end: 0, was_full: false, reads_ahead: true }
    }

    /// The stream.
    pub fn into_stream(self) -> io::Result<R> {
        if self.available() > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "unexpected bytes before TLS"));
        }
        Ok(self.stream)
    }

    /// The number of bytes that can be consumed.
    pub fn available(&self) -> usize {
        self.end - self.start
    }

    /// The bytes that can be consumed.
    pub fn peek(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether a read for `wait_for` also receives what follows, as it does at first. Off if the
    /// following bytes are better received elsewhere.
    pub fn set_read_ahead(&mut self, reads_ahead: bool) {
        self.reads_ahead = reads_ahead;
    }

    /// Waits until `count` bytes are available; false at the end of the stream.
    pub fn wait_for(&mut self, count: usize) -> io::Result<bool> {
        let most = if self.reads_ahead { usize::MAX } else { count };
        while self.available() < count {
            if !self.receive(count, most)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads once, with space for `count` available bytes and up to `most` of them; false at the
    /// end of the stream.
    fn receive(&mut self, count: usize, most: usize) -> io::Result<bool> {
        self.make_space(count)?;
        let end = self.buffer.len().min(self.start.saturating_add(most));
        loop {
            match self.stream.read(&mut self.buffer[self.end..end]) {
                Ok(0) if self.available() == 0 => return Ok(false),
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

    /// Consumes bytes into `slices`, and waits for those that have not arrived. The same reads also
    /// receive up to `ahead` bytes of what follows. Invalidates the bytes consumed before.
    pub fn fill(&mut self, slices: Vec<&mut [u8]>, ahead: usize) -> io::Result<()> {
        let mut unfilled = Vec::with_capacity(slices.len());
        for slice in slices {
            let count = slice.len().min(self.available());
            let (now, later) = slice.split_at_mut(count);
            let position = self.consume(count);
            now.copy_from_slice(self.consumed(position, count));
            if !later.is_empty() {
                unfilled.push(later);
            }
        }
        if self.available() > 0 {
            return Ok(());
        }
        (self.start, self.end) = (0, 0);
        let mut missing: usize = unfilled.iter().map(|slice| slice.len()).sum();
        unfilled.push(&mut self.buffer[..ahead]);
        let mut unfilled: Vec<_> = unfilled.into_iter().map(IoSliceMut::new).collect();
        let mut unfilled = &mut unfilled[..];
        while missing > 0 {
            match self.stream.read_vectored(unfilled) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(received) => {
                    self.end = received.saturating_sub(missing);
                    missing = missing.saturating_sub(received);
                    IoSliceMut::advance_slices(&mut unfilled, received);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes space for `count` available bytes: moves those that have arrived to the front, and
    /// enlarges the buffer.
    fn make_space(&mut self, count: usize) -> io::Result<()> {
        if self.start + count > self.buffer.len() || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let least = if self.was_full { CAPACITY } else { CAPACITY_MIN };
        let capacity = count.next_multiple_of(CAPACITY_MIN).max(least);
        if capacity > self.buffer.len() {
            failpoints::check(Point::Memory)?;
            self.buffer.try_reserve_exact(capacity - self.buffer.len())?;
            self.buffer.resize(capacity, 0);
        }
        Ok(())
    }

    /// Consumes available bytes; returns their position for `consumed`.
    pub fn consume(&mut self, count: usize) -> usize {
        assert!(count <= self.available(), "only available bytes can be consumed");
        let position = self.start;
        self.start += count;
        position
    }

    /// Consumed bytes; valid until more bytes are received.
    pub fn consumed(&self, position: usize, count: usize) -> &[u8] {
        &self.buffer[position..position + count]
    }

    /// Gives up the consumed bytes.
    pub fn release(&mut self) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > RETAINED_BYTES_MAX {
                self.buffer = Vec::new();
            }
        }
    }

    /// Waits for `N` bytes and consumes them.
    pub fn read_array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        if !self.wait_for(N)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let position = self.consume(N);
        Ok(self.consumed(position, N).try_into().expect("N bytes were consumed"))
    }

    /// Waits for bytes and discards them.
    pub fn discard(&mut self, mut count: usize) -> io::Result<()> {
        loop {
            let now = count.min(self.available());
            self.consume(now);
            self.release();
            count -= now;
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

    /// Reads a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = into.len().min(self.1);
            self.0.read(&mut into[..most])
        }
    }

    #[test]
    fn fill_takes_bytes_from_the_buffer_and_then_from_the_stream() {
        let bytes: Vec<u8> = (0..100).collect();
        for at_once in [1, 7, 60, 100] {
            for arrived in [10, 30, 100] {
                let mut input = ReceiveBuffer::new(Slow(&bytes, at_once));
                assert!(input.wait_for(arrived).unwrap());
                input.consume(5);
                let (mut first, mut second) = ([0; 20], [0; 40]);
                input.fill(vec![&mut first, &mut second], 4).unwrap();
                assert_eq!([&first[..], &second].concat(), bytes[5..65]);
                assert!(input.wait_for(35).unwrap());
                assert_eq!(input.peek()[..35], bytes[65..]);
                assert!(input.fill(vec![&mut [0; 36][..]], 4).is_err(), "the stream ends");
            }
        }
    }

    /// Fills the first 1000 slices at most; the system has such a limit.
    struct Fills<'a>(&'a [u8]);

    impl Read for Fills<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }

        fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> std::io::Result<usize> {
            let count = slices.len().min(1000);
            self.0.read_vectored(&mut slices[..count])
        }
    }

    #[test]
    fn fill_fills_more_slices_than_one_call_can() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for arrived in [1, 1500, 2999] {
            let mut input = ReceiveBuffer::new(Fills(&bytes));
            input.receive(arrived, arrived).unwrap();
            let mut into = vec![0; 3000];
            input.fill(into.iter_mut().map(std::slice::from_mut).collect(), 4).unwrap();
            assert_eq!(into, bytes[..3000]);
        }
    }

    #[test]
    fn a_read_receives_no_more_than_its_limit() {
        let mut input = ReceiveBuffer::new(&[1; 100][..]);
        assert!(input.receive(28, 28).unwrap());
        assert_eq!(input.available(), 28);
        assert!(input.receive(30, 30).unwrap());
        assert_eq!(input.available(), 30);
        assert!(input.receive(1, usize::MAX).unwrap());
        assert_eq!(input.available(), 100);
    }
}
