//! Properties of a twin that hold for any sequence of requests.

use crate::small::{Twin, profile, profile_with};
use proptest::prelude::*;
use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_flash::Ssd;
use ssdlab_time::{Nanos, Random};

const UNIT: u64 = 4096;

#[test]
fn repeated_sequential_writes_have_a_write_amplification_of_one() {
    let mut twin = Twin::new(&profile());
    for _ in 0..4 {
        twin.write_all();
    }
    twin.drive.assert_consistent();
    assert_eq!(twin.drive.counters().collection_moves, 0);
    assert!(twin.drive.counters().erases > 0, "the drive was overwritten, so blocks were erased");
}

#[test]
fn a_full_drive_keeps_accepting_random_writes() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.write_random(4 * twin.units(), 3);
    twin.drive.assert_consistent();
    let waf = twin.drive.counters().waf().unwrap();
    assert!((1.5..12.0).contains(&waf), "write amplification is {waf}");
}

#[test]
fn trimming_everything_makes_collection_free() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.write_random(2 * twin.units(), 3);
    twin.trim_all();
    let moved = twin.drive.counters().collection_moves;
    for _ in 0..2 {
        twin.write_all();
    }
    assert_eq!(twin.drive.counters().collection_moves, moved);
    twin.drive.assert_consistent();
}

#[test]
fn a_rewritten_file_reads_as_fast_as_a_fresh_one() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.flush();
    let fresh = twin.read_all();
    twin.write_random(twin.units() / 2, 9);
    twin.flush();
    let aged = twin.read_all();
    twin.write_all();
    twin.flush();
    let healed = twin.read_all();
    assert!(aged.get() * 10 > fresh.get() * 12, "fresh {fresh}, aged {aged}");
    assert!(healed.get() * 100 < fresh.get() * 102, "fresh {fresh}, healed {healed}");
}

#[test]
fn units_of_one_page_cost_one_sense_and_scattered_ones_one_each() {
    let mut twin = Twin::new(&profile());
    let page_units = 8;
    twin.write(0, page_units);
    twin.flush();
    twin.read(0, page_units);
    assert_eq!(twin.drive.counters().host_senses, 1);
    for unit in (0..page_units).rev() {
        twin.write(unit, 1);
        twin.write(100 + unit * 8, 7);
    }
    twin.flush();
    let before = twin.drive.counters().host_senses;
    twin.read(0, page_units);
    assert_eq!(twin.drive.counters().host_senses - before, page_units);
}

#[test]
fn a_read_from_the_buffer_needs_no_sense() {
    let mut twin = Twin::new(&profile());
    twin.write(5, 1);
    twin.read(5, 1);
    assert_eq!(twin.drive.counters().host_senses, 0);
    twin.flush();
    twin.read(5, 1);
    assert_eq!(twin.drive.counters().host_senses, 1);
}

#[test]
fn a_flush_pads_pages_of_a_volatile_drive_and_is_free_on_a_protected_one() {
    let mut volatile = Twin::new(&profile());
    volatile.write(0, 1);
    let waited = volatile.flush();
    assert!(waited >= Nanos::from_micros(700), "a program takes 700 us, the flush took {waited}");
    assert_eq!(volatile.drive.counters().nand_padding_writes, 7);

    for setting in ["power_loss_protection = true", "honours_flush = false"] {
        let mut quick = Twin::new(&profile_with("power_loss_protection = false", setting));
        quick.write(0, 1);
        assert!(quick.flush() < Nanos::from_micros(50), "{setting}");
        assert_eq!(quick.drive.counters().nand_padding_writes, 0, "{setting}");
    }
}

#[test]
fn writes_faster_than_flash_fill_the_buffer_and_then_wait() {
    let mut twin = Twin::new(&profile());
    let first = twin.write(0, 8);
    for start in 1..400 {
        twin.write(start * 8, 8);
    }
    let late = twin.write(400 * 8, 8);
    assert!(first < Nanos::from_micros(100), "the first write took {first}");
    assert!(late > Nanos::from_micros(100), "with a full buffer a write took {late}");
}

#[test]
fn a_partial_write_of_a_mapping_unit_reads_it_first() {
    let mut twin = Twin::new(&profile());
    twin.write(0, 8);
    twin.flush();
    twin.request(Op::Write, 1, 1);
    assert_eq!(twin.drive.counters().host_senses, 1);
    twin.request(Op::Write, 100 * 8, 1);
    assert_eq!(twin.drive.counters().host_senses, 1, "nothing to read where nothing was written");
}

#[test]
fn two_drives_in_one_process_do_not_disturb_each_other() {
    let run = |other: bool| {
        let mut twin = Twin::new(&profile());
        let mut second = Twin::new(&profile());
        twin.write_all();
        if other {
            second.write_random(1000, 5);
        }
        twin.write_random(3000, 1);
        (twin.drive.now(), *twin.drive.counters())
    };
    assert_eq!(run(false), run(true));
}

