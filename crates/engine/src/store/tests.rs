//! The content of memory compared with a plain vector of bytes; where it is; how much it uses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use proptest::prelude::*;
use ssdlab_time::Nanos;

use super::memory::{Memory, UndoWriter};
use super::undo::Undo;
use super::{DriveParameters, LostWrites, Store};
use crate::buffer_pool::BufferPool;
use crate::send_buffer::{SendBuffer, SendPosition};

const UNIT: u64 = 4096;
const EXTENT: u64 = 64 << 10;
const CAPACITY: u64 = 4 << 20;

/// A range as it is sent.
fn message(memory: &Memory, offset: u64, length: u64) -> SendBuffer {
    let mut message = SendBuffer::default();
    memory.append(offset, length, &mut message);
    message
}

fn sent(mut message: SendBuffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.send(&mut bytes).unwrap();
    bytes
}

fn read(memory: &Memory, offset: u64, length: u64) -> Vec<u8> {
    sent(message(memory, offset, length))
}

fn filled(byte: u8, length: u64) -> Vec<u8> {
    vec![byte; length as usize]
}

/// The number of pieces in which a range is sent.
fn pieces(memory: &Memory, offset: u64, length: u64) -> usize {
    message(memory, offset, length).pieces_since(SendPosition::default()).count()
}

/// The numbers below `count` in a scattered order.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count)
}

/// Bytes of a buffer that are resident.
fn resident(bytes: &[u8]) -> usize {
    let page = rustix::param::page_size();
    let mut entries = vec![0; bytes.len() / page * 8];
    let first = (bytes.as_ptr() as usize / page * 8) as u64;
    File::open("/proc/self/pagemap").unwrap().read_exact_at(&mut entries, first).unwrap();
    // The kernel's Documentation/admin-guide/mm/pagemap.rst: bit 63 is set where a page is present.
    entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count() * page
}

#[test]
fn the_bytes_of_an_extent_are_contiguous_in_whatever_order_they_are_written() {
    for saves_old in [false, true] {
        let (memory, undo) = (Memory::new(CAPACITY, UNIT), Mutex::new(Undo::new(8, UNIT)));
        let undo = saves_old.then_some(UndoWriter { undo: &undo, completed: Nanos::ZERO });
        for round in 1..=3 {
            for number in scattered(CAPACITY / UNIT) {
                memory.write(number * UNIT, &filled(round, UNIT), undo);
            }
            for at in (0..CAPACITY).step_by(2 * EXTENT as usize) {
                assert_eq!(pieces(&memory, at, 2 * EXTENT), 2, "round {round}, at {at}");
            }
        }
        let mut received = memory.receive_memory(0, 2 * EXTENT).unwrap();
        received.grow(usize::MAX).unwrap().into_iter().for_each(|piece| piece.fill(9));
        memory.adopt(received, undo);
        memory.write(UNIT, &filled(8, UNIT), undo);
        assert_eq!(pieces(&memory, 0, 2 * EXTENT), 2);
    }
}

#[test]
fn received_data_that_fills_an_extent_is_not_copied() {
    let memory = Memory::new(CAPACITY, UNIT);
    assert!(memory.receive_memory(UNIT, 2 * EXTENT - 2 * UNIT).is_none(), "no extent is filled");
    let mut received = memory.receive_memory(UNIT, 2 * EXTENT).unwrap();
    let addresses: Vec<*const u8> = received
        .grow(usize::MAX)
        .unwrap()
        .into_iter()
        .zip(1..)
        .map(|(piece, number)| {
            piece.fill(number);
            piece.as_ptr()
        })
        .collect();
    memory.adopt(received, None);
    let message = message(&memory, EXTENT, EXTENT);
    let pieces = message.pieces_since(SendPosition::default()).map(<[u8]>::as_ptr);
    assert_eq!(pieces.collect::<Vec<_>>(), addresses[1..2]);
    let there = read(&memory, 0, 2 * EXTENT + 2 * UNIT);
    let expected = [(0, UNIT), (1, EXTENT - UNIT), (2, EXTENT), (3, UNIT), (0, UNIT)];
    assert!(there == expected.map(|(byte, count)| filled(byte, count)).concat());
}

#[test]
fn data_that_was_read_does_not_change_when_it_is_overwritten() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, 2 * EXTENT), None);
    let message = message(&memory, 0, 2 * EXTENT);
    memory.write(512, &filled(2, 2 * UNIT), None);
    memory.zero(EXTENT, EXTENT, None);
    assert!(sent(message) == filled(1, 2 * EXTENT));
    assert_eq!(read(&memory, 0, 1024), [[1; 512], [2; 512]].concat());
}

