//! Causality: no operation starts before the event that caused it.
//!
//! A drive with one die executes everything in sequence. If it was idle at the start of a period,
//! all operations queued since must fit between the start and the end of a flush that waits for the
//! last of them. If an operation was scheduled too early, the flush would complete too early.

use ssdlab_device::{Device, Op};
use ssdlab_flash::Counters;
use ssdlab_time::{Nanos, Random};

use crate::host::{Host, profile, request};

const PROGRAM: Nanos = Nanos::from_micros(700);
const ERASE: Nanos = Nanos::from_micros(3000);
const SENSE: Nanos = Nanos::from_micros(50);

const DEPTH: usize = 16;

/// A drive with one die, and a host that sends requests to random addresses.
struct OneDie {
    host: Host,
    random: Random,
}

impl OneDie {
    /// A drive that was filled and then overwritten at random three times.
    fn new(ftl: &str) -> Self {
        let flash = "channels = 1\ndies_per_channel = 1\nplanes = 1\npage = \"8 KiB\"\n\
                     pages_per_block = 16\nchannel_bandwidth = \"800 MB/s\"";
        let ftl = format!("spare = 0.2\n{ftl}");
        let host = Host::new(&profile("4 MiB", flash, &ftl, "size = \"256 KiB\""));
        let mut one_die = Self { host, random: Random::new(1, "host") };
        let units = one_die.host.units();
        (0..units).for_each(|unit| one_die.host.submit(request(Op::Write, unit, 1), DEPTH));
        for _ in 0..3 * units {
            one_die.submit_random(Op::Write);
        }
        one_die
    }

    fn submit_random(&mut self, op: Op) {
        let unit = self.random.below(self.host.units());
        self.host.submit(request(op, unit, 1), DEPTH);
    }

    fn drain_and_flush(&mut self) {
        self.host.drain();
        self.host.flush();
    }

    /// The time that the die needed for the operations since `before`.
    fn busy_since(&self, before: &Counters) -> Nanos {
        let after = self.host.drive.counters();
        let programs = (after.nand_writes() - before.nand_writes()) / 2;
        let senses = after.host_senses + after.collection_senses;
        PROGRAM * programs
            + ERASE * (after.erases - before.erases)
            + SENSE * (senses - before.host_senses - before.collection_senses)
    }

    /// Runs `work` on an idle drive, then writes one more unit and flushes it: its page is
    /// programmed after everything queued before. Returns the elapsed time and the busy time.
    fn measure(&mut self, work: impl Fn(&mut Self)) -> (Nanos, Nanos) {
        let (start, before) = (self.host.drive.now(), *self.host.drive.counters());
        work(self);
        self.host.drain();
        let busy = self.busy_since(&before) + PROGRAM;
        self.submit_random(Op::Write);
        self.drain_and_flush();
        (self.host.drive.now() - start, busy)
    }
}

/// Runs `work` 300 times on one drive, each time after the drive was idle.
fn assert_causality(ftl: &str, work: impl Fn(&mut OneDie) + Copy) {
    let mut drive = OneDie::new(ftl);
    let moves_before = drive.host.drive.counters().collection_moves;
    for _ in 0..300 {
        drive.drain_and_flush();
        // Long enough for everything queued, and for all collection in idle time.
        drive.host.rest(Nanos::from_secs(20));
        drive.host.run(request(Op::Read, 0, 1));
        drive.host.rest(Nanos::from_secs(20));
        let (elapsed, busy) = drive.measure(work);
        assert!(elapsed >= busy, "{ftl}: {busy} of operations in {elapsed}");
    }
    let moves = drive.host.drive.counters().collection_moves - moves_before;
    assert!(moves > 1000, "{ftl}: collection moved only {moves} units");
}

const FTL: [&str; 5] = [
    "relocation = \"mixed\"",
    "relocation = \"separate\"",
    "victim = \"random\"",
    "victim = \"fifo\"\nrelocation = \"mixed\"",
    "wear_levelling = \"static\"\nwear_spread = 4",
];

#[test]
fn operations_caused_by_writes_start_after_the_writes() {
    for ftl in FTL {
        assert_causality(ftl, |drive| {
            for _ in 0..=drive.random.below(40) {
                drive.submit_random(Op::Write);
            }
        });
    }
}

#[test]
fn operations_caused_by_reads_and_idle_time_start_after_them() {
    for ftl in FTL {
        let ftl = format!("{ftl}\nidle_reserve = 6");
        assert_causality(&ftl, |drive| {
            for _ in 0..=drive.random.below(60) {
                match drive.random.below(4) {
                    0 => drive.submit_random(Op::Read),
                    1 => {
                        // Shorter than a program, which is therefore still in progress after it.
                        let pause = Nanos::from_micros(drive.random.below(300));
                        drive.host.drain();
                        drive.host.rest(pause);
                    }
                    _ => drive.submit_random(Op::Write),
                }
            }
        });
    }
}
