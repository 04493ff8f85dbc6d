//! Power cuts: lost writes, compared with a host that records all its writes and flushes.

use std::collections::BTreeMap;

use crate::small::{Twin, profile, profile_with, profile_with_lines};
use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{PowerCut, Profile, Ssd, UnitLocation};
use ssdlab_time::{Nanos, Random};

/// Sectors of a mapping unit.
const SECTORS: u64 = 8;

/// The requests that wrote a unit since its last trim, oldest first.
#[derive(Clone, Debug, Default)]
struct History {
    writes: Vec<u64>,
    /// The number of writes that must survive a power cut: flushed, or in flash at the last one.
    safe: usize,
}

/// A host that knows which writes the drive must keep.
struct Host {
    drive: Ssd,
    units: Vec<History>,
    /// For each unit with completed writes since the last flush: its number of writes.
    completed: BTreeMap<u64, usize>,
    in_flight: BTreeMap<u64, Pending>,
    next: u64,
}

/// A request in flight, with the effect of its completion.
#[derive(Debug)]
enum Pending {
    Write(Vec<(u64, usize)>),
    /// The writes that completed before the flush was submitted.
    Flush(BTreeMap<u64, usize>),
}

impl Host {
    fn new(profile: &Profile) -> Self {
        let drive = Ssd::new(profile, 0);
        let units = vec![History::default(); (drive.capacity_bytes() / 4096) as usize];
        let (completed, in_flight) = (BTreeMap::new(), BTreeMap::new());
        Self { drive, units, completed, in_flight, next: 0 }
    }

    fn submit(&mut self, op: Op, unit: u64, units: u64) {
        let blocks = (units * SECTORS) as u32;
        let id = self.next;
        self.next += 1;
        let lba = Lba::new(unit * SECTORS);
        self.drive.submit(Request::new(id, op, lba, blocks)).unwrap();
    }

    fn write(&mut self, unit: u64, units: u64) {
        let pending = (unit..unit + units).map(|each| {
            let history = &mut self.units[each as usize];
            history.writes.push(self.next);
            (each, history.writes.len())
        });
        self.in_flight.insert(self.next, Pending::Write(pending.collect()));
        self.submit(Op::Write, unit, units);
    }

    fn flush(&mut self) {
        self.in_flight.insert(self.next, Pending::Flush(self.completed.clone()));
        self.submit(Op::Flush, 0, 0);
    }

    /// Trims while nothing is in flight.
    fn trim(&mut self, unit: u64, units: u64) {
        self.reap_all();
        for each in unit..unit + units {
            self.units[each as usize] = History::default();
            self.completed.remove(&each);
        }
        self.submit(Op::Trim, unit, units);
        self.reap_all();
    }

    fn complete(&mut self, completion: &Completion) {
        match self.in_flight.remove(&completion.id) {
            Some(Pending::Write(units)) => self.completed.extend(units),
            Some(Pending::Flush(safe)) => {
                for (unit, writes) in safe {
                    let history = &mut self.units[unit as usize];
                    history.safe = history.safe.max(writes.min(history.writes.len()));
                }
            }
            None => {}
        }
    }

    fn reap(&mut self, wait: Wait) {
        let mut done = Vec::new();
        self.drive.reap(wait, &mut done).unwrap();
        for completion in &done {
            self.complete(completion);
        }
    }

    fn reap_all(&mut self) {
        while !self.in_flight.is_empty() {
            self.reap(Wait::One);
        }
        let now = self.drive.now();
        self.reap(Wait::Until(now + Nanos::from_micros(100)));
    }

    /// Cuts the power, checks every unit and removes lost writes. Returns the report of the drive.
    fn cut(&mut self, after: Nanos) -> PowerCut {
        let cut = self.drive.power_cut(self.drive.now() + after);
        for completion in &cut.completed {
            self.complete(completion);
        }
        assert_eq!(
            cut.unanswered.len(),
            self.in_flight.len(),
            "each request completes or is unanswered"
        );
        assert!(cut.unanswered.iter().all(|id| self.in_flight.contains_key(id)));
        self.in_flight.clear();
        self.completed.clear();
        for lost in &cut.lost {
            let history = &mut self.units[lost.unit as usize];
            let kept = history.writes.len().checked_sub(lost.writes as usize);
            let kept = kept.expect("at most all writes are lost");
            assert!(kept >= history.safe, "unit {}: a safe write is lost", lost.unit);
            assert_eq!(lost.has_older, kept > 0, "unit {}", lost.unit);
            history.writes.truncate(kept);
        }
        self.drive.assert_consistent();
        for (unit, history) in self.units.iter_mut().enumerate() {
            let location = self.drive.locate(unit as u64);
            assert_eq!(location == UnitLocation::Unmapped, history.writes.is_empty());
            history.safe = history.writes.len();
        }
        cut
    }

