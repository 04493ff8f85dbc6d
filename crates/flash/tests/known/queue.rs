//! The drive with time under collection: requests, Little's law, and no die works twice at once.
//!
//! That a request comes back once and in order, for any device: the conformance test of
//! `ssdlab-workload`. After every step of a random life: `tests/twin/drive.rs`.

use crate::life::Drive;
use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd, Study};
use ssdlab_time::{Nanos, Random};

const DIES: u64 = 4;
const PAGE_UNITS: u64 = 8;

fn profile() -> Profile {
    with_spare(0.2)
}

fn with_spare(spare: f64) -> Profile {
    let flash = "channels = 2\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";
    Drive { units: 512, superblocks: 128, spare, rules: "" }.profile_on(flash, 16)
}

/// A drive and what came back from it.
struct Queue {
    drive: Ssd,
    done: Vec<Completion>,
    submitted: u64,
}

impl Queue {
    fn submit(&mut self, op: Op, unit: u64, depth: u64) {
        while self.submitted - self.done.len() as u64 >= depth {
            self.drive.reap(Wait::One, &mut self.done).unwrap();
        }
        let blocks = if op == Op::Flush { 0 } else { 8 };
        let lba = Lba::new(unit * 8);
        let request = Request::new(self.submitted, op, lba, blocks);
        self.drive.submit(request).unwrap();
        self.submitted += 1;
    }

    fn drain(&mut self) {
        while (self.done.len() as u64) < self.submitted {
            let before = self.done.len();
            self.drive.reap(Wait::One, &mut self.done).unwrap();
            assert!(self.done.len() > before, "{before} of {} requests came back", self.submitted);
        }
    }

    /// A drive that was written in order and then at random, with nothing in flight.
    fn aged(units: u64) -> Self {
        let drive = Ssd::new(&profile(), 1);
        let mut queue = Self { drive, done: Vec::new(), submitted: 0 };
        (0..units).for_each(|unit| queue.submit(Op::Write, unit, 64));
        let mut random = Random::new(7, "age");
        (0..2 * units).for_each(|_| queue.submit(Op::Write, random.below(units), 64));
        queue.drain();
        queue
    }
}

#[test]
fn under_collection_at_depth_64_every_request_comes_back_and_littles_law_holds() {
    let units = profile().logical_units();
    let mut queue = Queue::aged(units);
    let (first, start) = (queue.done.len(), queue.drive.now());
    let moved = queue.drive.counters().collection_moves;
    let mut random = Random::new(9, "mix");
    for _ in 0..60_000 {
        let op = if random.below(3) == 0 { Op::Read } else { Op::Write };
        queue.submit(op, random.below(units), 64);
    }
    queue.drain();
    assert!(queue.drive.counters().collection_moves > moved + 10_000, "collection was at work");
    let done = &queue.done[first..];
    let mut ids: Vec<u64> = done.iter().map(|each| each.id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(first as u64..queue.submitted), "each once");
    let waited: Nanos = done.iter().map(|each| each.completed - each.submitted).sum();
    let elapsed = queue.drive.now() - start;
    let outstanding = waited.get() as f64 / elapsed.get() as f64;
    assert!((63.0..=64.0).contains(&outstanding), "{outstanding} of 64 were outstanding");
    queue.drive.assert_consistent();
}

#[test]
fn the_dies_do_no_more_than_their_time_allows() {
    let units = profile().logical_units();
    let mut queue = Queue::aged(units);
    let (start, before) = (queue.drive.now(), *queue.drive.counters());
    let mut random = Random::new(9, "write");
    (0..40_000).for_each(|_| queue.submit(Op::Write, random.below(units), 64));
    queue.drain();
    let (elapsed, after) = (queue.drive.now() - start, queue.drive.counters());
    let pages = (after.nand_writes() - before.nand_writes()) / PAGE_UNITS;
    let busy = Nanos::from_micros(700) * pages
        + Nanos::from_millis(3) * (after.erases - before.erases)
        + Nanos::from_micros(50) * (after.collection_senses - before.collection_senses);
    let share = busy.get() as f64 / (elapsed.get() * DIES) as f64;
    // At the end work of the buffer's size may be ordered and not done: 1 % of it all. Dies wait
    // for each other: a page is programmed when all of its units have been fetched from others.
    assert!((0.4..1.01).contains(&share), "dies are busy for {share} of the time");
}

#[test]
fn nothing_completes_before_its_own_transfer_and_overhead() {
    let units = profile().logical_units();
    let mut queue = Queue::aged(units);
    let first = queue.done.len();
    let mut random = Random::new(9, "mix");
    let mut reads = Vec::new();
    for _ in 0..20_000 {
        let read = random.below(2) == 0;
        reads.push(read);
        queue.submit(if read { Op::Read } else { Op::Write }, random.below(units), 16);
    }
    queue.drain();
    for each in &queue.done[first..] {
        // 4 KiB at 3000 MB/s.
        let overhead = if reads[each.id as usize - first] { 20_000 } else { 5_000 };
        assert!(each.completed - each.submitted >= Nanos::new(overhead + 1_365), "{each:?}");
    }
    assert!(queue.done[first..].is_sorted_by_key(|each| each.completed));
}

