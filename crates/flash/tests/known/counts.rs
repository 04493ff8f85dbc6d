//! Counts that must add up, and traffic whose cost is known without a steady state.

use crate::life::{Drive, Life, compare, uniform};
use crate::theory::{fifo, greedy, in_use};
use ssdlab_flash::Counters;

const DRIVE: Drive =
    Drive { units: 128, superblocks: 2048, spare: 0.07, rules: "relocation = \"mixed\"" };

#[test]
fn sequential_writing_costs_one_flash_write_each() {
    for rules in [
        "victim = \"greedy\"\nrelocation = \"mixed\"",
        "victim = \"greedy\"",
        "victim = \"fifo\"",
        "victim = \"cost-benefit\"",
    ] {
        let mut life = Life::filled(&Drive { superblocks: 256, rules, ..DRIVE }.profile(), 1);
        let count = life.count(|life| {
            for _ in 0..3 {
                (0..life.study.logical_units()).for_each(|unit| life.write_unit(unit));
            }
        });
        assert_eq!((count.moves, count.programs), (0, count.host), "{rules}");
        assert!(count.erases > 600, "three rounds erase most superblocks three times");
    }
}

/// What passes over all units in order cost after a life of random writes.
fn passes_after_random(rules: &'static str, passes: usize) -> Vec<f64> {
    let mut life = Life::filled(&Drive { superblocks: 1024, rules, ..DRIVE }.profile(), 1);
    let logical = life.study.logical_units();
    life.turn_over(10.0, &mut uniform(logical));
    let pass = |life: &mut Life| (0..logical).for_each(|unit| life.write_unit(unit));
    (0..passes).map(|_| life.count(pass).amplification()).collect()
}

#[test]
fn overwriting_in_order_heals_a_random_past_at_once_late_or_never() {
    // In order, a unit is due after as many writes as any other; whether it is then dead when its
    // superblock's turn comes depends on how often it is moved until then. So a drive can stay in
    // either state, and what is moved must be kept apart or chosen well to leave the bad one.
    for rules in ["victim = \"greedy\"", "victim = \"cost-benefit\""] {
        let passes = passes_after_random(rules, 3);
        assert!(passes[0] > 3.0 && passes[1] < 1.01 && passes[2] < 1.001, "{rules}: {passes:?}");
    }
    let mixed = passes_after_random("relocation = \"mixed\"", 14);
    // The first pass costs what random writes do (6.945): nothing is in order yet.
    assert!((6.0..7.0).contains(&mixed[0]) && mixed[3] > 1.5 && mixed[13] < 1.001, "{mixed:?}");
    let fifo = passes_after_random("victim = \"fifo\"", 8);
    assert!(fifo.iter().all(|pass| (6.5..7.5).contains(pass)), "{fifo:?}");
}

#[test]
fn trimming_a_share_of_the_requests_is_worth_the_spare_it_gives() {
    for (policy, rules) in
        [("greedy", DRIVE.rules), ("fifo", "victim = \"fifo\"\nrelocation = \"mixed\"")]
    {
        for trims in [0.05, 0.1, 0.2, 0.3] {
            let drive = Drive { rules, ..DRIVE };
            let mut life = Life::filled(&drive.profile(), 1);
            let mut mapped = Mapped::all(life.study.logical_units());
            let (skipped, counted) = (life.writes(8.0), life.writes(4.0));
            mapped.requests(&mut life, skipped, trims);
            let count = life.count(|life| mapped.requests(life, counted, trims));
            let logical = f64::from(life.study.logical_units());
            let share = mapped.units.len() as f64 / logical;
            assert!((share / in_use(trims) - 1.0).abs() < 0.01, "{share} of the units are in use");
            let alpha = count.alpha(drive.units, logical * in_use(trims));
            let theory = if policy == "greedy" { greedy(alpha, 128) } else { fifo(alpha) };
            let what = format!("{policy}, {:.0} % trims | 128 | 7.0 %", trims * 100.0);
            compare(&what, theory, count.amplification(), 0.01);
            life.study.assert_consistent();
        }
    }
}

