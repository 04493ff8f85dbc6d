//! The amplification of writes to a fixed area depends on the earlier writes to the drive.

use crate::simulation::{Drive, Simulation, compare, uniform};

/// Random writes into 40 of 477 GiB, after random writes to the whole drive.
///
/// Units are pages of 8 KiB, superblocks are blocks of 128; scaled down from 62.5 million units.
struct Case {
    spare: f64,
    /// The share of the visible capacity: 40 of 477 GiB, or of 477 GiB less the additional spare.
    area: f64,
    /// Drive writes before, and the result of an independent simulation of 8192 superblocks.
    simulated: [(f64, f64); 4],
}

const CASES: [Case; 2] = [
    Case {
        spare: 0.068_48,
        area: 0.083_87,
        simulated: [(0.0, 1.3104), (0.2, 8.15), (1.0, 9.1), (2.0, 9.0941)],
    },
    Case {
        spare: 0.2724,
        area: 0.107_37,
        simulated: [(0.0, 1.0078), (0.2, 1.10), (1.0, 2.35), (2.0, 2.3888)],
    },
];

fn amplification(case: &Case, overwrites: f64) -> f64 {
    let ftl = "relocation = \"mixed\"";
    let drive = Drive { units: 128, superblocks: 4096, spare: case.spare, ftl };
    let mut sim = Simulation::filled(&drive.profile(), 1);
    let logical = sim.study.logical_units();
    sim.write(sim.writes(overwrites), &mut uniform(logical));
    let area = (f64::from(logical) * case.area) as u32;
    sim.write(sim.writes(0.75), &mut uniform(area));
    let writes = sim.writes(0.75);
    sim.count(|sim| sim.write(writes, &mut uniform(area))).amplification()
}

#[test]
fn amplification_in_a_small_area_depends_on_earlier_writes_to_the_whole_drive() {
    for case in &CASES {
        for (overwrites, simulated) in case.simulated {
            let label = format!(
                "greedy, {:.0} % of the drive after {overwrites} overwrites | 128 | {:.2} %",
                case.area * 100.0,
                case.spare * 100.0
            );
            // After a fifth of a drive write, few units are invalid in any superblock. The valid
            // count of the emptiest depends on the number of superblocks (7.92 with 2048, 8.24
            // with 8192).
            let tolerance = if (0.1..0.5).contains(&overwrites) { 0.03 } else { 0.01 };
            compare(&label, simulated, amplification(case, overwrites), tolerance);
        }
    }
}

#[test]
fn an_erased_drive_with_more_spare_has_a_ninth_of_the_amplification_of_an_aged_one() {
    let [aged, erased] = [amplification(&CASES[0], 2.0), amplification(&CASES[1], 0.0)];
    assert!((8.5..9.5).contains(&(aged / erased)), "{aged} to {erased}");
    let erased_only = amplification(&CASES[0], 0.0);
    assert!(aged / erased_only > 6.5, "erasing alone: {aged} to {erased_only}");
}
