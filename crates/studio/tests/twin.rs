//! A twin in slices: what it computes does not depend on where it is stopped or taken back to, and
//! what a frame shows adds up to the counters.

#![expect(clippy::float_cmp, reason = "counts are whole numbers below 2^53")]

use serde_json::{Value, json};
use ssdlab_studio::{COLUMNS, Frame, SeekBy, Spec, Twin};
use ssdlab_time::{Nanos, Random};

const PROFILE: &str = r#"
[drive]
model = "Small"
capacity = "48 MiB"
interface = "nvme"
[link]
bandwidth = "3200 MiB/s"
max_transfer = "256 KiB"
read_overhead = "10 us"
write_overhead = "5 us"
[flash]
channels = 2
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 8
read = ["40 us", "60 us"]
program = "500 us"
erase = "3500 us"
channel_bandwidth = "800 MiB/s"
suspend = "5 us"
[ftl]
spare = 0.15
placement = "streams"
streams = 3
idle_reserve = 8
wear_levelling = "static"
wear_spread = 1
[buffer]
size = "2 MiB"
[slc]
size = "6 MiB"
mode = "static"
bits_per_cell = 3
program = "100 us"
"#;

const CAPACITY: u64 = 48 << 20;

fn spec(overrides: &Value) -> Spec {
    let text = json!({"profile": PROFILE, "overrides": overrides, "seed": 5});
    Spec::from_json(&text.to_string()).unwrap()
}

/// Jobs of every kind, rests and power cuts.
fn steps() -> Value {
    let job = |fields: Value| {
        let mut job = json!({"op": "write", "length_bytes": CAPACITY, "interval_us": 5000});
        job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"job": job})
    };
    let random = |seed: u64, count: u64| {
        json!({"pattern": "random", "block_bytes": 4096, "amount_bytes": count * 4096,
            "queue_depth": 4, "seed": seed})
    };
    let with = |mut fields: Value, more: &Value| {
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let mut zeros = job(random(3, 500));
    zeros["zeros"] = json!(true);
    let mut cut = job(with(random(4, 4000), &json!({"queue_depth": 16})));
    cut["power_cut_after"] = json!(1500);
    let open_loop = json!({"arrival": {"rate": {"per_s": 40000.0, "poisson": true}}});
    json!([
        job(json!({"block_bytes": 65536, "amount_bytes": CAPACITY})),
        {"job": {"op": "flush"}},
        job(with(random(1, 9000), &json!({"hint": {"stream": {"number": 1}}}))),
        {"rest": 0.7},
        job(with(random(2, 3000), &json!({"read_share": 0.5, "trim_share": 0.1,
            "sync": {"flush": {"every": 7}}, "block_bytes": 0,
            "block_mix": [[4096, 3.0], [16384, 1.0]]}))),
        zeros,
        job(with(random(6, 2000), &open_loop)),
        cut,
        job(with(random(7, 2000), &json!({"threads": 3}))),
        {"power_cut": true},
        {"new_drive": {"overrides": {"slc": null}, "seed": 9}},
        job(with(random(8, 20000), &json!({"pattern": {"zipf": {"theta": 1.1}}}))),
        {"rest": 0.01},
    ])
}

fn twin(overrides: &Value, steps: &Value) -> Twin {
    let mut twin = Twin::new(spec(overrides)).unwrap();
    twin.add_steps(&steps.to_string()).unwrap();
    twin
}

type Seen = (Vec<Value>, Value, Vec<[u32; 4]>, Vec<[f64; 4]>, Vec<u64>);

/// Everything that can be seen of a twin. Lists of what happened are not a state.
fn seen(twin: &mut Twin) -> Seen {
    let results = twin.results().iter().map(|result| result.0.clone()).collect();
    let counters = twin.counters();
    let Frame { header, superblocks, dies, .. } = twin.frame();
    // Not the addresses, the furthest moment, the snapshots.
    let header =
        [0, 1, 2, 3, 5, 6, 7, 25, 27, 30, 31, 32, 33, 34].map(|index| header[index].to_bits());
    (results, counters, superblocks.clone(), dies.clone(), header.to_vec())
}

