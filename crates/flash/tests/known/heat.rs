//! Hot and cold data: closed form, published simulations, and the gain from separate relocation.

use crate::simulation::{Count, Drive, Simulation, compare, hot_and_cold_units, uniform};
use crate::theory::{fifo_mixed, hot_and_cold};

/// Stride of the hot units, and their share of the writes.
const MIXTURES: [(u32, f64); 3] = [(5, 0.8), (10, 0.9), (20, 0.95)];

fn steady(drive: Drive, (stride, writes): (u32, f64)) -> (Count, f64) {
    let mut sim = Simulation::filled(&drive.profile(), 1);
    let logical = sim.study.logical_units();
    // Cold units mix slowly, only when they are collected: start from the mixed state.
    sim.program_flash(6.0, &mut uniform(logical));
    let count = sim.steady(20.0, 10.0, &mut hot_and_cold_units(logical, stride, writes));
    let alpha = count.alpha(drive.units, f64::from(logical));
    (count, alpha)
}

fn label(policy: &str, drive: &Drive, (stride, writes): (u32, f64)) -> String {
    let (space, writes) = (100.0 / f64::from(stride), writes * 100.0);
    let Drive { units, spare, .. } = drive;
    format!("{policy}, {writes:.0} % on {space:.0} % | {units} | {:.2} %", spare * 100.0)
}

#[test]
fn fifo_with_hot_and_cold_data_follows_the_mixture_form() {
    let ftl = "victim = \"fifo\"\nrelocation = \"mixed\"";
    for spare in [0.07, 0.28] {
        for mixture in MIXTURES {
            let drive = Drive { units: 128, superblocks: 2048, spare, ftl };
            let (count, alpha) = steady(drive, mixture);
            let regions = hot_and_cold(1.0 / f64::from(mixture.0), mixture.1);
            let label = label("fifo", &drive, mixture);
            compare(&label, fifo_mixed(alpha, &regions), count.amplification(), 0.01);
        }
    }
}

#[test]
fn greedy_with_hot_and_cold_data_agrees_with_an_independent_simulator() {
    // ftlsim by Desnoyers: 16384 superblocks of 128 units, 16 of them in reserve, one frontier.
    const FTLSIM: [(f64, [f64; 3]); 4] = [
        (0.07, [7.393, 8.101, 9.252]),
        (0.10, [5.396, 6.070, 7.032]),
        (0.20, [3.000, 3.513, 4.028]),
        (0.28, [2.301, 2.709, 3.046]),
    ];
    for (spare, row) in FTLSIM {
        for (mixture, simulated) in MIXTURES.into_iter().zip(row) {
            let ftl = "relocation = \"mixed\"";
            let drive = Drive { units: 128, superblocks: 2048, spare, ftl };
            let (count, _) = steady(drive, mixture);
            compare(&label("greedy", &drive, mixture), simulated, count.amplification(), 0.02);
        }
    }
}

/// The amplification with separate relocation, if 95 % of the writes go to 5 % of the units.
fn separate(policy: &str, ftl: &'static str, spare: f64, simulated: f64, tolerance: f64) -> f64 {
    let drive = Drive { units: 128, superblocks: 2048, spare, ftl };
    let mixture = MIXTURES[2];
    let (count, _) = steady(drive, mixture);
    let label = label(&format!("{policy}, apart"), &drive, mixture);
    compare(&label, simulated, count.amplification(), tolerance);
    count.amplification()
}

#[test]
fn separate_relocation_helps_cost_benefit_and_d_choices_more_than_greedy_and_fifo() {
    // An independent simulation (8192 superblocks of 128 units, 4 in reserve). Its cost-benefit
    // examines 64 random superblocks; ours examines all and finds better victims. With the same
    // limit, ours gives 3.08 and 1.26.
    for (spare, [greedy, fifo, choices, benefit]) in
        [(0.0685, [8.38, 9.64, 3.74, 3.09]), (0.2724, [2.54, 3.16, 1.42, 1.21])]
    {
        let benefit = separate("cost-benefit", "victim = \"cost-benefit\"", spare, benefit, 0.12);
        let choices = separate("10 choices", "victim = \"d-choices\"", spare, choices, 0.05);
        let greedy = separate("greedy", "victim = \"greedy\"", spare, greedy, 0.05);
        let fifo = separate("fifo", "victim = \"fifo\"", spare, fifo, 0.02);
        assert!(benefit < choices && choices < greedy && greedy < fifo);
    }
}
