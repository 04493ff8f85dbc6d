//! Uniform random writes: each policy against its closed form, over spares and superblock sizes.

use crate::life::{Drive, Life, RESERVE, compare, uniform};
use crate::theory::{d_choices, fifo, greedy, random};

/// What a drive's size and the length of a run leave of chance.
const TOLERANCE: f64 = 0.005;

/// Where victims are drawn at random, or are few and large, and the run is shorter.
const TOLERANCE_OF_CHANCE: f64 = 0.01;

const SPARES: [f64; 7] = [0.05, 0.07, 0.10, 0.20, 0.28, 0.40, 0.50];

/// Fills a drive, writes at random until its past no longer shows, and compares.
fn compare_uniform(policy: &str, drive: Drive, theory: impl Fn(f64) -> f64) {
    let mut life = Life::filled(&drive.profile(), 1);
    compare_life(policy, drive, (&mut life, 8.0, TOLERANCE), theory);
}

fn compare_life(
    policy: &str,
    drive: Drive,
    (life, counted, tolerance): (&mut Life, f64, f64),
    theory: impl Fn(f64) -> f64,
) {
    let logical = life.study.logical_units();
    let count = life.steady(12.0, counted, &mut uniform(logical));
    let alpha = count.alpha(drive.units, f64::from(logical));
    let what = format!("{policy} | {} | {:.1} %", drive.units, drive.spare * 100.0);
    compare(&what, theory(alpha), count.amplification(), tolerance);
}

const GREEDY: &str = "relocation = \"mixed\"";

fn greedy_at_all_spares(units: u32, superblocks: u32) {
    for spare in SPARES {
        let drive = Drive { units, superblocks, spare, rules: GREEDY };
        compare_uniform("greedy", drive, |alpha| greedy(alpha, units));
    }
}

#[test]
fn greedy_with_superblocks_of_64_units_is_the_mean_field() {
    greedy_at_all_spares(64, 4096);
}

#[test]
fn greedy_with_superblocks_of_128_units_is_the_mean_field() {
    greedy_at_all_spares(128, 2048);
}

#[test]
fn greedy_with_superblocks_of_256_units_is_the_mean_field() {
    greedy_at_all_spares(256, 1024);
}

#[test]
fn greedy_with_large_superblocks_over_many_dies_is_the_mean_field() {
    let flash = "channels = 4\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";
    for (spare, rules) in [(0.07, "chunk = \"32 KiB\""), (0.28, "chunk = \"4 KiB\"")] {
        let drive = Drive { units: 4096, superblocks: 256, spare, rules };
        let mut life = Life::filled(&drive.profile_on(flash, 64), 1);
        compare_life("greedy, apart, 8 dies", drive, (&mut life, 3.0, TOLERANCE), |alpha| {
            greedy(alpha, 4096)
        });
        life.study.assert_consistent();
    }
}

#[test]
fn fifo_and_choices_with_large_superblocks_over_many_dies_are_their_closed_forms() {
    let flash = "channels = 4\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";
    for spare in [0.07, 0.28] {
        let drive = Drive { units: 4096, superblocks: 256, spare, rules: "victim = \"fifo\"" };
        let mut life = Life::filled(&drive.profile_on(flash, 64), 1);
        compare_life("fifo, apart, 8 dies", drive, (&mut life, 3.0, TOLERANCE), fifo);
        let drive = Drive { rules: "victim = \"d-choices\"", ..drive };
        let mut life = Life::filled(&drive.profile_on(flash, 64), 1);
        let theory = |alpha| d_choices(alpha, 4096, 10);
        compare_life(
            "10 choices, apart, 8 dies",
            drive,
            (&mut life, 6.0, TOLERANCE_OF_CHANCE),
            theory,
        );
    }
}

#[test]
fn fifo_is_lamberts_w_at_any_superblock_size() {
    for spare in SPARES {
        let rules = "victim = \"fifo\"\nrelocation = \"mixed\"";
        compare_uniform("fifo", Drive { units: 128, superblocks: 2048, spare, rules }, fifo);
    }
    let rules = "victim = \"fifo\"";
    for (units, superblocks) in [(32, 8192), (64, 4096), (512, 1024)] {
        let drive = Drive { units, superblocks, spare: 0.1, rules };
        compare_uniform("fifo, apart", drive, fifo);
    }
}

