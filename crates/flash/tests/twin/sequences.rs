//! Random sequences of requests on a tiny drive: maps and counts are checked after every step.
//!
//! The drive is so small that a few requests cause collection, and each sequence has a random
//! profile. `drive.rs` has longer sequences on a larger drive.

use proptest::prelude::*;
use ssdlab_device::{Completion, Device, Hint, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_testing::scaled;
use ssdlab_time::Nanos;

const UNITS: u64 = 192;

#[derive(Clone, Debug)]
pub enum Step {
    Submit {
        op: Op,
        lba: u64,
        blocks: u32,
        hint: Hint,
    },
    /// A write where the last one ended.
    Continue {
        blocks: u32,
    },
    Reap,
    Rest(u64),
    Renew(u32),
    CutPower(u64),
}

/// Hints of writes, including unknown streams and blocks beyond the end of the drive.
fn hint(units: u64) -> impl Strategy<Value = Hint> {
    prop_oneof![
        2 => Just(Hint::None),
        3 => (0..5_u8).prop_map(Hint::Stream),
        2 => Just(Hint::Overwrite),
        2 => (0..units * 9).prop_map(|lba| Hint::AppendAfter(Lba::new(lba))),
    ]
}

/// A step on a drive of `units` units, with requests of up to `blocks_max` host blocks.
pub fn step(units: u64, blocks_max: u32) -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        6 => Just(Op::Write), 2 => Just(Op::Read), 1 => Just(Op::Trim), 1 => Just(Op::Flush)
    ];
    let submit = (op, 0..units * 8, 1..blocks_max, hint(units));
    let submit = submit.prop_map(move |(op, lba, blocks, hint)| {
        let room = (units * 8 - lba) as u32;
        let blocks = if op == Op::Flush { 0 } else { blocks.min(room) };
        Step::Submit { op, lba: if op == Op::Flush { 0 } else { lba }, blocks, hint }
    });
    prop_oneof![
        16 => submit,
        8 => (1..12_u32).prop_map(|blocks| Step::Continue { blocks }),
        6 => Just(Step::Reap),
        2 => (0..5_000_000_u64).prop_map(Step::Rest),
        2 => (0..5_u32).prop_map(Step::Renew),
        1 => (0..3_000_000_u64).prop_map(Step::CutPower),
    ]
}

fn policies() -> impl Strategy<Value = String> {
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
    let pacing = prop::sample::select(vec!["unit", "victim"]);
    let all = (victim, relocation, placement, more, pacing);
    all.prop_map(|(victim, relocation, placement, more, pacing)| {
        let how = format!("relocation = \"{relocation}\"\npacing = \"{pacing}\"");
        format!("{victim}\n{how}\n{placement}\n{more}")
    })
}

fn caches() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "[slc]\nsize = \"96 KiB\"\nprogram = \"100 us\"\nbits_per_cell = 2",
        "[slc]\nsize = \"64 KiB\"\nprogram = \"100 us\"\nmode = \"dynamic\"\nbits_per_cell = 2",
        "[slc]\nsize = \"64 KiB\"\nprogram = \"100 us\"\nmode = \"dynamic\"\nbits_per_cell = 2\n\
         folding = \"while writing\"",
        "[slc]\nsize = \"768 KiB\"\nprogram = \"100 us\"\nmode = \"dynamic\"\nbits_per_cell = 2\n\
         folding = \"while writing\"",
    ])
}

/// Drives of two dies, superblocks of 16 units, 192 units visible.
fn profiles() -> impl Strategy<Value = Profile> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (policies(), caches(), flags).prop_map(|(policies, cache, flags)| {
        let (protected, suspends, fails, merges) = flags;
        let failures = if fails { "failure_cycles = 4\nfailure_spread = 0.3" } else { "" };
        let has_streams = |count: &u32| policies.contains(&format!("streams = {count}"));
        // Packed placement fills two superblocks at the same time, like two streams.
        let default = if policies.contains("packed") { 2 } else { 1 };
        let streams = [2, 4].into_iter().find(has_streams).unwrap_or(default);
        let suspend = if suspends { "suspend = \"20 us\"" } else { "" };
        let (blocks, buffer) = (21 + streams, if streams == 1 { "64 KiB" } else { "128 KiB" });
        let text = format!(
            r#"
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
blocks_per_plane = {blocks}
read = ["40 us", "60 us"]
program = "700 us"
erase = "3 ms"
channel_bandwidth = "400 MB/s"
{failures}
{suspend}
[ftl]
{policies}
[buffer]
size = "{buffer}"
power_loss_protection = {protected}
merges_writes = {merges}
{cache}
"#
        );
        Profile::from_toml(&text).unwrap()
    })
}

