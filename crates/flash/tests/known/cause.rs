//! Cause before effect: no operation starts before the event that decided it.
//!
//! A drive with one die executes everything in sequence. If it was idle at the start of a period,
//! all operations that were queued since must fit between the start and the end of a flush that
//! waits for the last of them. With an operation booked into the past, the flush would complete too
//! early.

use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Counters, Profile, Ssd};
use ssdlab_time::{Nanos, Random};

const PROGRAM: Nanos = Nanos::from_micros(700);
const ERASE: Nanos = Nanos::from_micros(3000);
const SENSE: Nanos = Nanos::from_micros(50);

fn profile(rules: &str) -> Profile {
    Profile::from_toml(&format!(
        "[drive]\nmodel = \"One die\"\ncapacity = \"4 MiB\"\ninterface = \"nvme\"\n\
         [link]\nbandwidth = \"3000 MB/s\"\nread_overhead = \"20 us\"\nwrite_overhead = \"5 us\"\n\
         [flash]\nchannels = 1\ndies_per_channel = 1\nplanes = 1\npage = \"8 KiB\"\n\
         pages_per_block = 16\nread = \"50 us\"\nprogram = \"700 us\"\nerase = \"3 ms\"\n\
         channel_bandwidth = \"800 MB/s\"\n\
         [ftl]\nspare = 0.2\n{rules}\n[buffer]\nsize = \"256 KiB\"\n"
    ))
    .unwrap()
}

struct Host {
    drive: Ssd,
    units: u64,
    random: Random,
    in_flight: usize,
}

impl Host {
    fn new(rules: &str) -> Self {
        let profile = profile(rules);
        let drive = Ssd::new(&profile, 1);
        let units = profile.logical_units();
        let mut host = Self { drive, units, random: Random::new(1, "host"), in_flight: 0 };
        (0..units).for_each(|unit| host.ask(Op::Write, unit));
        for _ in 0..3 * units {
            host.ask_anywhere(Op::Write);
        }
        host
    }

    fn ask(&mut self, op: Op, unit: u64) {
        while self.in_flight >= 16 {
            self.reap(Wait::One);
        }
        let blocks = if op == Op::Flush { 0 } else { 8 };
        let request = Request::new(0, op, Lba::new(unit * 8), blocks);
        self.drive.submit(request).unwrap();
        self.in_flight += 1;
    }

    fn ask_anywhere(&mut self, op: Op) {
        let unit = self.random.below(self.units);
        self.ask(op, unit);
    }

    fn reap(&mut self, wait: Wait) -> Vec<Completion> {
        let mut done = Vec::new();
        self.drive.reap(wait, &mut done).unwrap();
        self.in_flight -= done.len();
        done
    }

    fn rest(&mut self, duration: Nanos) {
        let until = self.drive.now() + duration;
        while self.drive.now() < until {
            self.reap(Wait::Until(until));
        }
    }

    /// Waits for all requests in flight.
    fn settle(&mut self) {
        while self.in_flight > 0 {
            self.reap(Wait::One);
        }
    }

    fn flush(&mut self) {
        self.settle();
        self.ask(Op::Flush, 0);
        self.settle();
    }
}

/// The time that the die needs for the operations counted between two points.
fn work(before: &Counters, after: &Counters) -> Nanos {
    let programs = (after.nand_writes() - before.nand_writes()) / 2;
    let senses = after.host_senses + after.collection_senses;
    PROGRAM * programs
        + ERASE * (after.erases - before.erases)
        + SENSE * (senses - before.host_senses - before.collection_senses)
}

/// Runs a period that starts idle, then writes one more unit and flushes it: its page is programmed
/// after everything queued before. Returns the time up to there, and the work.
fn stretch(host: &mut Host, live: impl Fn(&mut Host)) -> (Nanos, Nanos) {
    let (start, before) = (host.drive.now(), *host.drive.counters());
    live(host);
    host.settle();
    let ordered = *host.drive.counters();
    host.ask_anywhere(Op::Write);
    host.flush();
    (host.drive.now() - start, work(&before, &ordered) + PROGRAM)
}

/// Many periods on one drive, each after an idle time.
fn many_stretches(rules: &str, live: impl Fn(&mut Host) + Copy) {
    let mut host = Host::new(rules);
    let moved = host.drive.counters().collection_moves;
    for _ in 0..300 {
        host.flush();
        // Long enough for everything queued, and for all collection in idle time.
        host.rest(Nanos::from_secs(20));
        host.ask(Op::Read, 0);
        host.settle();
        host.rest(Nanos::from_secs(20));
        let (elapsed, work) = stretch(&mut host, live);
        assert!(elapsed >= work, "{rules}: {work} of work in {elapsed}");
    }
    assert!(host.drive.counters().collection_moves > moved + 1000, "collection was at work");
}

const RULES: [&str; 5] = [
    "relocation = \"mixed\"",
    "relocation = \"separate\"",
    "victim = \"random\"",
    "victim = \"fifo\"\nrelocation = \"mixed\"",
    "wear_levelling = \"static\"\nwear_spread = 4",
];

#[test]
fn operations_caused_by_writes_start_after_them() {
    for rules in RULES {
        many_stretches(rules, |host| {
            for _ in 0..=host.random.below(40) {
                host.ask_anywhere(Op::Write);
            }
        });
    }
}

#[test]
fn operations_caused_by_reads_and_idle_time_start_after_them() {
    for rules in RULES {
        let rules = format!("{rules}\nidle_reserve = 6");
        many_stretches(&rules, |host| {
            for _ in 0..=host.random.below(60) {
                match host.random.below(4) {
                    0 => host.ask_anywhere(Op::Read),
                    1 => {
                        // Shorter than a program, which is therefore still in progress after it.
                        let short = Nanos::from_micros(host.random.below(300));
                        host.settle();
                        host.rest(short);
                    }
                    _ => host.ask_anywhere(Op::Write),
                }
            }
        });
    }
}
