//! Reads of a fresh drive: latency and bandwidth as geometry and timing imply them by hand.

use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::{Nanos, Random};

/// Four dies on two channels; a multi-plane page of 32 KiB is a chunk.
const PROFILE: &str = r#"
[drive]
model = "Reading"
capacity = "64 MiB"
interface = "nvme"
[link]
bandwidth = "1000 MB/s"
read_overhead = "20 us"
write_overhead = "5 us"
max_transfer = "128 KiB"
[flash]
channels = 2
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 16
read = ["40 us", "60 us"]
program = "700 us"
erase = "3 ms"
channel_bandwidth = "400 MB/s"
[ftl]
spare = 0.28
[buffer]
size = "1 MiB"
"#;

/// Blocks of one stripe, of one page, of one unit.
const STRIPE: u64 = 256;
const PAGE: u64 = 64;
const UNIT: u64 = 8;

/// A drive written in order, with nothing in flight.
struct Fresh {
    drive: Ssd,
    blocks: u64,
}

impl Fresh {
    fn new(line: &str, other: &str) -> Self {
        assert!(PROFILE.contains(line), "the profile says {line:?}");
        Self::of(&PROFILE.replace(line, other))
    }

    fn of(text: &str) -> Self {
        let profile = Profile::from_toml(text).unwrap();
        let blocks = profile.capacity / 512;
        let mut fresh = Self { drive: Ssd::new(&profile, 1), blocks };
        let all = (0..blocks / STRIPE).map(|stripe| stripe * STRIPE);
        fresh.run(Op::Write, all, STRIPE, 1);
        fresh.flush();
        fresh
    }

    fn flush(&mut self) {
        self.drive.submit(Request::flush(0)).unwrap();
        self.drive.reap(Wait::One, &mut Vec::new()).unwrap();
    }

    /// Keeps `depth` requests of so many blocks in flight; returns what came back.
    fn run(
        &mut self,
        op: Op,
        starts: impl Iterator<Item = u64>,
        blocks: u64,
        depth: usize,
    ) -> Vec<Completion> {
        let (mut done, mut submitted) = (Vec::new(), 0);
        for start in starts {
            while submitted - done.len() >= depth {
                self.drive.reap(Wait::One, &mut done).unwrap();
            }
            let lba = Lba::new(start);
            let (id, blocks) = (submitted as u64, blocks as u32);
            let request = Request::new(id, op, lba, blocks);
            self.drive.submit(request).unwrap();
            submitted += 1;
        }
        while done.len() < submitted {
            self.drive.reap(Wait::One, &mut done).unwrap();
        }
        done
    }

    /// Requests a second and mean latency of reads.
    fn read(&mut self, starts: impl Iterator<Item = u64>, blocks: u64, depth: usize) -> (f64, f64) {
        let start = self.drive.now();
        let done = self.run(Op::Read, starts, blocks, depth);
        let seconds = (self.drive.now() - start).get() as f64 / 1e9;
        let latency: Nanos = done.iter().map(|each| each.completed - each.submitted).sum();
        (done.len() as f64 / seconds, latency.get() as f64 / 1e9 / done.len() as f64)
    }

    fn random(&self, count: usize) -> impl Iterator<Item = u64> + use<> {
        let (units, mut random) = (self.blocks / UNIT, Random::new(3, "reads"));
        (0..count).map(move |_| random.below(units) * UNIT)
    }
}

fn close(what: &str, by_hand: f64, model: f64) {
    let off = model / by_hand - 1.0;
    assert!(off.abs() < 0.01, "{what}: by hand {by_hand}, model {model}");
}

/// 4 KiB and 32 KiB over a channel, over the link.
const CHANNEL_UNIT: f64 = 10.24e-6;
const CHANNEL_PAGE: f64 = 81.92e-6;
const LINK_UNIT: f64 = 4.096e-6;
const LINK_PAGE: f64 = 32.768e-6;

#[test]
fn at_depth_1_a_random_read_takes_overhead_sense_channel_and_link() {
    let mut fresh = Fresh::new("", "");
    let starts = fresh.random(5000);
    let (rate, latency) = fresh.read(starts, UNIT, 1);
    // Half of the pages are of either type.
    let by_hand = 20e-6 + 50e-6 + CHANNEL_UNIT + LINK_UNIT;
    close("latency", by_hand, latency);
    close("rate", 1.0 / by_hand, rate);
}

