//! Relocations in pace with the host, against victims that are emptied at once.

use ssdlab_flash::Profile;
use ssdlab_time::Random;

use crate::simulation::{Drive, Simulation};

/// Overwrites of the whole drive: this share in order, one unit at a time, the others at random.
fn in_order_and_random(units: u32, share: f64) -> impl FnMut(&mut Random) -> u32 {
    let mut next = 0;
    move |random| {
        if random.unit() >= share {
            return random.below(u64::from(units)) as u32;
        }
        next = if next + 1 == units { 0 } else { next + 1 };
        next
    }
}

fn profile(relocation: &str, pacing: &str) -> Profile {
    let ftl = format!("relocation = \"{relocation}\"\npacing = \"{pacing}\"");
    Drive { units: 128, superblocks: 512, spare: 0.07, ftl: &ftl }.profile()
}

/// Write amplification with relocation by unit, and with victims emptied at once.
fn by_pacing(relocation: &str, share: f64) -> (f64, f64) {
    let amplification = |pacing: &str| {
        let mut sim = Simulation::filled(&profile(relocation, pacing), 1);
        let logical = sim.study.logical_units();
        let count = sim.steady(8.0, 8.0, &mut in_order_and_random(logical, share));
        sim.study.assert_consistent();
        count.amplification()
    };
    let (unit, victim) = (amplification("unit"), amplification("victim"));
    let percent = share * 100.0;
    println!("pacing: | {percent:.0} % | {relocation} | {unit:.2} | {victim:.2} |");
    (unit, victim)
}

#[test]
fn pacing_changes_nothing_under_uniform_random_writes() {
    for relocation in ["mixed", "separate"] {
        let (unit, victim) = by_pacing(relocation, 0.0);
        assert!((victim / unit - 1.0).abs() < 0.02, "{relocation}: {unit} and {victim}");
    }
}

#[test]
fn mixed_with_the_hosts_writes_relocation_by_unit_costs_less_if_many_writes_are_in_order() {
    by_pacing("mixed", 0.5);
    by_pacing("mixed", 0.8);
    let (unit, victim) = by_pacing("mixed", 0.9);
    assert!((1.2..1.5).contains(&(victim / unit)), "by unit {unit}, at once {victim}");
}

#[test]
fn relocated_separately_victims_emptied_at_once_cost_less() {
    by_pacing("separate", 0.5);
    by_pacing("separate", 0.8);
    let (unit, victim) = by_pacing("separate", 0.9);
    assert!((0.7..0.9).contains(&(victim / unit)), "by unit {unit}, at once {victim}");
}

#[test]
fn a_victim_is_emptied_between_two_pages_of_the_host() {
    for (pacing, expected) in [("unit", 1..40), ("victim", 100..2000)] {
        let mut sim = Simulation::filled(&profile("separate", pacing), 1);
        let logical = sim.study.logical_units();
        let mut pattern = in_order_and_random(logical, 0.0);
        sim.program_flash(1.0, &mut pattern);
        let most = (0..1000).map(|_| {
            let before = sim.study.counters().collection_moves;
            sim.write(1, &mut pattern);
            sim.study.counters().collection_moves - before
        });
        let most = most.max().unwrap();
        assert!(expected.contains(&most), "{pacing}: {most} units at once");
    }
}
