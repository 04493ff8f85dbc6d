//! Ten thousand short random sequences on a tiny drive: after every step, maps and counts agree.
//!
//! `drive.rs` has longer sequences on a larger drive; here the drive is so small that a few
//! requests cause collection, and each sequence has random rules.

use proptest::prelude::*;
use ssdlab_device::{Completion, Device, Hint, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;

/// Two dies, superblocks of 16 units, 192 units visible.
const PROFILE: &str = r#"
[drive]
model = "Tiny"
capacity = "768 KiB"
interface = "nvme"
[link]
bandwidth = "1000 MB/s"
read_overhead = "20 us"
write_overhead = "5 us"
max_transfer = "64 KiB"
[flash]
channels = 2
dies_per_channel = 1
planes = 1
page = "8 KiB"
pages_per_block = 4
blocks_per_plane = BLOCKS
read = ["40 us", "60 us"]
program = "700 us"
erase = "3 ms"
channel_bandwidth = "400 MB/s"
MORTAL
SUSPEND
[ftl]
RULES
[buffer]
size = "BUFFER"
power_loss_protection = PROTECTED
CACHE
"#;

const UNITS: u64 = 192;

#[derive(Clone, Debug)]
enum Step {
    Submit { op: Op, lba: u64, blocks: u32, hint: Hint },
    Reap,
    Rest(u64),
    Renew(u32),
    CutPower(u64),
}

/// Hints of writes, including streams that do not exist and blocks beyond the end of the drive.
fn hint() -> impl Strategy<Value = Hint> {
    prop_oneof![
        2 => Just(Hint::None),
        3 => (0..5_u8).prop_map(Hint::Stream),
        2 => Just(Hint::Overwrite),
        2 => (0..UNITS * 9).prop_map(|lba| Hint::AppendAfter(Lba::new(lba))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        6 => Just(Op::Write), 2 => Just(Op::Read), 1 => Just(Op::Trim), 1 => Just(Op::Flush)
    ];
    let submit = (op, 0..UNITS * 8, 1..320_u32, hint()).prop_map(|(op, lba, blocks, hint)| {
        let room = (UNITS * 8 - lba) as u32;
        let blocks = if op == Op::Flush { 0 } else { blocks.min(room) };
        Step::Submit { op, lba: if op == Op::Flush { 0 } else { lba }, blocks, hint }
    });
    prop_oneof![
        16 => submit,
        6 => Just(Step::Reap),
        2 => (0..5_000_000_u64).prop_map(Step::Rest),
        2 => (0..5_u32).prop_map(Step::Renew),
        1 => (0..3_000_000_u64).prop_map(Step::CutPower),
    ]
}

fn rules() -> impl Strategy<Value = String> {
    let victim = prop::sample::select(vec![
        "victim = \"greedy\"",
        "victim = \"fifo\"",
        "victim = \"random\"",
        "victim = \"d-choices\"\nchoices = 3",
        "victim = \"cost-benefit\"",
    ]);
    let relocation = prop::sample::select(vec!["separate", "mixed"]);
    let placement = prop::sample::select(vec![
        "",
        "placement = \"streams\"\nstreams = 2",
        "placement = \"streams\"\nstreams = 4",
        "placement = \"hinted\"",
        "placement = \"inferred\"",
        "placement = \"packed\"",
    ]);
    let more = prop::sample::select(vec![
        "",
        "chunk = \"4 KiB\"",
        "chunk = \"16 KiB\"",
        "map_cache = \"8 KiB\"",
        "read_ahead = \"64 KiB\"",
        "read_portion = \"8 KiB\"",
        "idle_reserve = 5",
        "wear_levelling = \"static\"\nwear_spread = 2",
        "reserve = 3",
        "idle_after = \"1 ms\"",
    ]);
    (victim, relocation, placement, more).prop_map(|(victim, relocation, placement, more)| {
        format!("{victim}\nrelocation = \"{relocation}\"\n{placement}\n{more}")
    })
}

fn caches() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "[slc]\nsize = \"96 KiB\"\nprogram = \"100 us\"\nbits_per_cell = 2",
        "[slc]\nsize = \"64 KiB\"\nprogram = \"100 us\"\nmode = \"dynamic\"\nbits_per_cell = 2",
    ])
}