/// One step of a random sequence.
#[derive(Clone, Debug)]
enum Step {
    Submit { op: Op, lba: u64, blocks: u32 },
    Reap,
    Rest(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        6 => Just(Op::Write), 3 => Just(Op::Read), 1 => Just(Op::Trim), 1 => Just(Op::Flush)
    ];
    let submit = (op, 0..9_000_u64, 1..600_u32).prop_map(|(op, lba, blocks)| Step::Submit {
        op,
        lba: lba * 8,
        blocks,
    });
    let step = prop_oneof![
        8 => submit, 4 => Just(Step::Reap), 1 => (0..5_000_000_u64).prop_map(Step::Rest)
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn after_every_step_the_maps_agree_and_no_request_is_lost(steps in steps(), seed in 0..8_u64) {
        let mut drive = Ssd::new(&profile(), 0);
        // Start full, so that the first write already requires collection.
        let mut twin = Twin { drive };
        twin.write_all();
        twin.write_random(20_000, seed);
        drive = twin.drive;
        let capacity = drive.capacity_bytes() / 512;
        let (mut in_flight, mut submitted, mut returned) = (Vec::new(), 0_u64, 0_u64);
        let mut last = Nanos::ZERO;
        for step in steps {
            match step {
                Step::Submit { op, lba, blocks } if lba + u64::from(blocks) <= capacity => {
                    let blocks = if op == Op::Flush { 0 } else { blocks };
                    let lba = Lba::new(lba);
                    let request = Request::new(submitted, op, lba, blocks);
                    drive.submit(request).unwrap();
                    in_flight.push(submitted);
                    submitted += 1;
                }
                Step::Submit { .. } => {}
                step => {
                    let wait = match step {
                        Step::Rest(nanos) => Wait::Until(drive.now() + Nanos::new(nanos)),
                        _ => Wait::One,
                    };
                    let mut done = Vec::new();
                    drive.reap(wait, &mut done).unwrap();
                    for completion in done {
                        prop_assert!(completion.submitted <= completion.completed);
                        prop_assert!(last <= completion.completed, "completions in order of time");
                        prop_assert!(completion.completed <= drive.now());
                        last = completion.completed;
                        let place = in_flight.iter().position(|id| *id == completion.id);
                        in_flight.swap_remove(place.expect("each request completes once"));
                        returned += 1;
                    }
                }
            }
            drive.assert_consistent();
        }
        while !in_flight.is_empty() {
            let mut done = Vec::new();
            drive.reap(Wait::One, &mut done).unwrap();
            returned += done.len() as u64;
            in_flight.retain(|id| done.iter().all(|completion| completion.id != *id));
        }
        prop_assert_eq!(submitted, returned);
    }
}

#[test]
fn the_same_requests_take_the_same_time_again() {
    let run = || {
        let mut twin = Twin::new(&profile());
        let mut random = Random::new(4, "test");
        let mut times = Vec::new();
        for _ in 0..2000 {
            let unit = random.below(twin.units() - 16);
            times.push(if random.below(3) == 0 { twin.read(unit, 4) } else { twin.write(unit, 2) });
        }
        times
    };
    assert_eq!(run(), run());
}

#[test]
fn the_latency_of_reads_follows_from_the_geometry() {
    let mut twin = Twin::new(&profile());
    twin.write_all();
    twin.flush();
    // Overhead 20 us, tR 50 us, 4 KiB at 400 MB/s on the channel and at 1000 MB/s on the link.
    let by_hand = Nanos::new(20_000 + 50_000 + 10_240 + 4_096);
    assert_eq!(twin.read(0, 1), by_hand);
    // One multi-plane page of 32 KiB: one sense, one transfer, and the link follows the channel by
    // a unit.
    let by_hand = Nanos::new(20_000 + 50_000 + 8 * 10_240 + UNIT);
    assert_eq!(twin.read(80, 8), by_hand);
    // Four pages on four dies of two channels: senses in parallel, two transfers per channel. The
    // link follows the first channel closely; the second one's last page waits for it.
    let channel = 8 * 10_240;
    let by_hand = Nanos::new(20_000 + 50_000 + 2 * channel + UNIT + 8 * UNIT);
    assert_eq!(twin.read(160, 32), by_hand);
}

#[test]
fn a_stream_can_be_renewed_any_number_of_times() {
    let line = "[buffer]";
    let streams = "placement = \"streams\"\nstreams = 2\n[buffer]";
    let mut twin = Twin::new(&profile_with(line, streams));
    let whole = twin.drive.stream_room(0);
    assert!(!twin.drive.renew_stream(0), "nothing of it is used");
    for turn in 0..500 {
        twin.write(turn % 40, 1);
        assert!(twin.drive.stream_room(0) < whole);
        assert!(twin.drive.renew_stream(0));
        assert_eq!((twin.drive.stream_room(0), twin.drive.stream_room(1)), (whole, whole));
        assert!(!twin.drive.renew_stream(0) && !twin.drive.renew_stream(2));
        twin.drive.assert_consistent();
    }
    assert_eq!(twin.drive.mapped_units(), 40);
    assert!(twin.drive.counters().erases > 0, "what is left is collected");
    assert!(twin.drive.counters().collection_moves < 500, "and costs little");
}