/// The units in use, to pick one at random.
struct Mapped {
    units: Vec<u32>,
    /// Where each unit stands in `units`, if it does.
    position: Vec<Option<u32>>,
}

impl Mapped {
    fn all(count: u32) -> Self {
        Self { units: (0..count).collect(), position: (0..count).map(Some).collect() }
    }

    /// So many requests: a share trims a unit in use, the others write any unit.
    fn requests(&mut self, life: &mut Life, count: u64, trims: f64) {
        for _ in 0..count {
            if life.random.unit() < trims {
                let index = life.random.below(self.units.len() as u64) as usize;
                self.trim(life, index);
            } else {
                let unit = life.random.below(self.position.len() as u64) as u32;
                life.write_unit(unit);
                let position = &mut self.position[unit as usize];
                if position.is_none() {
                    *position = Some(self.units.len() as u32);
                    self.units.push(unit);
                }
            }
        }
    }

    fn trim(&mut self, life: &mut Life, index: usize) {
        let unit = self.units.swap_remove(index);
        self.position[unit as usize] = None;
        if let Some(moved) = self.units.get(index) {
            self.position[*moved as usize] = Some(index as u32);
        }
        life.study.trim(unit);
    }
}

#[test]
fn what_was_never_written_is_spare() {
    for filled in [0.9, 0.7] {
        let mut life = Life::new(&DRIVE.profile(), 1);
        let mapped = (f64::from(life.study.logical_units()) * filled) as u32;
        (0..mapped).for_each(|unit| life.study.write(unit));
        let count = life.steady(12.0, 8.0, &mut uniform(mapped));
        let alpha = count.alpha(DRIVE.units, f64::from(mapped));
        let what = format!("greedy, {:.0} % filled | 128 | 7.0 %", filled * 100.0);
        compare(&what, greedy(alpha, 128), count.amplification(), 0.005);
    }
}

#[test]
fn programs_are_what_the_host_wrote_and_what_was_moved_and_as_many_are_erased() {
    for rules in [
        "relocation = \"mixed\"",
        "victim = \"fifo\"",
        "victim = \"random\"",
        "victim = \"d-choices\"\nchoices = 3",
        "victim = \"cost-benefit\"",
    ] {
        let mut life = Life::filled(&Drive { superblocks: 512, rules, ..DRIVE }.profile(), 1);
        let logical = life.study.logical_units();
        for _ in 0..20 {
            let count = life.count(|life| life.write(3000, &mut uniform(logical)));
            assert_eq!(count.programs, count.host + count.moves, "{rules}");
            life.study.assert_consistent();
        }
        let count = life.steady(2.0, 10.0, &mut uniform(logical));
        assert_eq!(count.programs, count.host + count.moves, "{rules}");
        // The two ends may each cut a superblock of either stream and a victim.
        let (erased, programmed) = (count.erases * 128, count.programs);
        assert!(erased.abs_diff(programmed) <= 4 * 128, "{rules}: {erased}, {programmed}");
        life.study.assert_consistent();
    }
}

fn life_of(seed: u64, rules: &'static str) -> (Counters, f64) {
    let mut life = Life::filled(&Drive { superblocks: 1024, rules, ..DRIVE }.profile(), seed);
    let logical = life.study.logical_units();
    let count = life.steady(10.0, 15.0, &mut uniform(logical));
    (*life.study.counters(), count.amplification())
}

#[test]
fn a_seed_gives_one_life_and_another_seed_another_of_the_same_cost() {
    for rules in ["victim = \"greedy\"", "victim = \"d-choices\"\nchoices = 4"] {
        let (first, other) = (life_of(1, rules), life_of(2, rules));
        assert_eq!(first.0, life_of(1, rules).0, "{rules}");
        assert_ne!(first.0, other.0, "{rules}");
        assert!((first.1 / other.1 - 1.0).abs() < 0.005, "{rules}: {} and {}", first.1, other.1);
    }
}
