//! `SlcCache`: superblocks that take host writes at one bit per cell, folded in idle time.
//!
//! Modelled: writes go to the cache while it has room, then directly to the other flash; a
//! *static* cache has superblocks of its own, a *dynamic* one borrows free ones and so shrinks as
//! the drive fills; in idle time the oldest superblocks are *folded*: their valid units are moved
//! to collection's frontier. A dynamic cache is also folded when room is needed. With
//! `slc.folding = "while writing"` it remains the place of host writes then: each page that the
//! host writes to it owes as much folding, or collection, as frees the flash that it takes up. If
//! that comes a page too late for the next superblock, the host writes directly until then.
//! Reads find units where they are, at the cache's tR. Not modelled: vendor rules for bypassing the
//! cache or for keeping hot data in it, folding inside a die (copy-back), a slower program for
//! folded data; the cache's own endurance.
//!
//! Differs from hardware: a superblock is in the cache or not as a whole. Source of the idea: the
//! drop in write speed that reviews show when a client drive is filled in one go, and the second
//! drop, to a fraction of the speed of direct writes, when free flash has run out.

use std::collections::VecDeque;

use crate::config::{Folding, Profile, SlcMode};

/// The host never takes the last free superblock: collection may need it to finish a victim.
pub const FREE_KEPT: usize = 1;

#[derive(Clone, Debug)]
pub struct SlcCache {
    mode: SlcMode,
    folding: Folding,
    /// Units that a superblock holds in the cache, and outside.
    units_held: u32,
    units_taken: u32,
    /// The most superblocks that it may have.
    limit: u32,
    /// Superblocks that it has: open, full, or being folded.
    used: u32,
    /// Free superblocks that it leaves to collection when it borrows.
    left_free: usize,
    /// Erased superblocks of a static cache.
    free: VecDeque<u32>,
    /// Full superblocks, oldest first.
    full: VecDeque<u32>,
}

impl SlcCache {
    /// The empty cache of a profile, if it has one. A static cache has the superblocks with the
    /// lowest numbers.
    pub fn new(profile: &Profile) -> Option<Self> {
        let slc = profile.slc.as_ref()?;
        let left_free = match slc.folding {
            Folding::Idle => profile.collection.reserve as usize + 1,
            Folding::WhileWriting => FREE_KEPT,
        };
        Some(Self {
            mode: slc.mode,
            folding: slc.folding,
            units_held: slc.superblock_units(&profile.geometry),
            units_taken: profile.geometry.superblock_units(),
            limit: slc.superblocks(&profile.geometry),
            used: 0,
            left_free,
            free: (0..profile.superblocks_apart()).collect(),
            full: VecDeque::new(),
        })
    }

    /// Whether it borrows free superblocks of the other flash.
    pub fn borrows(&self) -> bool {
        self.mode == SlcMode::Dynamic
    }

    /// Whether it may open a superblock while the other flash has `free_count` free ones.
    pub fn can_open(&self, free_count: usize) -> bool {
        let can_borrow = || self.borrows() && self.used < self.limit && free_count > self.left_free;
        !self.free.is_empty() || can_borrow()
    }

    /// The units of other flash that `units` units in the cache take up, if the host must have
    /// them freed while it writes; else 0.
    pub fn units_owed(&self, units: u32) -> u32 {
        if self.folds_while_writing() {
            let taken = u64::from(units) * u64::from(self.units_taken);
            taken.div_ceil(u64::from(self.units_held)) as u32
        } else {
            0
        }
    }

    /// Whether the host keeps writing to it when room is needed.
    pub fn folds_while_writing(&self) -> bool {
        self.folding == Folding::WhileWriting
    }

    /// Opens one of its own superblocks; `None` if the caller must lend it one.
    pub fn open(&mut self) -> Option<u32> {
        self.used += 1;
        self.free.pop_front()
    }

    pub fn add_full(&mut self, superblock: u32) {
        self.full.push_back(superblock);
    }

    pub fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Takes the oldest full superblock out, to be folded.
    pub fn take_oldest(&mut self) -> Option<u32> {
        self.full.pop_front()
    }

    /// Puts a superblock back whose folding is postponed.
    pub fn put_back(&mut self, superblock: u32) {
        self.full.push_front(superblock);
    }

    /// Takes an erased superblock back; returns whether the cache keeps it.
    pub fn take_back(&mut self, superblock: u32) -> bool {
        self.used -= 1;
        if self.mode == SlcMode::Static {
            self.free.push_back(superblock);
        }
        self.mode == SlcMode::Static
    }
}
