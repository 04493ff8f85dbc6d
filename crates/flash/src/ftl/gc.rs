//! When to collect: `Collector` keeps in step with the host, so that room never runs out.

use ssdlab_time::{Nanos, Random};

use super::Ftl;
use super::slc::SlcCache;
use super::victim::{self, Candidates};
use crate::cause::Cause;
use crate::config::{Collection, Relocation};
use crate::nand::Media;

/// The host never takes the last free superblock: collection may need it to finish a victim.
const FREE_KEPT: usize = 1;

/// The victim in work and how far collection is behind the host.
///
/// A victim with V valid of N units gives N - V units of room for V moves. So that the host's
/// writing of N - V units and the V moves end together, each host unit owes V / (N - V) moves.
///
/// Modelled: a low watermark, moves in step with the host, all at once where that was not enough,
/// collection in idle time. Not modelled: reads of the reverse map, moves from several victims at
/// once.
#[derive(Clone, Debug)]
pub struct Collector {
    pub(super) rules: Collection,
    random: Random,
    /// Choices made, for wear levelling's turn among them.
    pub(super) choices: u64,
    pub(super) victim: Option<Victim>,
    /// Units of the host in pages that moves have filled: they owe moves as those of others do.
    pub(super) host_units_filled: u32,
    /// For each die: the page that collection sensed last, and when its data was there.
    pub(super) sensed: Vec<Option<u32>>,
}

/// A superblock being emptied.
#[derive(Clone, Debug)]
pub struct Victim {
    pub(super) superblock: u32,
    /// The stream of the host that filled it.
    pub(super) stream: u8,
    /// Why its units are moved.
    pub(super) cause: Cause,
    /// Where to look for the next valid unit.
    pub(super) next: u32,
    /// How far its units were looked at ahead of time.
    pub(super) seen: u32,
    /// Valid units when it was chosen.
    valid: u32,
    /// Room that it gives: its other units.
    gain: u32,
    /// Moves owed, times `gain`.
    debt: i64,
    /// Whether its erase gives room for any use: not where a static cache is folded.
    pub(super) makes_room: bool,
}

impl Collector {
    /// No victim yet.
    pub fn new(rules: Collection, dies: u32, seed: u64) -> Self {
        let random = Random::new(seed, "victim");
        let sensed = vec![None; dies as usize];
        Self { rules, random, choices: 0, victim: None, host_units_filled: 0, sensed }
    }

    /// Forgets what is being done; returns the victim in work.
    pub fn reset(&mut self) -> Option<u32> {
        self.host_units_filled = 0;
        self.sensed.fill(None);
        self.victim.take().map(|victim| victim.superblock)
    }
}

impl Ftl {
    /// Does the moves that a page with so many units of the host owes.
    pub(super) fn collect_in_step(&mut self, host_units: u32, at: Nanos, array: &mut impl Media) {
        let reserve = self.collector.rules.reserve as usize;
        let host_units = host_units + std::mem::take(&mut self.collector.host_units_filled);
        let at_work = self.collector.victim.as_ref().is_some_and(|victim| victim.makes_room);
        if !at_work && self.free_count() > reserve {
            return;
        }
        self.choose_victim();
        let mut victim = self.collector.victim.take().expect("a victim was chosen");
        victim.debt += i64::from(host_units) * i64::from(victim.valid);
        while (victim.debt > 0 || self.must_finish())
            && self.superblocks.valid(victim.superblock) > 0
        {
            let (moved, _) = self.move_next(&mut victim, at, array);
            victim.debt -= i64::from(moved) * i64::from(victim.gain);
        }
        self.keep_or_erase(victim, at, array);
    }

    /// Where moves share the host's frontier they may have taken the last free superblock: the host
    /// must not fill it before the victim is empty.
    fn must_finish(&self) -> bool {
        self.collector.rules.relocation == Relocation::Mixed && self.free_count() < FREE_KEPT
    }