#[test]
fn a_random_victim_costs_one_over_the_spare() {
    for spare in SPARES {
        let rules = "victim = \"random\"\nrelocation = \"mixed\"";
        let drive = Drive { units: 32, superblocks: 8192, spare, rules };
        let mut life = Life::filled(&drive.profile(), 1);
        // Chance alone makes victims differ as much as their gain: only many of them, 330,000,
        // bring the mean within a fifth of a percent (one standard deviation).
        let long = [0.07, 0.28, 0.50].contains(&spare);
        let (counted, tolerance) =
            if long { (40.0, TOLERANCE) } else { (16.0, TOLERANCE_OF_CHANCE) };
        compare_life("random", drive, (&mut life, counted, tolerance), random);
    }
}

#[test]
fn a_few_choices_are_the_mean_field_of_van_houdt() {
    for (choices, rules) in [
        (2, "victim = \"d-choices\"\nchoices = 2\nrelocation = \"mixed\""),
        (3, "victim = \"d-choices\"\nchoices = 3\nrelocation = \"mixed\""),
        (10, "victim = \"d-choices\"\nchoices = 10\nrelocation = \"mixed\""),
    ] {
        for spare in SPARES {
            let drive = Drive { units: 128, superblocks: 2048, spare, rules };
            let policy = format!("{choices} choices");
            let mut life = Life::filled(&drive.profile(), 1);
            let theory = |alpha| d_choices(alpha, 128, choices);
            let long = [0.07, 0.28].contains(&spare);
            let (counted, tolerance) =
                if long { (24.0, TOLERANCE) } else { (10.0, TOLERANCE_OF_CHANCE) };
            compare_life(&policy, drive, (&mut life, counted, tolerance), theory);
        }
    }
}

#[test]
fn moving_units_apart_changes_nothing_where_all_are_alike() {
    for rules in ["victim = \"greedy\"", "victim = \"d-choices\"\nchoices = 10"] {
        let drive = Drive { units: 128, superblocks: 2048, spare: 0.07, rules };
        let (policy, choices) = if rules.contains("choices") {
            ("10 choices, apart", Some(10))
        } else {
            ("greedy, apart", None)
        };
        compare_uniform(policy, drive, |alpha| match choices {
            Some(choices) => d_choices(alpha, 128, choices),
            None => greedy(alpha, 128),
        });
    }
}

#[test]
fn collection_holds_the_reserve_and_one_superblock_more() {
    for (rules, spare, slack) in [
        ("relocation = \"mixed\"", 0.07, 0.05),
        ("relocation = \"mixed\"\nvictim = \"fifo\"", 0.28, 0.05),
        ("relocation = \"separate\"", 0.07, 0.05),
        ("relocation = \"separate\"", 0.28, 0.5),
    ] {
        let drive = Drive { units: 128, superblocks: 1024, spare, rules };
        let mut life = Life::filled(&drive.profile(), 1);
        let logical = life.study.logical_units();
        let count = life.steady(10.0, 5.0, &mut uniform(logical));
        let held = f64::from(drive.superblocks) - count.superblocks_in_use;
        let most = f64::from(RESERVE + 1) + slack;
        assert!((f64::from(RESERVE + 1) - 0.01..most).contains(&held), "{rules}: {held} are held");
    }
}

#[test]
fn collection_into_the_hosts_own_pages_keeps_up_whatever_the_chunk() {
    let flash = "channels = 4\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"";
    for (spare, rules) in [
        (0.28, "relocation = \"mixed\"\nchunk = \"4 KiB\""),
        (0.28, "relocation = \"mixed\"\nchunk = \"16 KiB\""),
        (0.10, "relocation = \"mixed\"\nchunk = \"4 KiB\"\nvictim = \"random\""),
    ] {
        let drive = Drive { units: 1024, superblocks: 128, spare, rules };
        let mut life = Life::filled(&drive.profile_on(flash, 16), 1);
        let logical = life.study.logical_units();
        let count = life.steady(4.0, 4.0, &mut uniform(logical));
        let held = f64::from(drive.superblocks) - count.superblocks_in_use;
        // Less than two would be a drive that collects only when nothing else is left.
        let least = if rules.contains("random") { 1.0 } else { 2.5 };
        assert!((least..3.1).contains(&held), "{rules}: {held} superblocks are held");
        life.study.assert_consistent();
    }
}
