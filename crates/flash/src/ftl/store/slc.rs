//! `SlcCache`: superblocks that take host writes at one bit per cell, folded in idle time.
//!
//! Modelled: writes go to the cache while it has room, then directly to the other flash; a
//! *static* cache has superblocks of its own, a *dynamic* one borrows free ones and so shrinks as
//! the drive fills; in idle time the oldest superblocks are *folded*: their valid units are moved
//! to collection's frontier. A dynamic cache is also folded when room is needed. Reads find units
//! where they are, at the cache's tR. Not modelled: vendor rules for bypassing the cache or for
//! keeping hot data in it, folding inside a die (copy-back); the cache's own endurance.
//!
//! Differs from hardware: a superblock is in the cache or not as a whole. Source of the idea: the
//! drop in write speed that reviews show when a client drive is filled in one go.

use std::collections::VecDeque;

use crate::config::{Profile, SlcMode};

#[derive(Clone, Debug)]
pub struct SlcCache {
    mode: SlcMode,
    /// The most superblocks that it may have.
    limit: u32,
    /// Superblocks that it has: open, full, or being folded.
    used: u32,
    /// Free superblocks that it leaves to collection when it borrows.
    reserve: usize,
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
        Some(Self {
            mode: slc.mode,
            limit: slc.superblocks(&profile.geometry),
            used: 0,
            reserve: profile.collection.reserve as usize + 1,
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
        let can_borrow = || self.borrows() && self.used < self.limit && free_count > self.reserve;
        !self.free.is_empty() || can_borrow()
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