#[test]
fn slices_of_any_length_change_nothing() {
    let mut whole = twin(&json!({}), &steps());
    assert_eq!(whole.advance(u64::MAX, Nanos::MAX), Ok(true));
    assert!(whole.position().requests > 30_000);
    let collected = whole.counters()["collection_moves"].as_u64().unwrap();
    assert!(collected > 1000, "the last drive collects: {collected}");
    let expected = seen(&mut whole);
    let mut random = Random::new(3, "slices");
    for observed in [false, true] {
        let mut sliced = twin(&json!({}), &steps());
        sliced.observe(observed);
        loop {
            let requests = 1 + random.below(300);
            let until = sliced.position().time + Nanos::new(random.below(3_000_000) + 1);
            if sliced.advance(requests, until).unwrap() {
                break;
            }
            if random.below(40) == 0 {
                sliced.frame();
            }
        }
        assert!(seen(&mut sliced) == expected, "observed: {observed}");
        assert_eq!(sliced.series_rows(), whole.series_rows());
    }
}

#[test]
fn the_results_are_those_of_the_job_loop() {
    use ssdlab_flash::{Profile, Ssd};
    use ssdlab_workload::{Job, rest, run, run_queues};
    use std::ops::ControlFlow;
    let mut ssd = Ssd::new(&Profile::from_toml(PROFILE).unwrap(), 5);
    let mut twin = twin(&json!({}), &steps());
    twin.advance(u64::MAX, Nanos::MAX).unwrap();
    let watch = &mut |_| ControlFlow::Continue(());
    let mut compared = 0;
    for (step, result) in steps().as_array().unwrap().iter().zip(twin.results()) {
        let result = &result.0;
        if let Some(seconds) = step["rest"].as_f64() {
            rest(&mut ssd, Nanos::new((seconds * 1e9) as u64), watch).unwrap();
        } else if step.get("power_cut_after").is_some() {
            break;
        } else {
            let job: Job = serde_json::from_value(step["job"].clone()).unwrap();
            ssd.set_writes_zeros(step["zeros"] == true);
            let outcome = if job.threads == 1 {
                run(&mut ssd, &job, watch)
            } else {
                run_queues(&mut ssd, &job, watch)
            };
            let outcome = outcome.unwrap();
            let record = &outcome.record;
            assert_eq!(result["end_ns"], record.end.get());
            assert_eq!(result["requests"], record.requests);
            assert_eq!(result["bytes"], record.bytes);
            let latency: Vec<_> = outcome.latency(None).buckets().collect();
            assert_eq!(result["latency"], json!(latency));
        }
        compared += 1;
    }
    assert_eq!(compared, 7);
}

