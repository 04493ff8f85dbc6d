//! Bytes in memory: pages that are there once something was written to them.

use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use crate::message::{Message, Page};

/// Pages under one lock.
const CHUNK: u64 = 64;

/// Its pages; none where nothing was written.
type Chunk = Option<Box<[Option<Page>]>>;

/// So many pages at most are kept to be filled again.
const SPARE_MAX: usize = 4096;

/// The bytes of a drive, zeros where nothing was written.
pub struct Memory {
    chunks: Vec<RwLock<Chunk>>,
    page_bytes: u64,
    zeros: Page,
    /// Pages that nobody holds any more: to fill them again costs less than to give them back to
    /// the system and get others, which it clears first.
    spare: Mutex<Vec<Page>>,
}

/// Hears which page stood where a new one stands now, before anybody reads or writes there.
pub trait Replaced: FnMut(u64, Option<Page>) {}
impl<F: FnMut(u64, Option<Page>)> Replaced for F {}

impl Memory {
    /// All zeros; pages of a mapping unit each.
    pub fn new(capacity: u64, page_bytes: u64) -> Self {
        let chunks = capacity.div_ceil(CHUNK * page_bytes);
        let chunks = (0..chunks).map(|_| RwLock::new(None)).collect();
        let (zeros, spare) = (vec![0; page_bytes as usize].into(), Mutex::default());
        Self { chunks, page_bytes, zeros, spare }
    }

    /// Takes back pages that were replaced; those that somebody still reads are let go.
    pub fn take_back(&self, pages: impl Iterator<Item = Page>) {
        let mut free: Vec<Page> = pages.filter(|page| Arc::strong_count(page) == 1).collect();
        let mut spare = self.spare.lock().expect("no panic while locked");
        let room = SPARE_MAX - spare.len();
        let rest = free.split_off(room.min(free.len()));
        spare.append(&mut free);
        drop(spare);
        // Given back to the system when others can go on.
        drop(rest);
    }

    /// The same bytes; their pages are shared.
    pub fn fork(&self) -> Self {
        let copy = |chunk: &RwLock<Chunk>| {
            RwLock::new(chunk.read().expect("no panic while locked").clone())
        };
        let chunks = self.chunks.iter().map(copy).collect();
        let (zeros, spare) = (Page::clone(&self.zeros), Mutex::default());
        Self { chunks, page_bytes: self.page_bytes, zeros, spare }
    }

    /// Adds what stands at `offset` to `out`.
    pub fn append(&self, offset: u64, length: u64, out: &mut Message) {
        let chunk_bytes = CHUNK * self.page_bytes;
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let stop = end.min((at / chunk_bytes + 1) * chunk_bytes);
            let chunk = self.chunks[(at / chunk_bytes) as usize].read();
            let chunk = chunk.expect("no panic while locked");
            for (number, start, here) in self.pieces(at, stop - at) {
                let page =
                    chunk.as_ref().and_then(|pages| pages[(number % CHUNK) as usize].as_ref());
                out.add(page.unwrap_or(&self.zeros), start..start + here, length as usize);
            }
            at = stop;
        }
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&self, offset: u64, bytes: &[u8], mut replaced: impl Replaced) {
        let mut left = bytes;
        for (number, start, length) in self.pieces(offset, left.len() as u64) {
            let (now, later) = left.split_at(length);
            let whole = (now.len() as u64 == self.page_bytes).then(|| self.page(now));
            self.replace(number, &mut replaced, |old| {
                Some(whole.unwrap_or_else(|| patched(old.unwrap_or(&self.zeros), start, now)))
            });
            left = later;
        }
    }

    /// Pages that nobody else holds, to be filled and put in their place; what they hold means
    /// nothing.
    pub fn blank(&self, count: usize) -> Vec<Page> {
        let mut spare = self.spare.lock().expect("no panic while locked");
        let kept = spare.len().saturating_sub(count);
        let mut pages = spare.split_off(kept);
        drop(spare);
        pages.retain_mut(|page| Arc::get_mut(page).is_some());
        pages.resize_with(count, || Page::from(&*self.zeros));
        pages
    }

    /// Puts pages in their place, from a number on.
    pub fn place(&self, first: u64, pages: Vec<Page>, mut replaced: impl Replaced) {
        let (mut number, mut pages) = (first, pages.into_iter());
        while pages.len() > 0 {
            let mut chunk = self.chunk(number);
            let places = chunk.get_or_insert_with(no_pages);
            for place in &mut places[(number % CHUNK) as usize..] {
                let Some(page) = pages.next() else { break };
                replaced(number, place.replace(page));
                number += 1;
            }
        }
    }

    /// Zeros; whole pages give their memory back.
    pub fn zero(&self, offset: u64, length: u64, mut replaced: impl Replaced) {
        for (number, start, length) in self.pieces(offset, length) {
            let whole = length as u64 == self.page_bytes;
            self.replace(number, &mut replaced, |old| {
                let old = old.filter(|_| !whole)?;
                Some(patched(old, start, &self.zeros[..length]))
            });
        }
    }

    /// Puts a page in its place.
    pub fn put(&self, number: u64, page: Option<Page>) {
        self.replace(number, &mut |_, _| {}, |_| page);
    }

    fn replace(
        &self,
        number: u64,
        replaced: &mut impl Replaced,
        make: impl FnOnce(Option<&Page>) -> Option<Page>,
    ) {
        let mut chunk = self.chunk(number);
        let place = &mut chunk.get_or_insert_with(no_pages)[(number % CHUNK) as usize];
        let new = make(place.as_ref());
        replaced(number, std::mem::replace(place, new));
    }

    /// The pages around a number, to be changed.
    fn chunk(&self, number: u64) -> RwLockWriteGuard<'_, Chunk> {
        self.chunks[(number / CHUNK) as usize].write().expect("no panic while locked")
    }

    /// A page with these bytes.
    fn page(&self, bytes: &[u8]) -> Page {
        let spare = self.spare.lock().expect("no panic while locked").pop();
        if let Some(mut page) = spare
            && let Some(place) = Arc::get_mut(&mut page)
        {
            place.copy_from_slice(bytes);
            return page;
        }
        Page::from(bytes)
    }

    /// The parts of a range by page: its number, the first byte in it, how many.
    fn pieces(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = (u64, usize, usize)> + use<> {
        let (page, end) = (self.page_bytes, offset + length);
        let mut at = offset;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let here = (end - at).min(page - at % page);
                let piece = (at / page, (at % page) as usize, here as usize);
                at += here;
                piece
            })
        })
    }
}

