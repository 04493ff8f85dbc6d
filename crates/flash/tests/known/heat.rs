//! Hot and cold units: closed form, simulations by others, and what moving units apart is worth.

use crate::life::{Count, Drive, Life, compare, hot_and_cold_units, uniform};
use crate::theory::{fifo_mixed, hot_and_cold};

/// One unit in so many is hot, and those take this share of the writes.
const MIXTURES: [(u32, f64); 3] = [(5, 0.8), (10, 0.9), (20, 0.95)];

fn steady(drive: Drive, (stride, writes): (u32, f64)) -> (Count, f64) {
    let mut life = Life::filled(&drive.profile(), 1);
    let logical = life.study.logical_units();
    // Cold units spread over all superblocks only as fast as those are collected: start from there.
    life.turn_over(6.0, &mut uniform(logical));
    let count = life.steady(20.0, 10.0, &mut hot_and_cold_units(logical, stride, writes));
    let alpha = count.alpha(drive.units, f64::from(logical));
    (count, alpha)
}

fn name(policy: &str, drive: &Drive, (stride, writes): (u32, f64)) -> String {
    let (space, writes) = (100.0 / f64::from(stride), writes * 100.0);
    let Drive { units, spare, .. } = drive;
    format!("{policy}, {writes:.0} % on {space:.0} % | {units} | {:.2} %", spare * 100.0)
}

#[test]
fn fifo_under_hot_and_cold_is_the_mixture_form() {
    let rules = "victim = \"fifo\"\nrelocation = \"mixed\"";
    for spare in [0.07, 0.28] {
        for mixture in MIXTURES {
            let drive = Drive { units: 128, superblocks: 2048, spare, rules };
            let (count, alpha) = steady(drive, mixture);
            let regions = hot_and_cold(1.0 / f64::from(mixture.0), mixture.1);
            let what = name("fifo", &drive, mixture);
            compare(&what, fifo_mixed(alpha, &regions), count.amplification(), 0.01);
        }
    }
}

#[test]
fn greedy_under_hot_and_cold_is_what_an_independent_simulator_finds() {
    // ftlsim by Desnoyers: 16384 superblocks of 128 units, 16 of them in reserve, one frontier.
    const FTLSIM: [(f64, [f64; 3]); 4] = [
        (0.07, [7.393, 8.101, 9.252]),
        (0.10, [5.396, 6.070, 7.032]),
        (0.20, [3.000, 3.513, 4.028]),
        (0.28, [2.301, 2.709, 3.046]),
    ];
    for (spare, row) in FTLSIM {
        for (mixture, simulated) in MIXTURES.into_iter().zip(row) {
            let rules = "relocation = \"mixed\"";
            let drive = Drive { units: 128, superblocks: 2048, spare, rules };
            let (count, _) = steady(drive, mixture);
            compare(&name("greedy", &drive, mixture), simulated, count.amplification(), 0.02);
        }
    }
}

/// 5 % of the space takes 95 % of the writes; what collection moves goes to its own superblock.
fn apart(policy: &str, rules: &'static str, spare: f64, simulated: f64, tolerance: f64) -> f64 {
    let drive = Drive { units: 128, superblocks: 2048, spare, rules };
    let mixture = MIXTURES[2];
    let (count, _) = steady(drive, mixture);
    let what = name(&format!("{policy}, apart"), &drive, mixture);
    compare(&what, simulated, count.amplification(), tolerance);
    count.amplification()
}

#[test]
fn moving_apart_is_worth_much_to_cost_benefit_and_choices_and_little_to_greedy_and_fifo() {
    // An independent simulation (8192 superblocks of 128 units, 4 in reserve). Its cost-benefit
    // looks at 64 superblocks picked at random where ours looks at all: ours finds better victims.
    // So limited, ours gives 3.08 and 1.26.
    for (spare, [greedy, fifo, choices, benefit]) in
        [(0.0685, [8.38, 9.64, 3.74, 3.09]), (0.2724, [2.54, 3.16, 1.42, 1.21])]
    {
        let benefit = apart("cost-benefit", "victim = \"cost-benefit\"", spare, benefit, 0.12);
        let choices = apart("10 choices", "victim = \"d-choices\"", spare, choices, 0.05);
        let greedy = apart("greedy", "victim = \"greedy\"", spare, greedy, 0.05);
        let fifo = apart("fifo", "victim = \"fifo\"", spare, fifo, 0.02);
        assert!(benefit < choices && choices < greedy && greedy < fifo);
    }
}