#[test]
fn going_back_restores_every_earlier_state() {
    let all = steps();
    // Flushes are due at many a snapshot.
    let flushes = json!([all[0], all[4]]);
    for (steps, snapshot_bytes, ticks) in [
        (&all, 0, Some(7)),
        (&all, 100 << 20, Some(7)),
        (&flushes, 100 << 20, Some(7)),
        (&all, 64 << 20, None),
    ] {
        let text = json!({"profile": PROFILE, "seed": 5, "snapshot_bytes": snapshot_bytes,
            "snapshot_ticks": ticks});
        let mut twin = Twin::new(Spec::from_json(&text.to_string()).unwrap()).unwrap();
        twin.add_steps(&steps.to_string()).unwrap();
        let mut random = Random::new(4, "seek");
        let mut moments = Vec::new();
        loop {
            moments.push((twin.position(), seen(&mut twin)));
            let until = twin.position().time + Nanos::new(random.below(60_000_000) + 1);
            if twin
                .advance(1 + random.below(steps.as_array().unwrap().len() as u64 * 50), until)
                .unwrap()
            {
                break;
            }
        }
        let seeks = if snapshot_bytes == 0 { 8 } else { 80 };
        let last = (twin.position(), seen(&mut twin));
        let series = twin.series_rows().to_vec();
        if snapshot_bytes > 0 {
            assert!(twin.frame().header[28] > 0.0, "snapshots were taken");
        }
        assert!(twin.frame().header[29] <= f64::from(snapshot_bytes));
        for _ in 0..seeks {
            let (position, expected) = &moments[random.below(moments.len() as u64) as usize];
            twin.seek(SeekBy::Tick, position.tick);
            assert_eq!(twin.position(), *position);
            assert!(seen(&mut twin) == *expected);
            twin.seek(SeekBy::Requests, position.requests);
            assert_eq!(twin.position().requests, position.requests);
            assert!(twin.position().tick <= position.tick, "the first tick with these requests");
            let first = twin.position();
            twin.seek(SeekBy::Tick, first.tick - first.tick.min(1));
            assert!(first.tick == 0 || twin.position().requests < position.requests);
            twin.seek(SeekBy::Time, position.time.get());
            assert_eq!(twin.position().time, position.time);
        }
        twin.seek(SeekBy::Tick, u64::MAX);
        assert!((twin.position(), seen(&mut twin)) == last);
        assert_eq!(twin.series_rows(), series);
    }
}

/// What the lists of all frames add up to.
#[derive(Default)]
struct Sums {
    written: f64,
    read: f64,
    moved: [f64; 6],
    erases: f64,
    senses: f64,
    fetches: f64,
}

impl Sums {
    fn add(&mut self, frame: &Frame) {
        for row in &frame.commands {
            assert!(row[4] <= row[5], "a command completes after it was submitted");
            match row[1] as u8 {
                0 => self.read += row[3],
                1 => self.written += row[3],
                _ => {}
            }
        }
        for row in &frame.operations {
            assert!(row[4] < row[5] && (row[1] as usize) < frame.dies.len());
            match row[0] as u8 {
                1 => self.senses += 1.0,
                3 => self.erases += 1.0,
                4 => self.fetches += 1.0,
                _ => {}
            }
        }
        for row in &frame.moves {
            self.moved[row[3] as usize] += row[2];
        }
    }
}

/// Checks that no superblock has more units in flash than valid ones; returns the number of units
/// in flash or in the buffer.
fn check_units(twin: &mut Twin) -> u64 {
    let units = twin.units(0, u64::MAX).to_vec();
    assert_eq!(units.len() as u64, CAPACITY / 4096);
    let frame = twin.last_frame();
    let mut counts = vec![0; frame.superblocks.len()];
    let in_flash = units.iter().filter(|[state, _]| state >> 16 == 2);
    in_flash.for_each(|[_, page]| counts[*page as usize / 8] += 1);
    assert!(counts.iter().zip(&frame.superblocks).all(|(count, row)| *count <= row[0]));
    assert!(counts.iter().sum::<u32>() > 0);
    assert!(frame.header[38] <= frame.header[39], "the buffer holds at most its size");
    units.iter().filter(|[state, _]| *state > 0).count() as u64
}

