//! What memory holds against a plain row of bytes; where it holds it; what it costs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use proptest::prelude::*;
use ssdlab_time::Nanos;

use super::memory::{Keep, Memory};
use super::undo::Undo;
use super::{LostWrites, Store};
use crate::buffer_pool::BufferPool;
use crate::send_buffer::{SendBuffer, SendPosition};

const UNIT: u64 = 4096;
const SLAB: u64 = 64 << 10;
const CAPACITY: u64 = 4 << 20;

fn read(memory: &Memory, offset: u64, length: u64) -> Vec<u8> {
    let (mut message, mut bytes) = (SendBuffer::default(), Vec::new());
    memory.append(offset, length, &mut message);
    message.send(&mut bytes).unwrap();
    bytes
}

/// So many bytes of one kind.
fn filled(byte: u8, length: u64) -> Vec<u8> {
    vec![byte; length as usize]
}

/// How many pieces a range is sent in.
fn pieces(memory: &Memory, offset: u64, length: u64) -> usize {
    let mut message = SendBuffer::default();
    memory.append(offset, length, &mut message);
    message.pieces_since(SendPosition::default()).count()
}

/// The numbers below `count` in an order that jumps about.
fn jumping(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count)
}

/// How much of a stretch of memory has memory of the machine behind it.
fn resident(bytes: &[u8]) -> usize {
    let page = rustix::param::page_size();
    let mut entries = vec![0; bytes.len() / page * 8];
    let first = (bytes.as_ptr() as usize / page * 8) as u64;
    File::open("/proc/self/pagemap").unwrap().read_exact_at(&mut entries, first).unwrap();
    // The kernel's Documentation/admin-guide/mm/pagemap.rst: bit 63 is set where a page is present.
    entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count() * page
}

#[test]
fn bytes_lie_in_a_row_in_whatever_order_they_were_written_first_or_again() {
    for keeps in [false, true] {
        let (memory, undo, units) =
            (Memory::new(CAPACITY, UNIT), Mutex::new(Undo::new(8)), BufferPool::new(UNIT as usize));
        let keep = keeps.then_some(Keep { undo: &undo, units: &units, done: Nanos::ZERO });
        for round in 1..=3 {
            for number in jumping(CAPACITY / UNIT) {
                memory.write(number * UNIT, &filled(round, UNIT), keep);
            }
            for at in (0..CAPACITY).step_by(2 * SLAB as usize) {
                assert_eq!(pieces(&memory, at, 2 * SLAB), 2, "round {round}, at {at}");
            }
        }
        let mut received = memory.receive_memory(0, 2 * SLAB).unwrap();
        received.grow(usize::MAX).unwrap().into_iter().for_each(|piece| piece.fill(9));
        memory.adopt(received, keep);
        memory.write(UNIT, &filled(8, UNIT), keep);
        assert_eq!(pieces(&memory, 0, 2 * SLAB), 2);
    }
}

#[test]
fn what_lands_is_not_copied_where_it_fills_a_slab() {
    let memory = Memory::new(CAPACITY, UNIT);
    assert!(memory.receive_memory(UNIT, 2 * SLAB - 2 * UNIT).is_none(), "no slab is filled");
    let mut received = memory.receive_memory(UNIT, 2 * SLAB).unwrap();
    let places: Vec<*const u8> = received
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
    let mut message = SendBuffer::default();
    memory.append(SLAB, SLAB, &mut message);
    assert_eq!(
        message.pieces_since(SendPosition::default()).map(<[u8]>::as_ptr).collect::<Vec<_>>(),
        places[1..2]
    );
    let there = read(&memory, 0, 2 * SLAB + 2 * UNIT);
    let expected = [(0, UNIT), (1, SLAB - UNIT), (2, SLAB), (3, UNIT), (0, UNIT)];
    assert!(there == expected.map(|(byte, count)| filled(byte, count)).concat());
}