fn profiles() -> impl Strategy<Value = Profile> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (rules(), caches(), flags).prop_map(|(rules, cache, (protected, suspends, mortal))| {
        let mortal = if mortal { "failure_cycles = 4\nfailure_spread = 0.3" } else { "" };
        let of_streams = |count: &u32| rules.contains(&format!("streams = {count}"));
        // A drive with packed placement fills two superblocks at once, like one with two streams.
        let lone = if rules.contains("packed") { 2 } else { 1 };
        let streams = [2, 4].into_iter().find(of_streams).unwrap_or(lone);
        let suspend = if suspends { "suspend = \"20 us\"" } else { "" };
        let text = PROFILE
            .replace("SUSPEND", suspend)
            .replace("MORTAL", mortal)
            .replace("CACHE", cache)
            .replace("BLOCKS", &(21 + streams).to_string())
            .replace("BUFFER", if streams == 1 { "64 KiB" } else { "128 KiB" })
            .replace("RULES", &rules)
            .replace("PROTECTED", &protected.to_string());
        Profile::from_toml(&text).unwrap()
    })
}

/// A drive and the ids of the requests in flight.
struct Queue {
    drive: Ssd,
    in_flight: Vec<u64>,
    submitted: u64,
    last: Nanos,
}

impl Queue {
    fn submit(&mut self, op: Op, lba: u64, blocks: u32, hint: Hint) {
        let plain = Request::new(self.submitted, op, Lba::new(lba), blocks);
        let request = Request { hint, ..plain };
        self.drive.submit(request).unwrap();
        self.in_flight.push(self.submitted);
        self.submitted += 1;
    }

    fn reap(&mut self, wait: Wait) {
        let mut done: Vec<Completion> = Vec::new();
        self.drive.reap(wait, &mut done).unwrap();
        for each in done {
            assert!(each.submitted <= each.completed && each.completed <= self.drive.now());
            assert!(self.last <= each.completed, "completions in order of time");
            self.last = each.completed;
            let place = self.in_flight.iter().position(|id| *id == each.id);
            self.in_flight.swap_remove(place.expect("each request completes once"));
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Submit { op, lba, blocks, hint } => self.submit(*op, *lba, *blocks, *hint),
            Step::Reap => self.reap(Wait::One),
            Step::Rest(nanos) => self.reap(Wait::Until(self.drive.now() + Nanos::new(*nanos))),
            Step::Renew(stream) => {
                self.drive.renew_stream(*stream);
            }
            Step::CutPower(nanos) => {
                let cut = self.drive.power_cut(self.drive.now() + Nanos::new(*nanos));
                let mut ended: Vec<u64> = cut.completed.iter().map(|each| each.id).collect();
                ended.extend(cut.unanswered);
                ended.sort_unstable();
                self.in_flight.sort_unstable();
                assert_eq!(ended, self.in_flight, "each was answered or never will be");
                self.in_flight.clear();
                self.last = self.drive.now();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn after_every_step_of_ten_thousand_lives_maps_and_counts_agree(
        profile in profiles(),
        full in any::<bool>(),
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let drive = Ssd::new(&profile, 0);
        let mut queue = Queue { drive, in_flight: Vec::new(), submitted: 0, last: Nanos::ZERO };
        if full {
            queue.submit(Op::Write, 0, (UNITS * 8) as u32, Hint::None);
        }
        for step in &steps {
            queue.take(step);
            queue.drive.assert_consistent();
        }
        while !queue.in_flight.is_empty() {
            queue.reap(Wait::One);
        }
        queue.drive.assert_consistent();
    }
}