#[test]
fn at_depth_1_a_stripe_is_read_as_fast_as_two_channels_bring_its_pages() {
    let mut fresh = Fresh::new("", "");
    let all = (0..fresh.blocks / STRIPE).map(|stripe| stripe * STRIPE);
    let (rate, latency) = fresh.read(all, STRIPE, 1);
    // Two pages a channel; the link follows a unit behind, but both channels' last pages are there
    // at once and the second waits for the first.
    let by_hand = 20e-6 + 50e-6 + 2.0 * CHANNEL_PAGE + LINK_UNIT + LINK_PAGE;
    close("latency", by_hand, latency);
    close("rate", 1.0 / by_hand, rate);
}

#[test]
fn deep_random_reads_are_as_many_as_the_dies_can_sense() {
    let mut fresh = Fresh::new("", "");
    let starts = fresh.random(60_000);
    let (rate, latency) = fresh.read(starts, UNIT, 512);
    // Four dies, 50 us each; a channel is busy for 41 % of that.
    close("rate", 4.0 / 50e-6, rate);
    close("latency", 512.0 * 50e-6 / 4.0, latency);
}

#[test]
fn deep_reads_of_all_on_one_die_are_as_many_as_it_can_sense() {
    let mut fresh = Fresh::new("", "");
    let starts: Vec<u64> = (0..fresh.blocks / STRIPE).map(|stripe| stripe * STRIPE).collect();
    let (rate, _) = fresh.read(starts.repeat(4).into_iter(), UNIT, 64);
    close("rate", 1.0 / 50e-6, rate);
}

#[test]
fn deep_sequential_reads_have_the_bandwidth_of_the_channels() {
    let mut fresh = Fresh::new("", "");
    let all = (0..fresh.blocks / STRIPE).map(|stripe| stripe * STRIPE);
    let (rate, _) = fresh.read(all, STRIPE, 32);
    // Each channel brings two of the four pages of a stripe.
    close("rate", 1.0 / (2.0 * CHANNEL_PAGE), rate);
}

#[test]
fn deep_sequential_reads_have_the_bandwidth_of_a_slower_link() {
    let mut fresh = Fresh::new("\"1000 MB/s\"", "\"500 MB/s\"");
    let all = (0..fresh.blocks / PAGE).map(|page| page * PAGE);
    let (rate, _) = fresh.read(all, PAGE, 64);
    close("rate", 500e6 / 32768.0, rate);
}

#[test]
fn deep_sequential_reads_have_the_bandwidth_of_slower_senses() {
    let mut fresh = Fresh::new("[\"40 us\", \"60 us\"]", "\"200 us\"");
    let all = (0..fresh.blocks / PAGE).map(|page| page * PAGE);
    let (rate, _) = fresh.read(all, PAGE, 64);
    close("rate", 4.0 / 200e-6, rate);
}

#[test]
fn a_portion_with_a_stray_unit_is_begun_when_the_one_before_it_is_with_the_host() {
    let text = PROFILE.replace("\"128 KiB\"", "\"256 KiB\"");
    let text = text.replace("spare = 0.28", "spare = 0.28\nread_portion = \"128 KiB\"");
    let mut fresh = Fresh::of(&text);
    let latency = |fresh: &mut Fresh, start, blocks| fresh.read([start].into_iter(), blocks, 1).1;
    let in_order = latency(&mut fresh, 0, 2 * STRIPE);
    fresh.run(Op::Write, [STRIPE + 3 * UNIT].into_iter(), UNIT, 1);
    fresh.flush();
    let halves = [0, STRIPE].map(|start| latency(&mut fresh, start, STRIPE));
    let whole = latency(&mut fresh, 0, 2 * STRIPE);
    close("one after the other", halves[0] + halves[1] - 20e-6, whole);
    assert!(in_order + 50e-6 < whole, "together {in_order}, one after the other {whole}");
}

#[test]
fn with_room_for_two_portions_a_stray_unit_in_the_second_costs_no_wait() {
    let latency = |room: &str| {
        let text = PROFILE.replace("\"128 KiB\"", "\"256 KiB\"");
        let mut fresh = Fresh::of(&text.replace("spare = 0.28", &format!("spare = 0.28\n{room}")));
        fresh.run(Op::Write, [STRIPE + 3 * UNIT].into_iter(), UNIT, 1);
        fresh.flush();
        fresh.read([0].into_iter(), 2 * STRIPE, 1).1
    };
    let undivided = latency("");
    let two = latency("read_portion = \"128 KiB\"\nread_portions = 2");
    close("room for both", undivided, two);
    assert!(latency("read_portion = \"128 KiB\"") > undivided + 50e-6);
}
