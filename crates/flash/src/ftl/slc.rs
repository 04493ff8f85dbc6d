//! `SlcCache`: superblocks that take the host's writes at one bit a cell, folded in idle time.
//!
//! Modelled: writes go to the cache while it has room, and then straight to the other flash; a
//! *static* cache has superblocks of its own, a *dynamic* one borrows free ones and so shrinks as
//! the drive fills; in idle time the oldest superblocks are *folded*: their valid units move to
//! collection's frontier. A dynamic cache is folded also when room is needed. Reads find units
//! where they are, at the cache's tR. Not modelled: a maker's own rules of when to bypass the cache
//! or to keep hot data in it, folding inside a die (copy-back); the cache's own endurance.
//!
//! Differs from hardware: a superblock is in the cache or not as a whole. Source of the idea: the
//! cliffs that reviews show when a client drive is filled in one go.

use std::collections::VecDeque;

use super::Ftl;
use super::placement::Lane;
use crate::cause::Cause;
use crate::config::{Profile, SlcMode};
use crate::nand::Media;
use ssdlab_time::Nanos;

/// The cache's superblocks.
#[derive(Clone, Debug)]
pub struct SlcCache {
    mode: SlcMode,
    /// How many it may have at most.
    most: u32,
    /// Those it has: open, full, or being folded.
    used: u32,
    /// Erased ones of a static cache.
    free: VecDeque<u32>,
    /// Full ones, oldest first.
    full: VecDeque<u32>,
}

impl SlcCache {
    /// The cache of a profile, empty; none where it has none. A static one has the superblocks
    /// with the lowest numbers.
    pub fn new(profile: &Profile) -> Option<Self> {
        let slc = profile.slc.as_ref()?;
        Some(Self {
            mode: slc.mode,
            most: slc.superblocks(&profile.geometry),
            used: 0,
            free: (0..profile.superblocks_apart()).collect(),
            full: VecDeque::new(),
        })
    }

    /// Whether it borrows what is free of the other flash.
    pub fn borrows(&self) -> bool {
        self.mode == SlcMode::Dynamic
    }

    /// Adds a superblock that has been filled.
    pub fn add_full(&mut self, superblock: u32) {
        self.full.push_back(superblock);
    }

    /// Whether there is something to fold.
    pub fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Puts a superblock back that was to be folded.
    pub fn put_back(&mut self, superblock: u32) {
        self.full.push_front(superblock);
    }

    /// Takes the oldest superblock out, to be folded.
    pub fn take_oldest(&mut self) -> Option<u32> {
        self.full.pop_front()
    }

    /// Takes an erased superblock back; returns whether it stays with the cache.
    pub fn erased(&mut self, superblock: u32) -> bool {
        self.used -= 1;
        if self.mode == SlcMode::Static {
            self.free.push_back(superblock);
        }
        self.mode == SlcMode::Static
    }
}

impl Ftl {
    /// Notes that a superblock is filled, or that one is a possible victim again.
    pub(super) fn close(&mut self, superblock: u32) {
        match &mut self.slc {
            Some(cache) if self.superblocks.is_slc(superblock) => {
                self.superblocks.close_slc(superblock);
                cache.add_full(superblock);
            }
            _ => self.superblocks.close(superblock, self.counters.host_writes),
        }
    }

    /// The cache's lane, where it takes the host's next unit.
    #[inline]
    pub(super) fn slc_lane(&mut self, at: Nanos, array: &mut impl Media) -> Option<Lane> {
        let lane = self.frontiers.slc()?;
        (!self.frontiers.of(lane).is_full() || self.open_slc(lane, at, array)).then_some(lane)
    }

    /// Opens another superblock of the cache, if there is one.
    fn open_slc(&mut self, lane: Lane, at: Nanos, array: &mut impl Media) -> bool {
        let reserve = self.collector.rules.reserve as usize;
        let spare = self.superblocks.free_count().saturating_sub(reserve + 1);
        let Some(cache) = &mut self.slc else { return false };
        let own = cache.free.pop_front();
        if own.is_none() && !(cache.borrows() && cache.used < cache.most && spare > 0) {
            return false;
        }
        cache.used += 1;
        let (superblock, from) = own.map_or_else(|| self.take_free(at, array), |own| (own, at));
        self.superblocks.open_slc(superblock);
        let log = self.undo.open(superblock, from);
        self.frontiers.open(lane, superblock, log);
        true
    }

    /// Puts the folding of a static cache off: it takes room where room is to be made.
    pub(super) fn put_folding_off(&mut self) {
        let Some(victim) = self.collector.victim.take_if(|victim| !victim.makes_room) else {
            return;
        };
        self.superblocks.close_slc(victim.superblock);
        self.slc.as_mut().expect("what is folded is of the cache").put_back(victim.superblock);
    }

    /// Takes the cache's oldest superblock as the victim in work, if it has one.
    pub(super) fn begin_folding(&mut self) -> bool {
        let Some(superblock) = self.slc.as_mut().and_then(SlcCache::take_oldest) else {
            return false;
        };
        self.begin_victim(superblock, Cause::Folding);
        true
    }
}
