//! Blocks that fail after a number of erases, and the spare superblocks that replace them.
//!
//! Modelled: each block (all planes of a die) fails at its own erase count, drawn from a normal
//! distribution; a good block of the same die replaces it. Replacement blocks come from superblocks
//! that are retired: one each time a die has more bad blocks than any die had before. So spare
//! shrinks and write amplification grows, and when collection could not continue with one
//! superblock less, the drive becomes read-only. Not modelled: factory bad blocks, failed
//! programs, data that can no longer be read, errors that increase with wear; the wear of a static
//! SLC cache, whose cells last much longer.
//!
//! Differs from hardware: a replacement is as worn as the block that it replaces. Source: JEDEC
//! JESD218, and the `NVMe` health log for what a drive reports (available spare).

use ssdlab_time::Random;

use crate::config::{Failure, Profile};

/// Which blocks fail when, and what the drive has left.
#[derive(Clone, Debug)]
pub struct Retirement {
    /// `None` if blocks never fail.
    lives: Option<Lives>,
    /// Superblocks in service, and whether the drive accepts writes.
    pub service: Service,
}

impl Retirement {
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Self { lives: Lives::new(profile, seed), service: Service::new(profile) }
    }

    /// Whether a superblock that was just erased is retired.
    ///
    /// Not while fewer than two others are free: collection and the host need them to continue.
    pub fn retires(&mut self, superblock: u32, erases: u32, free_count: usize) -> bool {
        let Some(lives) = &mut self.lives else { return false };
        lives.replace_failed(superblock, erases);
        let service = &mut self.service;
        service.owed = lives.owed();
        service.read_only |= service.now < service.least + service.owed;
        if service.owed == 0 || free_count < 2 || service.read_only {
            return false;
        }
        lives.retired += 1;
        service.owed -= 1;
        service.now -= 1;
        true
    }
}

/// The erase counts at which blocks fail.
#[derive(Clone, Debug)]
struct Lives {
    failure: Failure,
    random: Random,
    dies: u32,
    /// For each superblock, die by die: the erase count at which the block fails.
    fails_at: Vec<u32>,
    /// Failed blocks of each die.
    bad: Vec<u32>,
    /// Retired superblocks.
    retired: u32,
}

impl Lives {
    /// The lives of a new drive's blocks; `None` if they never fail.
    fn new(profile: &Profile, seed: u64) -> Option<Self> {
        let failure = profile.failure?;
        let (dies, blocks) = (profile.geometry.dies(), profile.geometry.blocks_per_plane);
        let mut random = Random::new(seed, "lives");
        let fails_at = (0..u64::from(dies) * u64::from(blocks)).map(|_| life(failure, &mut random));
        let fails_at = fails_at.collect();
        Some(Self { failure, random, dies, fails_at, bad: vec![0; dies as usize], retired: 0 })
    }

    /// Replaces the blocks of a superblock that fail at this erase.
    fn replace_failed(&mut self, superblock: u32, erases: u32) {
        let first = (superblock * self.dies) as usize;
        for die in 0..self.dies as usize {
            if self.fails_at[first + die] <= erases {
                self.bad[die] += 1;
                self.fails_at[first + die] = self.life_beyond(erases);
            }
        }
    }

    /// Superblocks that still have to be retired for their good blocks.
    fn owed(&self) -> u32 {
        self.bad.iter().max().map_or(0, |most| most - self.retired)
    }

    /// The life of a block that has survived `erases` erases: a few draws, else the next erase.
    fn life_beyond(&mut self, erases: u32) -> u32 {
        let mut tries = (0..8).map(|_| life(self.failure, &mut self.random));
        tries.find(|life| *life > erases).unwrap_or(erases + 1)
    }
}

/// Erases until a block fails: normal by the sum of twelve uniform numbers.
fn life(failure: Failure, random: &mut Random) -> u32 {
    let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    (f64::from(failure.cycles) * (1.0 + failure.spread * normal)).max(1.0) as u32
}

/// The superblocks of a drive, and how many of them it can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// In service when the drive was new.
    pub at_first: u32,
    /// In service now.
    pub now: u32,
    /// To be retired as soon as collection can do without them.
    pub owed: u32,
    /// The least with which collection can continue.
    pub least: u32,
    /// Whether more blocks failed than can be replaced, so that the drive is read-only.
    pub read_only: bool,
}

impl Service {
    /// All superblocks of a new drive except those set apart for an SLC cache.
    fn new(profile: &Profile) -> Self {
        let now = profile.geometry.blocks_per_plane - profile.superblocks_apart();
        let full = profile.capacity / profile.geometry.superblock_bytes() + 1;
        // One more than collection needs: power cuts leave empty pages behind.
        let least = full as u32 + profile.superblocks_held() + 1;
        Self { at_first: now, now, owed: 0, least: least.min(now), read_only: false }
    }

    /// Superblocks that the drive can still lose, in percent of those that it could lose when new.
    pub fn spare_percent(&self) -> f64 {
        let left = self.now.saturating_sub(self.least + self.owed);
        100.0 * f64::from(left) / f64::from((self.at_first - self.least).max(1))
    }
}