    fn random_request(&mut self, random: &mut Random, depth: usize) {
        let units = self.units.len() as u64;
        match random.below(100) {
            0..2 => self.flush(),
            2 => self.trim(random.below(units - 64), 1 + random.below(64)),
            3..10 => self.write(random.below(units - 64), 1 + random.below(64)),
            _ => self.write(random.below(units / 4), 1),
        }
        while self.in_flight.len() >= depth {
            self.reap(Wait::One);
        }
    }
}

/// The number of requests that were partly lost.
fn count_torn(cut: &PowerCut, before: &[History]) -> usize {
    let mut lost_units = BTreeMap::<u64, usize>::new();
    for each in &cut.lost {
        let writes = &before[each.unit as usize].writes;
        for id in &writes[writes.len() - each.writes as usize..] {
            *lost_units.entry(*id).or_default() += 1;
        }
    }
    let units_of = |id: u64| before.iter().filter(|each| each.writes.contains(&id)).count();
    lost_units.iter().filter(|(id, units)| units_of(**id) > **units).count()
}

/// A drive that was filled and then overwritten at random, so that it collects.
fn aged(profile: &Profile) -> Host {
    let mut host = Host::new(profile);
    let units = host.units.len() as u64;
    for unit in (0..units).step_by(64) {
        host.write(unit, 64.min(units - unit));
        host.reap_all();
    }
    let mut random = Random::new(5, "fill");
    for _ in 0..units {
        host.write(random.below(units), 1);
        host.reap(Wait::One);
    }
    host
}

#[test]
fn flushed_writes_survive_any_power_cut_and_lost_ones_are_reported() {
    for (ftl, depth) in
        [("", 1), ("", 16), ("relocation = \"mixed\"", 16), ("chunk = \"8 KiB\"", 8)]
    {
        let profile = match ftl {
            "chunk = \"8 KiB\"" => profile_with("chunk = \"32 KiB\"", ftl),
            _ => profile_with_lines("[ftl]", ftl),
        };
        let mut host = aged(&profile);
        let mut random = Random::new(7, "cuts");
        let mut lost = 0;
        for _ in 0..60 {
            for _ in 0..random.below(600) {
                host.random_request(&mut random, depth);
            }
            let after = Nanos::from_micros(random.below(3000));
            lost += host.cut(after).lost.len();
        }
        assert!(lost > 100, "{ftl}: the power cuts affected only {lost} units");
        assert!(host.drive.counters().collection_moves > 1000, "{ftl}: collection was active");
    }
}

#[test]
fn without_collection_exactly_the_buffered_units_are_lost() {
    let mut host = Host::new(&profile());
    let mut random = Random::new(3, "cut");
    for _ in 0..40 {
        for _ in 0..random.below(200) {
            host.write(random.below(2000), 1 + random.below(8));
            host.reap(Wait::One);
        }
        let buffered = |unit: &u64| host.drive.locate(*unit) == UnitLocation::Buffer;
        let expected: Vec<u64> = (0..2100).filter(buffered).collect();
        let lost: Vec<u64> = host.cut(Nanos::ZERO).lost.iter().map(|each| each.unit).collect();
        assert_eq!(lost, expected, "each unit in the buffer loses its writes");
    }
}

#[test]
fn a_long_write_may_be_torn() {
    let mut host = Host::new(&profile());
    let (mut torn, mut random) = (0, Random::new(9, "cut"));
    for _ in 0..20 {
        host.write(random.below(1000), 256);
        let after = Nanos::from_micros(random.below(4000));
        let before = host.units.clone();
        let cut = host.cut(after);
        torn += count_torn(&cut, &before);
    }
    assert!(torn > 0, "no write of 1 MiB was torn");
}

#[test]
fn a_protected_drive_keeps_all_completed_writes() {
    let (volatile, protected) = ("power_loss_protection = false", "power_loss_protection = true");
    let mut host = aged(&profile_with(volatile, protected));
    let mut random = Random::new(7, "cuts");
    for _ in 0..20 {
        for _ in 0..random.below(600) {
            host.random_request(&mut random, 16);
        }
        let after = Nanos::from_micros(random.below(3000));
        assert_eq!(host.cut(after).lost, []);
    }
}

#[test]
fn a_drive_that_ignores_flushes_loses_flushed_writes() {
    let mut twin = Twin::new(&profile_with_lines("[buffer]", "honours_flush = false"));
    twin.write(0, 1);
    twin.flush();
    let lost = twin.drive.power_cut(twin.drive.now()).lost;
    assert_eq!((lost.len(), lost[0].unit, lost[0].writes, lost[0].has_older), (1, 0, 1, false));
}

#[test]
fn a_drive_works_after_many_power_cuts() {
    let mut host = aged(&profile());
    let mut random = Random::new(7, "cuts");
    for _ in 0..300 {
        host.write(random.below(4000), 1);
        host.cut(Nanos::from_micros(50));
    }
    for _ in 0..30_000 {
        host.write(random.below(12_000), 1);
        host.reap(Wait::One);
    }
    host.drive.assert_consistent();
    assert!(host.drive.counters().waf().unwrap() < 8.0);
}
