//! The closed forms against independently computed tables, and against each other.
//!
//! The tables were computed by other programs during the survey of the literature, and agree with
//! an independent simulation (ftlsim by Desnoyers) to four digits. They are rounded to 0.001.

use crate::theory::{
    Region, alpha, d_choices, fifo, fifo_mixed, fifo_split, greedy, hot_and_cold, in_use,
    lambert_w, random,
};

/// Spare; random; fifo; greedy with 64, 128, 256, 512, 1024 units.
const BY_SPARE: [[f64; 8]; 9] = [
    [0.05, 20.00, 10.172, 8.850, 9.460, 9.798, 9.982, 10.076],
    [0.07, 14.29, 7.318, 6.615, 6.945, 7.124, 7.219, 7.268],
    [0.10, 10.00, 5.179, 4.821, 4.992, 5.083, 5.130, 5.154],
    [0.12, 8.33, 4.348, 4.097, 4.217, 4.281, 4.314, 4.331],
    [0.20, 5.00, 2.693, 2.599, 2.645, 2.668, 2.681, 2.687],
    [0.25, 4.00, 2.201, 2.140, 2.170, 2.185, 2.193, 2.197],
    [0.28, 3.57, 1.992, 1.942, 1.967, 1.979, 1.985, 1.988],
    [0.40, 2.50, 1.480, 1.455, 1.467, 1.474, 1.477, 1.478],
    [0.50, 2.00, 1.255, 1.239, 1.247, 1.251, 1.253, 1.254],
];

/// Overprovisioning (hidden / visible); the same columns.
const BY_OVERPROVISIONING: [[f64; 8]; 9] = [
    [0.05, 21.00, 10.672, 9.196, 9.877, 10.259, 10.461, 10.566],
    [0.07, 15.29, 7.817, 7.010, 7.392, 7.597, 7.705, 7.761],
    [0.10, 11.00, 5.677, 5.247, 5.453, 5.562, 5.619, 5.648],
    [0.12, 9.33, 4.846, 4.531, 4.683, 4.763, 4.804, 4.825],
    [0.20, 6.00, 3.188, 3.053, 3.119, 3.153, 3.170, 3.179],
    [0.25, 5.00, 2.693, 2.599, 2.645, 2.668, 2.681, 2.687],
    [0.28, 4.57, 2.481, 2.403, 2.441, 2.461, 2.471, 2.476],
    [0.40, 3.50, 1.957, 1.910, 1.933, 1.945, 1.951, 1.954],
    [0.50, 3.00, 1.716, 1.681, 1.698, 1.707, 1.711, 1.714],
];

/// Spare; d = 1, 2, 3, 5, 10, 30, 100; superblocks of 128 units.
#[allow(clippy::approx_constant, reason = "3.142 is a write amplification")]
const BY_CHOICES: [[f64; 8]; 9] = [
    [0.05, 20.000, 13.587, 11.748, 10.512, 9.816, 9.528, 9.472],
    [0.07, 14.286, 9.810, 8.525, 7.663, 7.182, 6.987, 6.952],
    [0.10, 10.000, 6.941, 6.063, 5.474, 5.148, 5.019, 4.997],
    [0.12, 8.333, 5.817, 5.094, 4.611, 4.343, 4.238, 4.221],
    [0.20, 5.000, 3.556, 3.142, 2.866, 2.714, 2.656, 2.646],
    [0.25, 4.000, 2.876, 2.555, 2.340, 2.223, 2.178, 2.171],
    [0.28, 3.571, 2.585, 2.303, 2.116, 2.013, 1.974, 1.968],
    [0.40, 2.500, 1.861, 1.680, 1.561, 1.496, 1.472, 1.468],
    [0.50, 2.000, 1.529, 1.399, 1.313, 1.267, 1.250, 1.247],
];

/// Spare; fifo mixed and split, with 80 % of the writes on 20 % of the units, 90 on 10, 95 on 5.
const BY_HEAT: [[f64; 7]; 9] = [
    [0.05, 10.540, 6.759, 11.250, 4.112, 12.442, 2.520],
    [0.07, 7.682, 4.935, 8.358, 3.093, 9.422, 1.995],
    [0.10, 5.538, 3.571, 6.168, 2.336, 7.073, 1.612],
    [0.12, 4.704, 3.043, 5.305, 2.045, 6.121, 1.468],
    [0.20, 3.034, 1.998, 3.533, 1.481, 4.074, 1.201],
    [0.25, 2.533, 1.691, 2.974, 1.322, 3.393, 1.131],
    [0.28, 2.317, 1.563, 2.727, 1.257, 3.086, 1.103],
    [0.40, 1.775, 1.256, 2.068, 1.110, 2.268, 1.043],
    [0.50, 1.516, 1.129, 1.729, 1.053, 1.858, 1.021],
];