#[test]
fn in_each_of_1000_frames_what_is_drawn_adds_up_to_the_counters() {
    let mut list = steps();
    // Power cuts move units that no counter has, and a new drive starts at zero.
    list.as_array_mut().unwrap().truncate(7);
    let mut twin = twin(&json!({}), &list);
    twin.observe(true);
    let count = |twin: &Twin, name: &str| twin.counters()[name].as_f64().unwrap();
    let mut sums = Sums::default();
    let mut frames = 0;
    loop {
        let ended = twin.advance(12, Nanos::MAX).unwrap();
        twin.frame();
        let counters = twin.counters();
        let frame = twin.last_frame();
        sums.add(frame);
        let dies = frame.dies.len() as f64;
        let valid: u64 = frame.superblocks.iter().map(|row| u64::from(row[0])).sum();
        let erases: u64 = frame.superblocks.iter().map(|row| u64::from(row[1])).sum();
        assert_eq!(valid as f64, frame.header[25]);
        assert_eq!(erases as f64 * dies, counters["erases"].as_f64().unwrap());
        let free = frame.superblocks.iter().filter(|row| row[2].trailing_zeros() >= 8).count();
        assert!(free as f64 >= frame.header[27], "others of an SLC cache are erased, too");
        let programmed: f64 = (0..22)
            .filter(|index| {
                twin.describe()["counters"][index].as_str().unwrap().starts_with("nand_")
            })
            .map(|index| frame.counters[index])
            .sum();
        assert_eq!(programmed, frame.header[30]);
        assert_eq!(sums.written, count(&twin, "host_write_bytes"));
        assert_eq!(sums.moved[1], count(&twin, "collection_moves"));
        assert_eq!(sums.moved[2], count(&twin, "wear_moves"));
        assert_eq!(sums.moved[3], count(&twin, "folding_moves"));
        assert_eq!(sums.erases, count(&twin, "erases"));
        assert_eq!(sums.senses, count(&twin, "host_senses"));
        assert_eq!(sums.fetches, count(&twin, "collection_senses"));
        frames += 1;
        if frames % 100 == 0 {
            // The map itself: each mapped unit once, each valid count by superblock.
            twin.ssd().assert_consistent();
            let mapped = (0..CAPACITY / 4096)
                .filter(|unit| twin.ssd().locate(*unit) != ssdlab_flash::UnitLocation::Unmapped);
            assert_eq!(mapped.count() as u64, valid);
            assert_eq!(check_units(&mut twin), valid);
        }
        if ended {
            break;
        }
    }
    assert!(frames > 1000, "{frames}");
    for (name, seen) in
        [("collection", sums.moved[1]), ("wear", sums.moved[2]), ("folding", sums.moved[3])]
    {
        assert!(seen > 0.0, "{name} moved units");
    }
    let column = |name| COLUMNS.iter().position(|each| *each == name).unwrap();
    let total = |name| twin.series_rows().iter().map(|row| row[column(name)]).sum::<f64>();
    assert_eq!(total("write_bytes"), count(&twin, "host_write_bytes"));
    assert_eq!(total("flash_bytes"), 4096.0 * twin.last_frame().header[30]);
}

#[test]
fn a_power_cut_by_hand_is_part_of_the_history() {
    let mut twin = twin(&json!({}), &steps());
    twin.advance(1000, Nanos::MAX).unwrap();
    twin.advance(2000, Nanos::MAX).unwrap();
    let before = twin.position();
    twin.power_cut();
    twin.advance(1, Nanos::MAX).unwrap();
    assert!(twin.results()[2].0["power_cut"]["lost_units"].as_u64().unwrap() > 0);
    twin.advance(5000, Nanos::MAX).unwrap();
    let after = (twin.position(), seen(&mut twin));
    twin.seek(SeekBy::Tick, before.tick);
    assert_eq!(twin.position(), before);
    twin.seek(SeekBy::Tick, after.0.tick);
    assert!((twin.position(), seen(&mut twin)) == after);
}

