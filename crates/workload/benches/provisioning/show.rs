//! `Row`: the results of a job as a row of a table.

use std::ops::Add;

use ssdlab_time::Nanos;

/// A job's times and counts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub requests: u64,
    pub bytes: u64,
    pub simulated: Nanos,
    pub cpu_nanos: u64,
    /// Mapping units written by the host, and programmed to flash in that time.
    pub host_units: u64,
    pub flash_units: u64,
    pub latency_p99: u64,
}

impl Row {
    /// The header of the columns that `print` prints.
    pub const HEADER: &str = "| job | requests/s | MB/s | WAF | p99, ms | simulated, s | CPU, s | \
                              CPU, ns a unit |\n|---|---|---|---|---|---|---|---|";

    fn seconds(&self) -> f64 {
        self.simulated.get() as f64 / 1e9
    }

    /// Requests per simulated second.
    pub fn requests_per_s(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    pub fn print(&self, what: &str) {
        println!(
            "| {what} | {:.0} | {:.1} | {:.3} | {:.2} | {:.0} | {:.1} | {:.0} |",
            self.requests_per_s(),
            self.bytes as f64 / 1e6 / self.seconds(),
            self.flash_units as f64 / self.host_units as f64,
            self.latency_p99 as f64 / 1e6,
            self.seconds(),
            self.cpu_nanos as f64 / 1e9,
            self.cpu_nanos as f64 / self.host_units as f64,
        );
    }
}

/// Two jobs in sequence, with the higher of both p99 latencies.
impl Add for Row {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            simulated: self.simulated + other.simulated,
            cpu_nanos: self.cpu_nanos + other.cpu_nanos,
            host_units: self.host_units + other.host_units,
            flash_units: self.flash_units + other.flash_units,
            latency_p99: self.latency_p99.max(other.latency_p99),
        }
    }
}
