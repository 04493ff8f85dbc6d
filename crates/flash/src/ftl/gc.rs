//! When to collect: `Collector` keeps in step with the host, so that room never runs out.

use ssdlab_time::Nanos;

use super::Ftl;
use super::victim::{Candidate, greedy};
use crate::config::SUPERBLOCKS_HELD;
use crate::nand::Array;

/// The host's frontier and collection's.
const FRONTIERS: usize = 2;
/// Collection starts when no more superblocks than this are free.
const FREE_LOW: usize = SUPERBLOCKS_HELD as usize - FRONTIERS;
/// The host never takes the last free superblock: collection may need it to finish a victim.
const FREE_KEPT: usize = 1;

/// The victim in work and how far collection is behind the host.
///
/// A victim with V valid of N units gives N - V units of room for V moves. So that the host's
/// writing of N - V units and the V moves end together, each host unit owes V / (N - V) moves.
#[derive(Debug)]
pub struct Collector {
    pub(super) victim: Option<Victim>,
    /// For each die: the page that collection sensed last, and when its data was there.
    pub(super) sensed: Vec<Option<u32>>,
}

/// A superblock being emptied.
#[derive(Debug)]
pub struct Victim {
    pub(super) superblock: u32,
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
}

impl Collector {
    /// No victim yet.
    pub fn new(dies: u32) -> Self {
        Self { victim: None, sensed: vec![None; dies as usize] }
    }
}

impl Ftl {
    /// Does the moves that a page written by the host owes.
    pub(super) fn collect_in_step(&mut self, at: Nanos, array: &mut Array) {
        if self.collector.victim.is_none() && self.superblocks.free_count() > FREE_LOW {
            return;
        }
        self.choose_victim();
        let host_units = i64::from(self.multi_page_units);
        let mut victim = self.collector.victim.take().expect("a victim was chosen");
        victim.debt += host_units * i64::from(victim.valid);
        while victim.debt > 0 && self.superblocks.valid(victim.superblock) > 0 {
            let moved = self.move_next(&mut victim, at, array);
            victim.debt -= i64::from(moved) * i64::from(victim.gain);
        }
        self.keep_or_erase(victim, at, array);
    }

    /// Collects until the host may open another superblock.
    pub(super) fn make_room(&mut self, at: Nanos, array: &mut Array) {
        while self.superblocks.free_count() <= FREE_KEPT {
            self.choose_victim();
            let mut victim = self.collector.victim.take().expect("a victim was chosen");
            while self.superblocks.valid(victim.superblock) > 0 {
                self.move_next(&mut victim, at, array);
            }
            self.keep_or_erase(victim, at, array);
        }
    }

    fn choose_victim(&mut self) {
        if self.collector.victim.is_some() {
            return;
        }
        let candidate = |(superblock, valid)| Candidate { superblock, valid };
        let chosen = greedy(self.superblocks.closed().map(candidate)).expect("some are full");
        let gain = self.superblock_units - chosen.valid;
        assert!(gain > 0, "the spare guarantees a superblock that is not all valid");
        let Candidate { superblock, valid } = chosen;
        self.collector.victim = Some(Victim { superblock, next: 0, seen: 0, valid, gain, debt: 0 });
        self.collector.sensed.fill(None);
    }

    fn keep_or_erase(&mut self, victim: Victim, at: Nanos, array: &mut Array) {
        if self.superblocks.valid(victim.superblock) > 0 {
            self.collector.victim = Some(victim);
            return;
        }
        for die in 0..self.dies {
            array.erase(die, at);
        }
        self.counters.erases += u64::from(self.dies);
        self.superblocks.erase(victim.superblock);
    }
}