#[test]
fn what_was_read_stays_as_it_was_when_its_place_is_written_again() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, 2 * SLAB), None);
    let (mut message, mut bytes) = (SendBuffer::default(), Vec::new());
    memory.append(0, 2 * SLAB, &mut message);
    memory.write(512, &filled(2, 2 * UNIT), None);
    memory.zero(SLAB, SLAB, None);
    message.send(&mut bytes).unwrap();
    assert!(bytes == filled(1, 2 * SLAB));
    assert_eq!(read(&memory, 0, 1024), [[1; 512], [2; 512]].concat());
}

#[test]
fn memory_is_used_where_something_was_written_and_given_back_beyond_what_is_kept() {
    let pool = BufferPool::new(SLAB as usize);
    let mut slabs: Vec<_> = (0..(20 << 20) / SLAB).map(|_| pool.take()).collect();
    for slab in &mut slabs {
        assert_eq!(resident(slab), 0);
        slab[5 * UNIT as usize] = 1;
        assert_eq!(resident(slab), UNIT as usize, "one page");
    }
    drop(slabs);
    let mut again: Vec<_> = (0..(20 << 20) / SLAB).map(|_| pool.take()).collect();
    let kept = again.iter().filter(|slab| resident(slab) > 0).count();
    assert_eq!(kept as u64, (16 << 20) / SLAB, "so many are kept to be filled again");
    assert!(again.iter_mut().filter(|slab| resident(slab) == 0).all(|slab| slab[0] == 0));
}

/// Where the bytes of a slab's stretch lie.
fn place(memory: &Memory, offset: u64) -> *const u8 {
    let mut message = SendBuffer::default();
    memory.append(offset, SLAB, &mut message);
    message.pieces_since(SendPosition::default()).next().unwrap().as_ptr()
}

#[test]
fn a_stretch_of_which_nothing_is_left_gives_its_memory_to_the_next() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, SLAB), None);
    let first = place(&memory, 0);
    memory.zero(0, SLAB / 2, None);
    memory.zero(SLAB / 2, SLAB / 2, None);
    memory.write(9 * SLAB, &[2; 512], None);
    assert_eq!(place(&memory, 9 * SLAB), first);
    assert!(read(&memory, 0, SLAB) == filled(0, SLAB));
    let rest = vec![0; SLAB as usize - 512];
    assert!(read(&memory, 9 * SLAB, SLAB) == [&[2; 512][..], &rest].concat());
}

#[test]
fn forks_share_a_slab_until_one_of_them_writes_there() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, 2 * SLAB), None);
    let fork = memory.cow_clone();
    fork.write(SLAB + 512, &[2; 512], None);
    assert_eq!(place(&memory, 0), place(&fork, 0));
    assert_ne!(place(&memory, SLAB), place(&fork, SLAB));
    assert!(read(&memory, 0, 2 * SLAB) == filled(1, 2 * SLAB));
    assert_eq!(read(&fork, SLAB, 1536), [[1; 512], [2; 512], [1; 512]].concat());
}

#[test]
fn a_write_beside_forks_copies_its_unit_alone_and_the_next_after_them_has_all_in_a_row() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, SLAB), None);
    let forks = [memory.cow_clone(), memory.cow_clone()];
    memory.write(3 * UNIT, &filled(2, UNIT), None);
    assert_eq!(pieces(&memory, 0, SLAB), 3);
    assert_eq!(place(&memory, 0), place(&forks[0], 0), "the rest is shared");
    // Another fork shares that too.
    let third = memory.cow_clone();
    memory.write(4 * UNIT, &filled(3, UNIT), None);
    assert_eq!(pieces(&memory, 0, SLAB), 3);
    drop((forks, third));
    memory.write(9 * UNIT, &filled(4, UNIT), None);
    assert_eq!(pieces(&memory, 0, SLAB), 1);
    let expected = [(1, 3), (2, 1), (3, 1), (1, 4), (4, 1), (1, 6)];
    assert!(
        read(&memory, 0, SLAB) == expected.map(|(byte, units)| filled(byte, units * UNIT)).concat()
    );
}