    /// Uses the time from `from` to `until`, in which nobody asked for anything, but for its first
    /// part, `ftl.idle_after`.
    ///
    /// One page after the other, until the SLC cache is empty and enough superblocks are free, or
    /// nothing is left to gain.
    pub fn collect_idle(&mut self, from: Nanos, until: Nanos, array: &mut impl Media) {
        let mut at = from + self.collector.rules.idle_after;
        while at < until && self.choose_idle_victim() {
            let mut victim = self.collector.victim.take().expect("a victim was chosen");
            let pays = victim.gain > 0;
            while pays && at < until && self.superblocks.valid(victim.superblock) > 0 {
                let before = at;
                at = self.move_next(&mut victim, at, array).1.max(before);
            }
            self.keep_or_erase(victim, at, array);
            if !pays {
                break;
            }
        }
        self.erase_idle(at, until, array);
    }

    /// Chooses what idle time is good for; false if for nothing. To fold the SLC cache takes room
    /// first: where it has superblocks of its own, collection has to make it.
    fn choose_idle_victim(&mut self) -> bool {
        let rules = &self.collector.rules;
        let (reserve, mut enough) = (rules.reserve as usize, rules.idle_reserve as usize);
        if self.slc.as_ref().is_some_and(SlcCache::has_full) {
            enough = enough.max(reserve + 1);
        }
        let room_wanted = self.free_count() < enough;
        match &self.collector.victim {
            Some(victim) if victim.makes_room => {
                return room_wanted || victim.cause == Cause::Folding;
            }
            Some(_) if self.free_count() > reserve => return true,
            _ => {}
        }
        if self.free_count() > reserve && self.begin_folding() {
            return true;
        }
        if room_wanted && self.superblocks.closed().count() > 0 {
            self.choose_victim();
        }
        self.collector.victim.is_some()
    }

    /// Collects until the host may open another superblock.
    pub(super) fn make_room(&mut self, at: Nanos, array: &mut impl Media) {
        while self.free_count() <= FREE_KEPT {
            self.choose_victim();
            self.finish_victim(at, array);
        }
    }

    /// Moves all that is left of the victim in work.
    pub(super) fn finish_victim(&mut self, at: Nanos, array: &mut impl Media) {
        let mut victim = self.collector.victim.take().expect("a victim was chosen");
        while self.superblocks.valid(victim.superblock) > 0 {
            self.move_next(&mut victim, at, array);
        }
        self.keep_or_erase(victim, at, array);
    }

    /// Chooses what makes room, unless such a victim is in work.
    fn choose_victim(&mut self) {
        self.put_folding_off();
        if self.collector.victim.is_some() {
            return;
        }
        if self.slc.as_ref().is_some_and(SlcCache::borrows) && self.begin_folding() {
            return;
        }
        let (superblock, cause) = match self.lagging() {
            Some(lagging) => (lagging, Cause::Wear),
            None => (self.choose_by_policy(), Cause::Collection),
        };
        self.begin_victim(superblock, cause);
    }

    pub(super) fn begin_victim(&mut self, superblock: u32, cause: Cause) {
        self.superblocks.take_victim(superblock);
        let valid = self.superblocks.valid(superblock);
        let gain = self.superblock_units - valid;
        let makes_room =
            cause != Cause::Folding || self.slc.as_ref().is_some_and(SlcCache::borrows);
        let stream = self.superblocks.stream(superblock);
        let (next, seen, debt) = (0, 0, 0);
        self.collector.victim =
            Some(Victim { superblock, stream, cause, next, seen, valid, gain, debt, makes_room });
        self.collector.sensed.fill(None);
    }

    fn choose_by_policy(&mut self) -> u32 {
        let Collector { rules, random, .. } = &mut self.collector;
        let now = self.counters.host_writes;
        victim::choose(rules.victim, self.superblocks.closed(), now, random)
    }

    fn keep_or_erase(&mut self, victim: Victim, at: Nanos, array: &mut impl Media) {
        if self.superblocks.valid(victim.superblock) > 0 {
            self.collector.victim = Some(victim);
            return;
        }
        self.emptied(victim.superblock);
        self.erase_emptied(at, array);
    }
}
