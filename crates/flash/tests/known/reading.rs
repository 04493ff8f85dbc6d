//! Reads of a fresh drive: latency and bandwidth against a calculation by hand.

use ssdlab_device::{Device, Lba, Op, Request};
use ssdlab_flash::Profile;
use ssdlab_time::{Nanos, Random};

use crate::host::Host;

/// Four dies on two channels; a multi-plane page of 32 KiB is a chunk.
const PROFILE: &str = include_str!("../drives/small.toml");

/// Host blocks of a stripe, a multi-plane page and a mapping unit.
const STRIPE: u64 = 256;
const PAGE: u64 = 64;
const UNIT: u64 = 8;

/// A sequentially written drive with nothing in flight.
struct Fresh {
    host: Host,
    blocks: u64,
}

impl Fresh {
    fn new() -> Self {
        Self::with(&[])
    }

    /// A drive of the profile with some texts replaced.
    fn with(replacements: &[(&str, &str)]) -> Self {
        let mut text = PROFILE.replace("read = \"50 us\"", "read = [\"40 us\", \"60 us\"]");
        for (old, new) in replacements {
            assert!(text.contains(old), "the profile contains {old:?}");
            text = text.replace(old, new);
        }
        let profile = Profile::from_toml(&text).unwrap();
        let mut fresh = Self { host: Host::new(&profile), blocks: profile.capacity / 512 };
        fresh.run(Op::Write, fresh.starts(STRIPE), STRIPE, 1);
        fresh.host.flush();
        fresh
    }

    /// The addresses of sequential requests of `blocks` blocks over the whole drive.
    fn starts(&self, blocks: u64) -> impl Iterator<Item = u64> + use<> {
        (0..self.blocks / blocks).map(move |index| index * blocks)
    }

    fn random_starts(&self, count: usize) -> impl Iterator<Item = u64> + use<> {
        let (units, mut random) = (self.blocks / UNIT, Random::new(3, "reads"));
        (0..count).map(move |_| random.below(units) * UNIT)
    }

    fn run(&mut self, op: Op, starts: impl Iterator<Item = u64>, blocks: u64, depth: usize) {
        for start in starts {
            self.host.submit(Request::new(0, op, Lba::new(start), blocks as u32), depth);
        }
        self.host.drain();
    }

    /// Overwrites one unit in the second stripe.
    fn scatter_a_unit(&mut self) {
        self.run(Op::Write, [STRIPE + 3 * UNIT].into_iter(), UNIT, 1);
        self.host.flush();
    }

    /// Reads per second and mean latency.
    fn read(&mut self, starts: impl Iterator<Item = u64>, blocks: u64, depth: usize) -> (f64, f64) {
        let start = self.host.drive.now();
        self.host.done.clear();
        self.run(Op::Read, starts, blocks, depth);
        let seconds = (self.host.drive.now() - start).get() as f64 / 1e9;
        let done = &self.host.done;
        let latency: Nanos = done.iter().map(|each| each.completed - each.submitted).sum();
        (done.len() as f64 / seconds, latency.get() as f64 / 1e9 / done.len() as f64)
    }

    /// The latency of one read.
    fn latency(&mut self, start: u64, blocks: u64) -> f64 {
        self.read([start].into_iter(), blocks, 1).1
    }
}

fn assert_close(label: &str, by_hand: f64, model: f64) {
    let off = model / by_hand - 1.0;
    assert!(off.abs() < 0.01, "{label}: by hand {by_hand}, model {model}");
}

/// Transfer times of 4 KiB and 32 KiB over a channel and over the link.
const CHANNEL_UNIT: f64 = 10.24e-6;
const CHANNEL_PAGE: f64 = 81.92e-6;
const LINK_UNIT: f64 = 4.096e-6;
const LINK_PAGE: f64 = 32.768e-6;