#[test]
fn what_a_fork_alone_still_needs_is_given_back_with_it() {
    let memory = Memory::new(CAPACITY, UNIT);
    memory.write(0, &filled(1, SLAB), None);
    let first = place(&memory, 0);
    let fork = memory.cow_clone();
    for number in 0..SLAB / UNIT {
        memory.write(number * UNIT, &filled(2, UNIT), None);
    }
    drop(fork);
    memory.write(9 * SLAB, &filled(3, SLAB), None);
    assert_eq!(place(&memory, 9 * SLAB), first);
}

/// What is done to a drive's content: to ranges of sectors, as many writes as there are bytes.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Land(u64, u64),
    Zero(u64, u64),
    Trim(u64, u64),
    /// The fork goes on; the drive itself stays as it is, but for its first sectors.
    Fork,
    /// All of these are given up.
    Alone,
    /// The newest write of each of these units is lost.
    Cut,
}

fn steps(sectors: u64) -> impl Strategy<Value = Vec<Step>> {
    let range = (0..sectors, prop_oneof![1..20_u64, 100..400_u64])
        .prop_map(move |(first, count)| (first, count.min(sectors - first)));
    let step = prop_oneof![
        4 => range.clone().prop_map(|(first, count)| Step::Write(first, count)),
        2 => range.clone().prop_map(|(first, count)| Step::Land(first, count)),
        1 => range.clone().prop_map(|(first, count)| Step::Zero(first, count)),
        1 => range.prop_map(|(first, count)| Step::Trim(first, count)),
        2 => Just(Step::Fork),
        1 => Just(Step::Alone),
        1 => Just(Step::Cut),
    ];
    prop::collection::vec(step, 1..50)
}

/// A drive's content, a row of bytes that should be the same, and what stood in units before each
/// write since the last cut.
struct Both {
    store: Store,
    row: Vec<u8>,
    before: Vec<(u64, Vec<u8>)>,
    /// Drives that were forked, and what they hold.
    forked: Vec<(Store, Vec<u8>)>,
    unit: u64,
    written: u8,
}

impl Both {
    fn do_step(&mut self, step: &Step) {
        self.written = self.written.wrapping_add(1);
        let done = Nanos::ZERO;
        match *step {
            Step::Write(first, count) => {
                let bytes = self.bytes(count);
                self.note(first, count);
                self.store.write(first * 512, &bytes, done).unwrap();
                self.put(first, &bytes);
            }
            Step::Land(first, count) => {
                // Whole units only land.
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
                self.store.adopt(received, done);
                self.put(first, &bytes);
            }
            Step::Zero(first, count) => {
                self.note(first, count);
                self.store.zero(first * 512..(first + count) * 512, done).unwrap();
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
            Step::Fork => {
                let fork = self.store.try_clone().unwrap();
                let (bytes, mut row) = (self.bytes(100), self.row.clone());
                let old = std::mem::replace(&mut self.store, fork);
                old.write(0, &bytes, done).unwrap();
                row[..bytes.len()].copy_from_slice(&bytes);
                self.forked.push((old, row));
            }
            Step::Alone => self.forked.clear(),
            Step::Cut => self.cut(),
        }
    }

    /// Every third unit loses its newest write; all others are in flash.
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
            let old = &self.row[(unit * self.unit) as usize..][..self.unit as usize];
            self.before.push((unit, old.to_vec()));
        }
    }

    fn put(&mut self, first: u64, bytes: &[u8]) {
        self.row[first as usize * 512..][..bytes.len()].copy_from_slice(bytes);
    }
}

proptest! {
    #[test]
    fn memory_holds_what_a_plain_row_of_bytes_does(
        unit in prop::sample::select(vec![512_u64, 4096, 16 << 10, 64 << 10, 128 << 10]),
        steps in steps(2048),
    ) {
        let capacity = 1 << 20;
        let store = Store::in_memory(capacity, unit, 1 << 20);
        let row = vec![0; capacity as usize];
        let (before, forked) = (Vec::new(), Vec::new());
        let mut both = Both { store, row, before, forked, unit, written: 0 };
        for step in &steps {
            both.do_step(step);
            prop_assert!(both.store.read(0, capacity).unwrap() == both.row, "after {step:?}");
            for (forked, row) in &both.forked {
                prop_assert!(forked.read(0, capacity).unwrap() == *row, "after {step:?}");
            }
        }
    }
}