#[test]
fn cleared_steps_end_the_job_in_progress_and_others_follow() {
    let mut twin = twin(&json!({}), &steps());
    twin.advance(3000, Nanos::MAX).unwrap();
    twin.clear_steps();
    twin.add_steps(r#"[{"rest": 0.1}]"#).unwrap();
    assert_eq!(twin.advance(u64::MAX, Nanos::MAX), Ok(true));
    let results = twin.results();
    assert_eq!(results.len(), 4, "fill, flush, a part of the random job, rest");
    assert_eq!(results[2].0["stopped"], true);
    let end = (twin.position(), seen(&mut twin));
    twin.seek(SeekBy::Tick, 0);
    twin.seek(SeekBy::Tick, end.0.tick);
    assert!((twin.position(), seen(&mut twin)) == end);
}

#[test]
fn overrides_are_those_of_an_edited_profile_and_errors_say_what_is_allowed() {
    let edited = PROFILE.replace("spare = 0.15", "spare = 0.3").replace("wear_spread = 1\n", "");
    let text = json!({"profile": edited, "seed": 5}).to_string();
    let mut one = Twin::new(Spec::from_json(&text).unwrap()).unwrap();
    let overrides = json!({"ftl": {"spare": 0.3, "wear_spread": null}});
    let mut other = Twin::new(spec(&overrides)).unwrap();
    assert_eq!(one.describe(), other.describe());
    let before = Twin::new(spec(&json!({}))).unwrap().describe();
    assert_ne!(one.describe()["superblocks"], before["superblocks"]);
    for twin in [&mut one, &mut other] {
        twin.add_steps(&steps().to_string()).unwrap();
        twin.advance(12_000, Nanos::MAX).unwrap();
    }
    assert!(seen(&mut one) == seen(&mut other));

    let error = |overrides: Value| Twin::new(spec(&overrides)).err().unwrap();
    let misspelt = error(json!({"ftl": {"victims": "fifo"}}));
    assert!(misspelt.contains("ftl.victims") && misspelt.contains("victim"), "{misspelt}");
    let mut twin = Twin::new(spec(&json!({}))).unwrap();
    let mut refused = |steps: &str| twin.add_steps(steps).unwrap_err();
    assert!(refused(r#"[{"rest": 1}, {"rest": 1, "power_cut": true}]"#).contains("step 2"));
    assert!(
        refused(r#"[{"job": {"op": "write", "block_bytes": 5}}]"#).contains("block_bytes is 5")
    );
    assert!(refused(r#"[{"rest": -1}]"#).contains("0 to"));
    assert_eq!(twin.advance(u64::MAX, Nanos::MAX), Ok(true), "none of them was appended");
    assert!(twin.results().is_empty());
}

#[test]
fn a_step_that_cannot_be_run_says_so_and_the_next_one_follows() {
    let steps = json!([
        {"new_drive": {"capacity_bytes": 1 << 25, "overrides": {"slc": null}}},
        {"job": {"op": "write", "offset_bytes": 1 << 25, "length_bytes": 1 << 20,
            "block_bytes": 4096, "amount_bytes": 4096}},
        {"rest": 0.5},
    ]);
    let mut twin = twin(&json!({}), &steps);
    let message = twin.advance(u64::MAX, Nanos::MAX).unwrap_err();
    assert!(message.contains("offset_bytes") || message.contains("length_bytes"), "{message}");
    assert_eq!(twin.advance(u64::MAX, Nanos::MAX), Ok(true));
    let kinds: Vec<_> = twin.results().iter().map(|result| result.0["kind"].clone()).collect();
    assert_eq!(kinds, ["new_drive", "failed", "rest"]);
}

#[test]
fn a_row_is_never_longer_than_its_interval() {
    let column = |name| COLUMNS.iter().position(|each| *each == name).unwrap();
    let [starts, ends] = ["start_ns", "end_ns"].map(column);
    for threads in [1, 3] {
        let slow = json!({"rate": {"per_s": 1000.0, "poisson": false}});
        let mut twin = twin(
            &json!({}),
            &json!([{"job": {"op": "write", "length_bytes": CAPACITY, "block_bytes": 4096,
                "amount_bytes": 60 * 4096, "arrival": slow, "threads": threads,
                "interval_us": 100}}]),
        );
        assert_eq!(twin.advance(u64::MAX, Nanos::MAX), Ok(true));
        let rows = twin.series_rows();
        assert!(rows.len() > 15, "{} rows", rows.len());
        assert!(rows.windows(2).any(|pair| pair[0][ends] < pair[1][starts]), "there are gaps");
        assert!(rows.iter().all(|row| row[ends] - row[starts] <= 100_000.0), "{threads} threads");
    }
}
