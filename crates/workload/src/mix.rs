//! `OpMix` and `SizeMix`: the operation and the length of each request, drawn at random.

use ssdlab_device::{Lba, Op};
use ssdlab_time::Random;

use crate::Job;

#[derive(Clone, Debug)]
pub struct OpMix {
    op: Op,
    read_below: f64,
    trim_below: f64,
    random: Random,
}

impl OpMix {
    /// Reads and trims by the job's shares; all others are its `op`.
    pub fn new(job: &Job) -> Self {
        let read_below = job.read_share;
        let trim_below = job.read_share + job.trim_share;
        Self { op: job.op, read_below, trim_below, random: Random::new(job.seed, "ops") }
    }

    /// The operation, if all requests have the same.
    pub fn single(&self) -> Option<Op> {
        (self.trim_below <= 0.0).then_some(self.op)
    }

    pub fn draw(&mut self) -> Op {
        match self.random.unit() {
            draw if draw < self.read_below => Op::Read,
            draw if draw < self.trim_below => Op::Trim,
            _ => self.op,
        }
    }
}

/// The lengths of a job's requests, in host blocks.
#[derive(Clone, Debug)]
pub struct SizeMix {
    /// Each length with its cumulative weight, in the job's order.
    table: Vec<(u32, f64)>,
    random: Random,
}

impl SizeMix {
    pub fn new(job: &Job) -> Self {
        let mut sum = 0.0;
        let row = |(bytes, weight)| {
            sum += weight;
            (Lba::from_bytes(bytes).get() as u32, sum)
        };
        let table = job.sizes().map(row).collect();
        Self { table, random: Random::new(job.seed, "sizes") }
    }

    /// The length, if all requests have the same.
    pub fn single(&self) -> Option<u32> {
        let [(length, _)] = self.table[..] else { return None };
        Some(length)
    }

    pub fn draw(&mut self) -> u32 {
        let sum = self.table.last().expect("a job has a size").1;
        let draw = self.random.unit() * sum;
        self.table.iter().find(|row| draw < row.1).expect("a draw below the sum").0
    }

    /// The greatest common divisor of all lengths.
    pub fn granularity(&self) -> u64 {
        self.table.iter().fold(0, |divisor, row| gcd(u64::from(row.0), divisor))
    }

    pub fn longest(&self) -> u64 {
        self.table.iter().map(|row| u64::from(row.0)).max().expect("a job has a size")
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
