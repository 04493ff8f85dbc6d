//! `Ops` and `Sizes`: what each request does and how long it is, drawn by share and by weight.

use ssdlab_device::{Lba, Op};
use ssdlab_time::Random;

use crate::Job;

/// What each request does.
#[derive(Debug)]
pub struct Ops {
    op: Op,
    read_below: f64,
    trim_below: f64,
    random: Random,
}

impl Ops {
    /// By the job's shares; the rest are its `op`.
    pub fn new(job: &Job) -> Self {
        let read_below = job.read_share;
        let trim_below = job.read_share + job.trim_share;
        Self { op: job.op, read_below, trim_below, random: Random::new(job.seed, "ops") }
    }

    /// What all requests do, if it is one thing.
    pub fn only(&self) -> Option<Op> {
        (self.trim_below <= 0.0).then_some(self.op)
    }

    /// The next request's, where they differ.
    pub fn draw(&mut self) -> Op {
        match self.random.unit() {
            draw if draw < self.read_below => Op::Read,
            draw if draw < self.trim_below => Op::Trim,
            _ => self.op,
        }
    }
}

/// How long each request is, in host blocks.
#[derive(Debug)]
pub struct Sizes {
    /// With the sum of the weights up to each, in the job's order.
    table: Vec<(u32, f64)>,
    random: Random,
}

impl Sizes {
    /// By the job's weights, or all of one length.
    pub fn new(job: &Job) -> Self {
        let mut sum = 0.0;
        let row = |(bytes, weight)| {
            sum += weight;
            (Lba::from_bytes(bytes).get() as u32, sum)
        };
        let table = job.sizes().map(row).collect();
        Self { table, random: Random::new(job.seed, "sizes") }
    }

    /// The length of all requests, if it is one.
    pub fn only(&self) -> Option<u32> {
        let [(only, _)] = self.table[..] else { return None };
        Some(only)
    }

    /// The next request's, where they differ.
    pub fn draw(&mut self) -> u32 {
        let sum = self.table.last().expect("a job has a size").1;
        let draw = self.random.unit() * sum;
        self.table.iter().find(|row| draw < row.1).expect("a draw below the sum").0
    }

    /// What all lengths are a multiple of.
    pub fn grain(&self) -> u64 {
        self.table.iter().fold(0, |divisor, row| common_divisor(u64::from(row.0), divisor))
    }

    /// The longest.
    pub fn longest(&self) -> u64 {
        self.table.iter().map(|row| u64::from(row.0)).max().expect("a job has a size")
    }
}

/// The greatest, by Euclid.
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
