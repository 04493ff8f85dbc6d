//! The closed forms against tables that were computed apart from them, and against each other.
//!
//! The tables were made by other programs when the literature was surveyed, checked there against
//! an independent simulation (ftlsim by Desnoyers) to four digits; all are printed to 0.001.

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

/// Spare; mixed and split for 20 % of the space with 80 % of the writes, 10 with 90, 5 with 95.
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

/// Equal within a unit of the last printed digit.
fn printed(computed: f64, printed: f64, last: f64, what: &str) {
    assert!((computed - printed).abs() < last, "{what}: {computed:.4}, printed {printed}");
}

#[test]
fn random_fifo_and_greedy_are_those_of_the_tables() {
    let by_spare = BY_SPARE.map(|row| (alpha(row[0]), row));
    let by_overprovisioning = BY_OVERPROVISIONING.map(|row| (1.0 + row[0], row));
    for (alpha, row) in by_spare.into_iter().chain(by_overprovisioning) {
        printed(random(alpha), row[1], 0.01, "random");
        printed(fifo(alpha), row[2], 0.001, "fifo");
        for (column, units) in [64, 128, 256, 512, 1024].into_iter().enumerate() {
            printed(greedy(alpha, units), row[3 + column], 0.001, "greedy");
        }
    }
}

#[test]
fn d_choices_are_those_of_the_table() {
    for row in BY_CHOICES {
        for (column, choices) in [1, 2, 3, 5, 10, 30, 100].into_iter().enumerate() {
            printed(d_choices(alpha(row[0]), 128, choices), row[1 + column], 0.001, "d-choices");
        }
    }
}

#[test]
fn hot_and_cold_mixed_and_split_are_those_of_the_table() {
    for row in BY_HEAT {
        for (pair, (space, writes)) in [(0.2, 0.8), (0.1, 0.9), (0.05, 0.95)].iter().enumerate() {
            let (alpha, regions) = (alpha(row[0]), hot_and_cold(*space, *writes));
            printed(fifo_mixed(alpha, &regions), row[1 + 2 * pair], 0.001, "mixed");
            printed(fifo_split(alpha, &regions), row[2 + 2 * pair], 0.001, "split");
        }
    }
}

#[test]
fn trimming_a_share_of_the_requests_gives_the_printed_examples() {
    // At 7 % spare, fifo.
    for (trims, amplification) in
        [(0.0, 7.318), (0.05, 4.385), (0.1, 3.073), (0.2, 1.863), (0.3, 1.314)]
    {
        printed(fifo(alpha(0.07) / in_use(trims)), amplification, 0.001, "trims");
    }
}

#[test]
fn published_numbers_come_out() {
    // Xiang and Kurkoski, arXiv 1110.4245, abstract: 2.36 at 30 % overprovisioning.
    printed(fifo(1.3), 2.36, 0.006, "Xiang and Kurkoski");
    // Desnoyers' notes to ftlsim (2012): 6.5900 for his hot and cold example.
    let regions = hot_and_cold(0.1420, 0.7258);
    printed(fifo_mixed(1.0914, &regions), 6.5900, 0.002, "Desnoyers");
}

#[test]
fn the_forms_agree_where_one_is_a_case_of_the_other() {
    for spare in [0.05, 0.2, 0.5] {
        let alpha = alpha(spare);
        let whole = [Region { space: 1.0, writes: 1.0 }];
        printed(fifo_mixed(alpha, &whole), fifo(alpha), 1e-9, "one region");
        let halves = hot_and_cold(0.5, 0.5);
        printed(fifo_mixed(alpha, &halves), fifo(alpha), 1e-9, "two equal regions");
        printed(d_choices(alpha, 64, 1), random(alpha), 1e-6, "one choice");
        printed(d_choices(alpha, 64, 2000), greedy(alpha, 64), 0.01, "very many choices");
        printed(greedy(alpha, 1 << 20), fifo(alpha), 0.001, "a huge superblock");
    }
}

#[test]
fn lambert_w_solves_its_equation() {
    for x in [-0.367_879, -0.35, -0.2, -0.05, -1e-6, 0.0] {
        let w = lambert_w(x);
        assert!((w * w.exp() - x).abs() < 1e-12 && w >= -1.0, "W({x}) = {w}");
    }
}