#[test]
fn time_changes_counts_only_by_what_erases_have_to_wait_for() {
    let (profile, mut random) = (profile(), Random::new(3, "both"));
    let units = profile.logical_units();
    let mut queue = Queue { drive: Ssd::new(&profile, 1), done: Vec::new(), submitted: 0 };
    let mut study = Study::new(&profile, 1);
    for index in 0..4 * units {
        let unit = if index < units { index } else { random.below(units) };
        queue.submit(Op::Write, unit, 32);
        study.write(unit as u32);
        if index % 10_000 == 0 {
            // An erase waits for programs, so other superblocks are free and a page may be padded.
            let (timed, untimed) = (queue.drive.counters(), study.counters());
            assert_eq!(timed.host_writes, untimed.host_writes);
            let ratio = timed.nand_writes() as f64 / untimed.nand_writes().max(1) as f64;
            assert!(index == 0 || (0.99..1.01).contains(&ratio), "{timed:?}, {untimed:?}");
        }
    }
    queue.drain();
    assert!(study.counters().collection_moves > units);
}

#[test]
fn more_spare_is_faster_by_the_flash_writes_that_it_saves_and_a_little_more() {
    let measure = |spare: f64| {
        let profile = with_spare(spare);
        let units = profile.logical_units();
        let mut queue = Queue { drive: Ssd::new(&profile, 1), done: Vec::new(), submitted: 0 };
        (0..units).for_each(|unit| queue.submit(Op::Write, unit, 64));
        let mut random = Random::new(7, "spare");
        (0..3 * units).for_each(|_| queue.submit(Op::Write, random.below(units), 64));
        let (start, before) = (queue.drive.now(), queue.drive.counters().nand_writes());
        (0..2 * units).for_each(|_| queue.submit(Op::Write, random.below(units), 64));
        let writes = 2.0 * units as f64;
        let programs = queue.drive.counters().nand_writes() - before;
        (writes / (queue.drive.now() - start).get() as f64, programs as f64 / writes)
    };
    let ((slow, much), (fast, little)) = (measure(0.0685), measure(0.2724));
    let (speed, saved) = (fast / slow, much / little);
    // A little more than the writes: what is moved must be fetched first, and is waited for.
    let gain = speed / saved;
    assert!((1.0..1.3).contains(&gain), "{speed} times the speed, {saved} times fewer writes");
}

/// Seconds that filling in order, reading all of it and random writes into the spare take.
fn pace(queue: &mut Queue, units: u64) -> [f64; 3] {
    let timed = |queue: &mut Queue, act: &mut dyn FnMut(&mut Queue)| {
        let start = queue.drive.now();
        act(queue);
        queue.drain();
        queue.submit(Op::Flush, 0, 1);
        queue.drain();
        (queue.drive.now() - start).get() as f64 / 1e9
    };
    let fill = timed(queue, &mut |queue| {
        (0..units).for_each(|unit| queue.submit(Op::Write, unit, 64));
    });
    let read = timed(queue, &mut |queue| {
        (0..units).for_each(|unit| queue.submit(Op::Read, unit, 64));
    });
    let mut random = Random::new(5, "pace");
    let write = timed(queue, &mut |queue| {
        (0..8000).for_each(|_| queue.submit(Op::Write, random.below(units), 64));
    });
    [fill, read, write]
}

#[test]
fn trimming_everything_returns_the_drive_to_its_fresh_speed() {
    let flash = "channels = 2\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";
    let rules = "idle_reserve = 125";
    let drive = Drive { units: 512, superblocks: 128, spare: 0.2, rules };
    let profile = drive.profile_on(flash, 16);
    let units = profile.logical_units();
    let mut queue = Queue { drive: Ssd::new(&profile, 1), done: Vec::new(), submitted: 0 };
    let fresh = pace(&mut queue, units);
    let mut random = Random::new(7, "age");
    (0..2 * units).for_each(|_| queue.submit(Op::Write, random.below(units), 64));
    queue.drain();
    let aged = pace(&mut queue, units);
    (0..units).for_each(|unit| queue.submit(Op::Trim, unit, 64));
    queue.drain();
    // Time to erase what holds nothing any more.
    let until = queue.drive.now() + Nanos::from_secs(10);
    queue.drive.reap(Wait::Until(until), &mut queue.done).unwrap();
    let trimmed = pace(&mut queue, units);
    for (fresh, trimmed) in fresh.into_iter().zip(trimmed) {
        assert!((trimmed / fresh - 1.0).abs() < 0.01, "fresh {fresh} s, trimmed {trimmed} s");
    }
    assert!(aged[0] > 2.0 * fresh[0] && aged[2] > 1.1 * fresh[2], "{aged:?}, fresh {fresh:?}");
}