#[test]
fn memory_is_allocated_when_it_is_written_and_freed_beyond_what_the_pool_keeps() {
    let pool = BufferPool::new(EXTENT as usize);
    let mut buffers: Vec<_> = (0..(20 << 20) / EXTENT).map(|_| pool.take()).collect();
    for buffer in &mut buffers {
        assert_eq!(resident(buffer), 0);
        buffer[5 * UNIT as usize] = 1;
        assert_eq!(resident(buffer), UNIT as usize, "one page");
    }
    drop(buffers);
    let mut again: Vec<_> = (0..(20 << 20) / EXTENT).map(|_| pool.take()).collect();
    let kept = again.iter().filter(|buffer| resident(buffer) > 0).count();
    assert_eq!(kept as u64, (16 << 20) / EXTENT, "the others have given their memory back");
    assert!(again.iter_mut().filter(|buffer| resident(buffer) == 0).all(|buffer| buffer[0] == 0));
}

/// The address of the first byte of an extent.
fn address(memory: &Memory, offset: u64) -> *const u8 {
    let message = message(memory, offset, EXTENT);
    message.pieces_since(SendPosition::default()).next().unwrap().as_ptr()
}

#[test]
fn an_extent_that_is_all_zeros_frees_its_buffer_for_another() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, EXTENT), None);
    let first = address(&memory, 0);
    memory.zero(0, EXTENT / 2, None);
    memory.zero(EXTENT / 2, EXTENT / 2, None);
    memory.write(9 * EXTENT, &[2; 512], None);
    assert_eq!(address(&memory, 9 * EXTENT), first);
    assert!(read(&memory, 0, EXTENT) == filled(0, EXTENT));
    let rest = vec![0; EXTENT as usize - 512];
    assert!(read(&memory, 9 * EXTENT, EXTENT) == [&[2; 512][..], &rest].concat());
}

#[test]
fn clones_share_an_extent_until_one_of_them_writes_to_it() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, 2 * EXTENT), None);
    let clone = memory.cow_clone();
    clone.write(EXTENT + 512, &[2; 512], None);
    assert_eq!(address(&memory, 0), address(&clone, 0));
    assert_ne!(address(&memory, EXTENT), address(&clone, EXTENT));
    assert!(read(&memory, 0, 2 * EXTENT) == filled(1, 2 * EXTENT));
    assert_eq!(read(&clone, EXTENT, 1536), [[1; 512], [2; 512], [1; 512]].concat());
}

#[test]
fn a_write_to_a_shared_extent_copies_one_unit_and_extents_are_merged_after_the_clones() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, EXTENT), None);
    let clones = [memory.cow_clone(), memory.cow_clone()];
    memory.write(3 * UNIT, &filled(2, UNIT), None);
    assert_eq!(pieces(&memory, 0, EXTENT), 3);
    assert_eq!(address(&memory, 0), address(&clones[0], 0), "the rest is shared");
    // A further clone shares both images.
    let third = memory.cow_clone();
    memory.write(4 * UNIT, &filled(3, UNIT), None);
    assert_eq!(pieces(&memory, 0, EXTENT), 3);
    drop((clones, third));
    memory.write(9 * UNIT, &filled(4, UNIT), None);
    assert_eq!(pieces(&memory, 0, EXTENT), 1);
    let expected = [(1, 3), (2, 1), (3, 1), (1, 4), (4, 1), (1, 6)];
    assert!(
        read(&memory, 0, EXTENT)
            == expected.map(|(byte, units)| filled(byte, units * UNIT)).concat()
    );
}

#[test]
fn a_buffer_that_only_a_clone_needs_is_freed_with_it() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, EXTENT), None);
    let first = address(&memory, 0);
    let clone = memory.cow_clone();
    for number in 0..EXTENT / UNIT {
        memory.write(number * UNIT, &filled(2, UNIT), None);
    }
    drop(clone);
    memory.write(9 * EXTENT, &filled(3, EXTENT), None);
    assert_eq!(address(&memory, 9 * EXTENT), first);
}

/// A step of a test; ranges are the first sector and the number of sectors.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Receive(u64, u64),
    Zero(u64, u64),
    Trim(u64, u64),
    /// Goes on with a clone; the original changes only in its first sectors.
    Clone,
    /// Drops the originals of all clones.
    DropOriginals,
    /// A power cut: every third unit loses its newest write.
    Cut,
}

fn steps(sectors: u64) -> impl Strategy<Value = Vec<Step>> {
    let range = (0..sectors, prop_oneof![1..20_u64, 100..400_u64])
        .prop_map(move |(first, count)| (first, count.min(sectors - first)));
    let step = prop_oneof![
        4 => range.clone().prop_map(|(first, count)| Step::Write(first, count)),
        2 => range.clone().prop_map(|(first, count)| Step::Receive(first, count)),
        1 => range.clone().prop_map(|(first, count)| Step::Zero(first, count)),
        1 => range.prop_map(|(first, count)| Step::Trim(first, count)),
        2 => Just(Step::Clone),
        1 => Just(Step::DropOriginals),
        1 => Just(Step::Cut),
    ];
    prop::collection::vec(step, 1..50)
}