fn assert_close(label: &str, expected: f64, computed: f64, tolerance: f64) {
    let off = (computed - expected).abs();
    assert!(off < tolerance, "{label}: {computed:.4}, expected {expected}");
}

/// Compares computed values with printed ones, within one unit of the last digit.
fn assert_row<const N: usize>(label: &str, printed: &[f64], computed: [f64; N]) {
    for (printed, computed) in printed.iter().zip(computed) {
        assert_close(label, *printed, computed, 0.001);
    }
}

#[test]
fn random_fifo_and_greedy_agree_with_the_tables() {
    let by_spare = BY_SPARE.map(|row| (alpha(row[0]), row));
    let by_overprovisioning = BY_OVERPROVISIONING.map(|row| (1.0 + row[0], row));
    for (alpha, row) in by_spare.into_iter().chain(by_overprovisioning) {
        assert_close("random", row[1], random(alpha), 0.01);
        assert_row("fifo", &row[2..], [fifo(alpha)]);
        let greedy = [64, 128, 256, 512, 1024].map(|units| greedy(alpha, units));
        assert_row("greedy", &row[3..], greedy);
    }
}

#[test]
fn d_choices_agrees_with_the_table() {
    for row in BY_CHOICES {
        let computed = [1, 2, 3, 5, 10, 30, 100].map(|d| d_choices(alpha(row[0]), 128, d));
        assert_row("d-choices", &row[1..], computed);
    }
}

#[test]
fn fifo_with_hot_and_cold_data_agrees_with_the_table() {
    for row in BY_HEAT {
        let alpha = alpha(row[0]);
        for (printed, (space, writes)) in
            row[1..].chunks(2).zip([(0.2, 0.8), (0.1, 0.9), (0.05, 0.95)])
        {
            let regions = hot_and_cold(space, writes);
            let computed = [fifo_mixed(alpha, &regions), fifo_split(alpha, &regions)];
            assert_row("mixed, split", printed, computed);
        }
    }
}

#[test]
fn fifo_with_trims_agrees_with_the_printed_examples() {
    // Spare 7 %.
    let computed = [0.0, 0.05, 0.1, 0.2, 0.3].map(|trims| fifo(alpha(0.07) / in_use(trims)));
    assert_row("trims", &[7.318, 4.385, 3.073, 1.863, 1.314], computed);
}

#[test]
fn the_forms_agree_with_published_numbers() {
    // Xiang and Kurkoski, arXiv 1110.4245, abstract: 2.36 at 30 % overprovisioning.
    assert_close("Xiang and Kurkoski", 2.36, fifo(1.3), 0.006);
    // Desnoyers' notes to ftlsim (2012): 6.5900 for his hot and cold example.
    let regions = hot_and_cold(0.1420, 0.7258);
    assert_close("Desnoyers", 6.5900, fifo_mixed(1.0914, &regions), 0.002);
}

#[test]
fn the_forms_agree_in_their_common_special_cases() {
    for spare in [0.05, 0.2, 0.5] {
        let alpha = alpha(spare);
        let whole = [Region { space: 1.0, writes: 1.0 }];
        assert_close("one region", fifo(alpha), fifo_mixed(alpha, &whole), 1e-9);
        let halves = hot_and_cold(0.5, 0.5);
        assert_close("two equal regions", fifo(alpha), fifo_mixed(alpha, &halves), 1e-9);
        assert_close("d = 1", random(alpha), d_choices(alpha, 64, 1), 1e-6);
        assert_close("d = 2000", greedy(alpha, 64), d_choices(alpha, 64, 2000), 0.01);
        assert_close("large superblocks", fifo(alpha), greedy(alpha, 1 << 20), 0.001);
    }
}

#[test]
fn lambert_w_solves_its_equation() {
    for x in [-0.367_879, -0.35, -0.2, -0.05, -1e-6, 0.0] {
        let w = lambert_w(x);
        assert!((w * w.exp() - x).abs() < 1e-12 && w >= -1.0, "W({x}) = {w}");
    }
}
