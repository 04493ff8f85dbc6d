//! The SLC cache: fast until it is full, folded in idle time, without losing data.

use crate::small::{Twin, profile, profile_with};
use ssdlab_device::Device;
use ssdlab_flash::{Profile, SuperblockState};
use ssdlab_time::{Nanos, Random};

/// The small drive with an SLC cache of 8 MiB and a tPROG of 100 us instead of 700.
fn slc_profile(lines: &str) -> Profile {
    profile_with("[buffer]", &slc_and_buffer(lines))
}

/// The section of the cache, and the header of the next section.
fn slc_and_buffer(lines: &str) -> String {
    format!("[slc]\nsize = \"8 MiB\"\nprogram = \"100 us\"\n{lines}\n[buffer]")
}

/// The write rates of consecutive MiB from a unit on, in MiB/s.
fn rates(twin: &mut Twin, from: u64, mib: u64) -> Vec<f64> {
    let rate = |mib| {
        let start = twin.drive.now();
        for part in 0..4 {
            twin.write((from + (mib * 256) + part * 64) % twin.units(), 64);
        }
        1.0 / (twin.drive.now() - start).as_secs_f64()
    };
    (0..mib).map(rate).collect()
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[test]
fn writes_are_fast_until_the_cache_is_full_and_fast_again_after_idle_time() {
    for mode in ["static", "dynamic"] {
        let mut twin = Twin::new(&slc_profile(&format!("mode = \"{mode}\"")));
        let first = rates(&mut twin, 0, 24);
        // The first MiB goes to the buffer, the next to the cache, the last to the other flash.
        let (fast, slow) = (median(&first[2..6]), median(&first[14..]));
        assert!(fast > 3.0 * slow, "{mode}: with cache {fast}, without {slow} MiB/s");
        assert_eq!(twin.drive.counters().folding_moves, 0, "{mode}: folding waits for idle time");
        twin.rest(Nanos::from_secs(20));
        let again = rates(&mut twin, 24 * 256, 8);
        assert!(median(&again[2..6]) > 0.8 * fast, "{mode}: {again:?}");
        let counters = twin.drive.counters();
        assert!(counters.folding_moves >= 7 * 256, "{mode}: {counters:?}");
        twin.drive.assert_consistent();
    }
}

#[test]
fn folding_programs_units_twice_and_writes_are_counted_by_cause() {
    let mut twin = Twin::new(&slc_profile(""));
    for part in 0..24 {
        twin.write(part * 64, 64);
    }
    twin.flush();
    twin.rest(Nanos::from_secs(20));
    twin.write(0, 1);
    let counters = *twin.drive.counters();
    assert_eq!(counters.nand_host_writes, 1536);
    assert!((1024..=1536).contains(&counters.folding_moves), "whole superblocks: {counters:?}");
    let sum = counters.nand_host_writes
        + counters.nand_folding_writes
        + counters.nand_collection_writes
        + counters.nand_padding_writes;
    assert_eq!(sum, counters.nand_writes());
}

#[test]
fn reads_from_the_cache_have_the_tr_of_the_cache() {
    let mut twin = Twin::new(&slc_profile("read = \"20 us\""));
    twin.write(0, 64);
    twin.flush();
    twin.rest(Nanos::from_secs(1));
    // 20 us for the command, tR, 10.24 us on the channel, 4.1 us on the link.
    let cached = twin.read(0, 1);
    assert!((54..=55).contains(&(cached.get() / 1000)), "{cached}");
    for part in 0..48 {
        twin.write(64 + part * 64, 64);
    }
    twin.rest(Nanos::from_secs(30));
    twin.flush();
    twin.rest(Nanos::from_secs(1));
    let folded = twin.read(0, 1);
    assert_eq!(folded - cached, Nanos::from_micros(30), "tR of 50 us after folding");
}

#[test]
fn a_dynamic_cache_shrinks_as_the_drive_fills_and_a_static_one_does_not() {
    let cached = |mode: &str, full: u64| {
        let mut twin = Twin::new(&slc_profile(&format!("mode = \"{mode}\"")));
        let units = full * twin.units() / 100 / 64 * 64;
        for unit in (0..units).step_by(64) {
            twin.write(unit, 64);
        }
        let mut random = Random::new(1, "test");
        for _ in 0..2 * units {
            twin.write(random.below(units), 1);
        }
        twin.rest(Nanos::from_secs(60));
        let rates = rates(&mut twin, 0, 12);
        twin.drive.assert_consistent();
        let fast = rates.iter().copied().fold(0.0, f64::max);
        rates[1..].iter().filter(|rate| **rate > 0.5 * fast).count()
    };
    assert!(
        cached("dynamic", 30) > cached("dynamic", 100) + 2,
        "free superblocks extend a dynamic cache"
    );
    assert!(cached("static", 100) >= 6, "a full drive keeps its static cache");
}

#[test]
fn a_full_drive_with_a_cache_accepts_writes_in_all_modes() {
    let while_writing = "dynamic\"\nfolding = \"while writing";
    for mode in ["static", "dynamic", while_writing] {
        for (relocation, pacing) in [("separate", "unit"), ("mixed", "unit"), ("mixed", "victim")] {
            // The lines before `[slc]` belong to `[ftl]`.
            let slc = slc_and_buffer(&format!("mode = \"{mode}\""));
            let how = format!("relocation = \"{relocation}\"\npacing = \"{pacing}\"");
            let lines = format!("{how}\n{slc}");
            let mut twin = Twin::new(&profile_with("[buffer]", &lines));
            twin.write_all();
            for round in 0..20 {
                twin.write_random(twin.units() / 8, round);
                if round % 3 == 0 {
                    twin.rest(Nanos::from_secs(round % 2));
                }
                if round % 4 == 0 {
                    twin.flush();
                }
                if round % 5 == 4 {
                    let now = twin.drive.now();
                    twin.drive.power_cut(now + Nanos::from_micros(200 * round));
                }
                twin.drive.assert_consistent();
            }
            let folded = twin.drive.counters().folding_moves;
            assert!(folded > 1000, "{mode}, {relocation}: {folded} units were folded");
            let waf = twin.drive.counters().waf().unwrap();
            assert!((1.3..6.0).contains(&waf), "{mode}, {relocation}: {waf}");
        }
    }
}

#[test]
fn a_static_cache_does_not_count_as_spare() {
    let with = slc_profile("");
    let without = profile();
    assert!((with.spare() - without.spare()).abs() < 1e-9);
    let superblocks = with.geometry.blocks_per_plane - without.geometry.blocks_per_plane;
    // Blocks of 16 pages hold 5 at one bit per cell: 4 dies x 32 KiB x 5 = 640 KiB per superblock.
    assert_eq!(superblocks, 13, "8 MiB in superblocks of 640 KiB");
    let twin = Twin::new(&with);
    let superblocks = twin.drive.superblocks();
    let free = superblocks.iter().filter(|each| each.state == SuperblockState::Free).count();
    assert_eq!(free as u32, with.geometry.blocks_per_plane - 2);
}

/// The mean write rate of a range of MiB, given the rate of each, in MiB/s.
fn mean(rates: &[f64], mib: std::ops::Range<usize>) -> f64 {
    mib.len() as f64 / mib.map(|each| 1.0 / rates[each]).sum::<f64>()
}

/// A cache of a third of the capacity, filled and overwritten in order: its rates in MiB/s at the
/// speed of the cache, of direct writes, of folding, and of overwrites of the full drive.
fn steps(folding: &str) -> [f64; 4] {
    let lines = format!("mode = \"dynamic\"\nfolding = \"{folding}\"");
    let slc = slc_and_buffer(&lines).replace("8 MiB", "21 MiB");
    let mut twin = Twin::new(&profile_with("[buffer]", &slc));
    let rates = rates(&mut twin, 0, 128);
    twin.drive.assert_consistent();
    let steps = [6..20, 24..34, 40..62, 90..128].map(|mib| mean(&rates, mib));
    println!("slc: {folding}: {steps:.1?} MiB/s");
    steps
}

#[test]
fn a_drive_filled_in_one_go_has_three_speeds_if_its_cache_is_folded_while_writing() {
    // The 4 dies program pages of 32 KiB. A superblock has 16 pages of each die, 5 in the cache.
    let rate = |us: f64| 4.0 * 32.0 / 1024.0 / (us * 1e-6);
    // tPROG is 100 us in the cache and 700 us outside, tR 50 us, tBERS 3 ms. In the cache, the
    // channels are the limit: 2 x 400 MB/s. Then each page takes its own program.
    let (cached, direct) = (2.0 * 400e6 / f64::from(1 << 20), rate(700.0));
    // 1 page in the cache takes up 16 / 5 pages of flash. Folding a superblock programs 5 pages and
    // frees 16, so a page of the host requires folding of 16 / (16 - 5) pages: a sense and a
    // program each, and one erase for 5 of them.
    let moved = 16.0 / 11.0;
    let folding = rate(100.0 + moved * (50.0 + 700.0 + 3000.0 / 5.0));
    // On the full drive each page is folded once, and overwritten superblocks have nothing valid.
    let lasting = rate(100.0 + 50.0 + 700.0 + 3000.0 / 5.0 + 3000.0 / 16.0);
    let measured = steps("while writing");
    for (expected, rate) in [cached, direct, folding, lasting].into_iter().zip(measured) {
        assert!((rate / expected - 1.0).abs() < 0.03, "{expected} by hand, {measured:?} MiB/s");
    }
}

#[test]
fn a_cache_folded_in_idle_time_slows_the_host_down_only_as_far_as_it_needs_room() {
    let ([cached, direct, room, lasting], folding) = (steps("idle"), steps("while writing"));
    assert!((cached / folding[0] - 1.0).abs() < 0.01 && (direct / folding[1] - 1.0).abs() < 0.01);
    // By hand: a page of the host and 5 / 11 folded ones, without a program in the cache.
    let expected = 4.0 * 32.0 / 1024.0 / (700e-6 + 5.0 / 11.0 * 1350e-6);
    assert!((room / expected - 1.0).abs() < 0.06, "{expected} by hand, {room} MiB/s");
    assert!(room > 1.4 * folding[2] && lasting > 1.4 * folding[3], "{room}, {lasting}");
}

#[test]
fn padding_in_the_cache_requires_folding_as_data_does_and_evenly() {
    let lines = "mode = \"dynamic\"\nfolding = \"while writing\"";
    let slc = slc_and_buffer(lines).replace("8 MiB", "21 MiB");
    let mut twin = Twin::new(&profile_with("[buffer]", &slc));
    rates(&mut twin, 0, 42);
    let folded = |twin: &Twin| twin.drive.counters().folding_moves;
    let (before, mut most) = (folded(&twin), 0);
    for unit in 0..250 {
        let last = folded(&twin);
        twin.write(42 * 256 + unit, 1);
        twin.flush();
        most = most.max(folded(&twin) - last);
    }
    // Each flush fills a page of 8 units.
    let (moved, expected) = (folded(&twin) - before, 250.0 * 8.0 * 16.0 / 11.0);
    assert!((moved as f64 / expected - 1.0).abs() < 0.05, "{moved} folded, {expected} by hand");
    assert!(most < 40, "at most {most} units are folded at a time");
}