/// A drive that checks that each request completes once, and completions are in order of time.
pub struct CheckedDrive {
    drive: Ssd,
    in_flight: Vec<u64>,
    submitted: u64,
    /// Where the last write ended, in blocks.
    write_end: u64,
    last: Nanos,
}

impl CheckedDrive {
    pub fn new(drive: Ssd) -> Self {
        Self { drive, in_flight: Vec::new(), submitted: 0, write_end: 0, last: Nanos::ZERO }
    }

    pub fn submit(&mut self, request: Request) {
        if request.op == Op::Write {
            self.write_end = request.lba.get() + u64::from(request.blocks);
        }
        self.drive.submit(Request { id: self.submitted, ..request }).unwrap();
        self.in_flight.push(self.submitted);
        self.submitted += 1;
    }

    fn reap(&mut self, wait: Wait) {
        let mut done: Vec<Completion> = Vec::new();
        self.drive.reap(wait, &mut done).unwrap();
        for each in done {
            assert!(each.submitted <= each.completed && each.completed <= self.drive.now());
            assert!(self.last <= each.completed, "completions are in order of time");
            self.last = each.completed;
            let index = self.in_flight.iter().position(|id| *id == each.id);
            self.in_flight.swap_remove(index.expect("each request completes once"));
        }
    }

    fn cut_power(&mut self, after: Nanos) {
        let cut = self.drive.power_cut(self.drive.now() + after);
        let mut ended: Vec<u64> = cut.completed.iter().map(|each| each.id).collect();
        ended.extend(cut.unanswered);
        ended.sort_unstable();
        self.in_flight.sort_unstable();
        assert_eq!(ended, self.in_flight, "each request completes or is unanswered");
        self.in_flight.clear();
        self.last = self.drive.now();
    }

    /// Runs all steps, and checks maps and counts after each.
    pub fn run_all(&mut self, steps: &[Step]) {
        for step in steps {
            self.run(step);
            self.drive.assert_consistent();
        }
        while !self.in_flight.is_empty() {
            self.reap(Wait::One);
        }
        self.drive.assert_consistent();
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Submit { op, lba, blocks, hint } => {
                let request = Request::new(0, *op, Lba::new(*lba), *blocks);
                self.submit(Request { hint: *hint, ..request });
            }
            Step::Continue { blocks } => {
                let room = (self.drive.capacity_bytes() / 512 - self.write_end) as u32;
                if room > 0 {
                    let start = Lba::new(self.write_end);
                    self.submit(Request::new(0, Op::Write, start, (*blocks).min(room)));
                }
            }
            Step::Reap => self.reap(Wait::One),
            Step::Rest(nanos) => self.reap(Wait::Until(self.drive.now() + Nanos::new(*nanos))),
            Step::Renew(stream) => {
                self.drive.renew_stream(*stream);
            }
            Step::CutPower(nanos) => self.cut_power(Nanos::new(*nanos)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(1000), ..ProptestConfig::default() })]

    #[test]
    fn maps_and_counts_agree_after_any_step(
        profile in profiles(),
        full in any::<bool>(),
        steps in prop::collection::vec(step(UNITS, 320), 1..24),
    ) {
        let mut checked = CheckedDrive::new(Ssd::new(&profile, 0));
        if full {
            checked.submit(Request::new(0, Op::Write, Lba::new(0), (UNITS * 8) as u32));
        }
        checked.run_all(&steps);
    }
}