#[test]
fn a_random_read_at_depth_1_takes_overhead_sense_channel_and_link_time() {
    let mut fresh = Fresh::new();
    let (rate, latency) = fresh.read(fresh.random_starts(5000), UNIT, 1);
    // Half of the pages are of either type.
    let by_hand = 20e-6 + 50e-6 + CHANNEL_UNIT + LINK_UNIT;
    assert_close("latency", by_hand, latency);
    assert_close("rate", 1.0 / by_hand, rate);
}

#[test]
fn a_stripe_read_at_depth_1_is_limited_by_two_channels() {
    let mut fresh = Fresh::new();
    let (rate, latency) = fresh.read(fresh.starts(STRIPE), STRIPE, 1);
    // Two pages per channel; the link is one unit behind, but the last pages of both channels
    // arrive together, and the second waits for the first.
    let by_hand = 20e-6 + 50e-6 + 2.0 * CHANNEL_PAGE + LINK_UNIT + LINK_PAGE;
    assert_close("latency", by_hand, latency);
    assert_close("rate", 1.0 / by_hand, rate);
}

#[test]
fn random_reads_at_high_depth_are_limited_by_the_senses_of_all_dies() {
    let mut fresh = Fresh::new();
    let (rate, latency) = fresh.read(fresh.random_starts(60_000), UNIT, 512);
    // Four dies, 50 us each; a channel is busy for 41 % of that.
    assert_close("rate", 4.0 / 50e-6, rate);
    assert_close("latency", 512.0 * 50e-6 / 4.0, latency);
}

#[test]
fn reads_of_one_die_at_high_depth_are_limited_by_its_senses() {
    let mut fresh = Fresh::new();
    let starts: Vec<u64> = fresh.starts(STRIPE).collect();
    let (rate, _) = fresh.read(starts.repeat(4).into_iter(), UNIT, 64);
    assert_close("rate", 1.0 / 50e-6, rate);
}

#[test]
fn sequential_reads_at_high_depth_have_the_bandwidth_of_the_slowest_part() {
    for (label, replaced, blocks, depth, by_hand) in [
        // Each channel transfers two of the four pages of a stripe.
        ("channels", None, STRIPE, 32, 1.0 / (2.0 * CHANNEL_PAGE)),
        ("slow link", Some(("\"1000 MB/s\"", "\"500 MB/s\"")), PAGE, 64, 500e6 / 32768.0),
        ("slow senses", Some(("[\"40 us\", \"60 us\"]", "\"200 us\"")), PAGE, 64, 4.0 / 200e-6),
    ] {
        let mut fresh = Fresh::with(replaced.as_slice());
        let (rate, _) = fresh.read(fresh.starts(blocks), blocks, depth);
        assert_close(label, by_hand, rate);
    }
}

/// A drive with commands of up to 256 KiB, and a line in the section `[ftl]`.
fn with_long_commands(ftl: &str) -> Fresh {
    Fresh::with(&[("\"128 KiB\"", "\"256 KiB\""), ("[ftl]", &format!("[ftl]\n{ftl}"))])
}

#[test]
fn a_portion_with_a_scattered_unit_starts_when_the_previous_one_has_reached_the_host() {
    let mut fresh = with_long_commands("read_portion = \"128 KiB\"");
    let in_order = fresh.latency(0, 2 * STRIPE);
    fresh.scatter_a_unit();
    let halves = [0, STRIPE].map(|start| fresh.latency(start, STRIPE));
    let whole = fresh.latency(0, 2 * STRIPE);
    assert_close("one after the other", halves[0] + halves[1] - 20e-6, whole);
    assert!(in_order + 50e-6 < whole, "together {in_order}, one after the other {whole}");
}

#[test]
fn with_two_portions_in_progress_a_scattered_unit_in_the_second_adds_no_wait() {
    let latency = |ftl: &str| {
        let mut fresh = with_long_commands(ftl);
        fresh.scatter_a_unit();
        fresh.latency(0, 2 * STRIPE)
    };
    let undivided = latency("");
    let two = latency("read_portion = \"128 KiB\"\nread_portions = 2");
    assert_close("two portions", undivided, two);
    assert!(latency("read_portion = \"128 KiB\"") > undivided + 50e-6);
}