/// The content of a drive, the bytes that it should be, and the old content of each write since
/// the last cut.
struct Both {
    store: Store,
    expected: Vec<u8>,
    before: Vec<(u64, Vec<u8>)>,
    /// The originals of clones, and the bytes that they should be.
    originals: Vec<(Store, Vec<u8>)>,
    unit: u64,
    written: u8,
}

impl Both {
    fn do_step(&mut self, step: &Step) {
        self.written = self.written.wrapping_add(1);
        let completed = Nanos::ZERO;
        match *step {
            Step::Write(first, count) => {
                let bytes = self.bytes(count);
                self.note(first, count);
                self.store.write(first * 512, &bytes, completed).unwrap();
                self.put(first, &bytes);
            }
            Step::Receive(first, count) => {
                // Only whole units are received.
                let units = (first * 512 / self.unit, count * 512 / self.unit);
                let (first, count) = (units.0 * self.unit / 512, units.1 * self.unit / 512);
                let Some(mut received) = self.store.receive_memory(first * 512, count * 512) else {
                    return;
                };
                let bytes = self.bytes(count);
                let mut left = &bytes[..];
                for piece in received.grow(usize::MAX).unwrap() {
                    let (now, later) = left.split_at(piece.len());
                    piece.copy_from_slice(now);
                    left = later;
                }
                assert!(received.to_vec() == bytes);
                self.note(first, count);
                self.store.adopt(received, completed);
                self.put(first, &bytes);
            }
            Step::Zero(first, count) => {
                self.note(first, count);
                self.store.zero(first * 512..(first + count) * 512, completed).unwrap();
                self.put(first, &vec![0; count as usize * 512]);
            }
            Step::Trim(first, count) => {
                let units = (first * 512).div_ceil(self.unit)..(first + count) * 512 / self.unit;
                if units.is_empty() {
                    return;
                }
                self.store.trim(units.start, units.end - units.start).unwrap();
                self.before.retain(|(unit, _)| !units.contains(unit));
                let length = (units.end - units.start) * self.unit;
                self.put(units.start * self.unit / 512, &vec![0; length as usize]);
            }
            Step::Clone => {
                let clone = self.store.try_clone().unwrap();
                let (bytes, mut expected) = (self.bytes(100), self.expected.clone());
                let old = std::mem::replace(&mut self.store, clone);
                old.write(0, &bytes, completed).unwrap();
                expected[..bytes.len()].copy_from_slice(&bytes);
                self.originals.push((old, expected));
            }
            Step::DropOriginals => self.originals.clear(),
            Step::Cut => self.cut(),
        }
    }

    fn cut(&mut self) {
        let mut lost = Vec::new();
        while let Some((unit, old)) = self.before.pop() {
            self.before.retain(|(other, _)| *other != unit);
            if unit % 3 == 0 {
                lost.push(LostWrites { unit, writes: 1 });
                self.put(unit * self.unit / 512, &old);
            }
        }
        self.store.roll_back(&lost).unwrap();
    }

    fn bytes(&self, sectors: u64) -> Vec<u8> {
        (0..sectors * 512).map(|at| (at / 512) as u8 ^ self.written).collect()
    }

    fn note(&mut self, first: u64, count: u64) {
        for unit in first * 512 / self.unit..((first + count) * 512).div_ceil(self.unit) {
            let old = &self.expected[(unit * self.unit) as usize..][..self.unit as usize];
            self.before.push((unit, old.to_vec()));
        }
    }

    fn put(&mut self, first: u64, bytes: &[u8]) {
        self.expected[first as usize * 512..][..bytes.len()].copy_from_slice(bytes);
    }
}

proptest! {
    #[test]
    fn memory_has_the_same_content_as_a_plain_vector(
        unit in prop::sample::select(vec![512_u64, 4096, 16 << 10, 64 << 10, 128 << 10]),
        steps in steps(2048),
    ) {
        let capacity = 1 << 20;
        let store = Store::in_memory(&DriveParameters {
            capacity,
            unit_bytes: unit,
            volatile_units: 1 << 20,
            ..DriveParameters::default()
        });
        let expected = vec![0; capacity as usize];
        let (before, originals) = (Vec::new(), Vec::new());
        let mut both = Both { store, expected, before, originals, unit, written: 0 };
        for step in &steps {
            both.do_step(step);
            prop_assert!(both.store.read(0, capacity).unwrap() == both.expected, "after {step:?}");
            for (original, expected) in &both.originals {
                prop_assert!(original.read(0, capacity).unwrap() == *expected, "after {step:?}");
            }
        }
    }
}