/// A chunk in which nothing was written.
fn no_pages() -> Box<[Option<Page>]> {
    vec![None; CHUNK as usize].into_boxed_slice()
}

/// A page with other bytes from `start` on.
fn patched(old: &Page, start: usize, bytes: &[u8]) -> Page {
    let mut new = old.to_vec();
    new[start..start + bytes.len()].copy_from_slice(bytes);
    new.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CHUNK, Memory};
    use crate::message::{Message, Page};

    const PAGE: u64 = 4096;

    fn read(memory: &Memory, offset: u64, length: u64) -> Vec<u8> {
        let (mut message, mut bytes) = (Message::default(), Vec::new());
        memory.append(offset, length, &mut message);
        message.send(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn bytes_across_pages_and_chunks_are_read_back_and_the_rest_is_zeros() {
        let memory = Memory::new(4 * CHUNK * PAGE, PAGE);
        let written: Vec<u8> = (0..=255).cycle().take((CHUNK * PAGE) as usize + 5000).collect();
        let at = CHUNK * PAGE - 1000;
        memory.write(at, &written, |_, old| assert!(old.is_none()));
        let read = read(&memory, at - 1000, written.len() as u64 + 2000);
        assert!(read[..1000].iter().all(|byte| *byte == 0));
        assert_eq!(read[1000..1000 + written.len()], written);
        assert!(read[1000 + written.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn zeroing_a_part_keeps_the_rest_and_zeroing_a_page_frees_it() {
        let memory = Memory::new(2 * CHUNK * PAGE, PAGE);
        memory.write(0, &vec![7; 2 * PAGE as usize], |_, _| {});
        let mut told = Vec::new();
        memory.zero(PAGE - 512, PAGE + 512, |number, old| told.push((number, old.unwrap()[0])));
        assert_eq!(told, [(0, 7), (1, 7)]);
        let read = read(&memory, PAGE - 1024, 1024);
        assert!(read[..512].iter().all(|byte| *byte == 7));
        assert!(read[512..].iter().all(|byte| *byte == 0));
        assert!(memory.chunks[0].read().unwrap().as_ref().unwrap()[1].is_none());
    }

    #[test]
    fn a_page_that_was_taken_back_is_filled_again_unless_somebody_reads_it() {
        let memory = Memory::new(CHUNK * PAGE, PAGE);
        let (free, in_use): (Page, Page) = (vec![1; 4096].into(), vec![2; 4096].into());
        let reader = Page::clone(&in_use);
        memory.take_back([free, in_use].into_iter());
        assert_eq!(memory.spare.lock().unwrap().len(), 1);
        memory.write(0, &[3; 2 * PAGE as usize], |_, _| {});
        assert!(memory.spare.lock().unwrap().is_empty());
        assert_eq!(read(&memory, 0, 2 * PAGE), [3; 2 * PAGE as usize]);
        assert_eq!(reader[0], 2);
    }

    #[test]
    fn pages_that_are_put_in_their_place_are_read_there_and_tell_what_stood_there() {
        let memory = Memory::new(2 * CHUNK * PAGE, PAGE);
        memory.write((CHUNK - 1) * PAGE, &[7; PAGE as usize], |_, _| {});
        memory.take_back([Page::from(vec![5; 4096])].into_iter());
        let mut pages = memory.blank(3);
        for (number, page) in pages.iter_mut().enumerate() {
            Arc::get_mut(page).expect("nobody else holds it").fill(number as u8 + 1);
        }
        let mut told = Vec::new();
        memory.place(CHUNK - 1, pages, |number, old| told.push((number, old.map(|page| page[0]))));
        assert_eq!(told, [(CHUNK - 1, Some(7)), (CHUNK, None), (CHUNK + 1, None)]);
        for (number, byte) in [(CHUNK - 1, 1), (CHUNK, 2), (CHUNK + 1, 3), (CHUNK + 2, 0)] {
            assert_eq!(read(&memory, number * PAGE, PAGE), [byte; PAGE as usize]);
        }
    }

    #[test]
    fn what_was_read_stays_as_it_was_when_its_place_is_written_again() {
        let memory = Memory::new(CHUNK * PAGE, PAGE);
        memory.write(0, &[1; 4 * PAGE as usize], |_, _| {});
        let (mut message, mut bytes) = (Message::default(), Vec::new());
        memory.append(0, 4 * PAGE, &mut message);
        memory.write(512, &[2; 2 * PAGE as usize], |_, _| {});
        message.send(&mut bytes).unwrap();
        assert_eq!(bytes, [1; 4 * PAGE as usize]);
    }
}
