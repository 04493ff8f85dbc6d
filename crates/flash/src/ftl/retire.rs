//! `Lives`: blocks that fail after so many erases, and what the drive has left when they do.
//!
//! Modelled: each block (all planes of a die) fails at an erase count of its own, drawn from a
//! normal distribution; a good block of the same die takes its place. Such blocks come from
//! superblocks that are dissolved for it: one whenever a die has more bad blocks than any die had
//! before. So spare shrinks, write amplification grows, and when collection could not go on with
//! one superblock less, the drive takes no more writes. Not modelled: factory bad blocks, failed
//! programs, data that can no longer be read, errors that grow with wear; the wear of a static SLC
//! cache, whose cells last much longer.
//!
//! Differs from hardware: a substitute is as worn as the block that it replaces. Source: JEDEC
//! JESD218 and the `NVMe` health log for what a drive tells of it (available spare).

use ssdlab_time::Random;

use super::Ftl;
use crate::config::{Failure, Profile};

/// How long each block lives.
#[derive(Clone, Debug)]
pub struct Lives {
    failure: Failure,
    random: Random,
    dies: u32,
    /// For each superblock, die by die: the erase at which the block fails.
    fails_at: Vec<u32>,
    /// Blocks that failed, by die.
    bad: Vec<u32>,
    /// Superblocks that were dissolved.
    dissolved: u32,
}

impl Lives {
    /// The lives of a new drive's blocks; none where they never fail.
    pub fn new(profile: &Profile, seed: u64) -> Option<Self> {
        let failure = profile.failure?;
        let (dies, blocks) = (profile.geometry.dies(), profile.geometry.blocks_per_plane);
        let mut random = Random::new(seed, "lives");
        let fails_at = (0..u64::from(dies) * u64::from(blocks)).map(|_| life(failure, &mut random));
        let fails_at = fails_at.collect();
        Some(Self { failure, random, dies, fails_at, bad: vec![0; dies as usize], dissolved: 0 })
    }

    /// Ends the lives of a superblock's blocks that fail at this erase.
    fn wear_out(&mut self, superblock: u32, erases: u32) {
        let first = (superblock * self.dies) as usize;
        for die in 0..self.dies as usize {
            if self.fails_at[first + die] <= erases {
                self.bad[die] += 1;
                self.fails_at[first + die] = self.life_beyond(erases);
            }
        }
    }

    /// Superblocks that the drive still has to give up for substitutes.
    fn owed(&self) -> u32 {
        self.bad.iter().max().map_or(0, |most| most - self.dissolved)
    }

    /// The life of a block that has survived so many erases: a few tries, then the next erase.
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

/// Superblocks that a drive has, and can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// In service when it was new.
    pub at_first: u32,
    /// In service now.
    pub now: u32,
    /// Of these, to be given up for substitutes as soon as collection can do without.
    pub owed: u32,
    /// Without so many collection cannot go on.
    pub least: u32,
    /// Whether blocks failed that nothing can replace: the drive takes no more writes.
    pub read_only: bool,
}

impl Service {
    /// All superblocks of a new drive but those set apart for a cache.
    pub fn new(profile: &Profile) -> Self {
        let now = profile.geometry.blocks_per_plane - profile.superblocks_apart();
        let full = profile.capacity / profile.geometry.superblock_bytes() + 1;
        // One more than collection needs: power cuts leave pages empty behind them.
        let least = full as u32 + profile.superblocks_held() + 1;
        Self { at_first: now, now, owed: 0, least: least.min(now), read_only: false }
    }

    /// Superblocks left to lose, in per cent of those at first.
    pub fn spare_percent(&self) -> f64 {
        let left = self.now.saturating_sub(self.least + self.owed);
        100.0 * f64::from(left) / f64::from((self.at_first - self.least).max(1))
    }
}

impl Ftl {
    /// Whether a superblock that was just erased is given up for good.
    ///
    /// Not while fewer than two others are: collection and the host need them to go on.
    pub(super) fn retires(&mut self, superblock: u32) -> bool {
        let erases = self.superblocks.all()[superblock as usize].erases;
        let needed = self.superblocks.free_count() < 2;
        let Some(lives) = &mut self.lives else { return false };
        lives.wear_out(superblock, erases);
        self.service.owed = lives.owed();
        self.service.read_only |= self.service.now < self.service.least + self.service.owed;
        if self.service.owed == 0 || needed || self.service.read_only {
            return false;
        }
        lives.dissolved += 1;
        self.service.owed -= 1;
        self.service.now -= 1;
        true
    }
}
