//! When to collect: `Collector` keeps pace with the host, so that free space never runs out.

use ssdlab_time::{Nanos, Random};

use super::store::{FREE_KEPT, SlcCache, UnitStore};
use super::victim;
use crate::config::{Collection, Pacing, Profile, Relocation, WearLevelling};
use crate::counters::Cause;
use crate::nand::Media;

/// Static wear levelling examines all superblocks at every 16th choice of a victim.
const WEAR_CHECK_INTERVAL: u64 = 16;

/// Superblocks that the host and relocations may both open while collection keeps pace.
const FRONTIERS: usize = 2;

/// How many times as many relocations as usual a host unit requires until the reserve is back.
const CATCHING_UP: i64 = 2;

/// Garbage collection: the victim, and how far collection is behind the host.
///
/// A victim with V of N units valid frees N - V units for V relocations. So that the host's writing
/// of N - V units and the V relocations end together, each host unit owes V / (N - V) relocations.
/// `ftl.pacing` can be `victim` instead: then a victim is emptied at once.
///
/// Modelled: a low watermark, relocations in pace with the host, all at once if that was not
/// enough or the profile says so, collection in idle time. Not modelled: reads of the reverse map,
/// relocations from several victims at once.
///
/// Wear levelling, modelled: *dynamic*, the free superblock erased least often is filled next;
/// *static*, a superblock whose erase count is too far below the highest is collected early, so
/// that cold data does not occupy the least worn flash. Not modelled: wear of single blocks in a
/// superblock, slower or less reliable flash with age.
#[derive(Clone, Debug)]
pub struct Collector {
    rules: Collection,
    random: Random,
    /// Choices of a victim, counted for static wear levelling.
    choices: u64,
    victim: Option<Victim>,
    /// Host units in pages that relocations filled: they owe relocations like others.
    host_units_filled: u32,
    /// For each die: the page that collection sensed last.
    pub(super) sensed: Vec<Option<u32>>,
    /// Units of a victim that are examined and relocated together.
    pub(super) group_units: u32,
}

/// A superblock being emptied.
#[derive(Clone, Debug)]
pub struct Victim {
    pub(super) superblock: u32,
    /// The host stream that filled it.
    pub(super) stream: u8,
    /// Why its units are relocated.
    pub(super) cause: Cause,
    /// The offset from which to look for the next valid unit.
    pub(super) next: u32,
    /// The offset up to which map entries were prefetched.
    pub(super) prefetched: u32,
    /// Valid units when it was chosen.
    valid: u32,
    /// Units that it frees: all others.
    gain: u32,
    /// Relocations owed, times `gain`.
    debt: i64,
    /// Whether its erase makes room for any use: not if a static cache is folded.
    makes_room: bool,
}

impl Collector {
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let geometry = &profile.geometry;
        let run_units = geometry.multi_page_units().min(geometry.chunk_units);
        // The largest part of a run that fits into a word of valid bits.
        let fits = |units: &u32| run_units.is_multiple_of(*units);
        Self {
            rules: profile.collection,
            random: Random::new(seed, "victim"),
            choices: 0,
            victim: None,
            host_units_filled: 0,
            sensed: vec![None; geometry.dies() as usize],
            group_units: (1..=64).rev().find(fits).expect("1 divides all"),
        }
    }

    /// Adds host units in a page that relocations filled.
    pub fn add_host_units(&mut self, units: u32) {
        self.host_units_filled += units;
    }

    /// Makes the relocations that a programmed page with `host_units` host units owes, or, if
    /// victims are emptied at once, those that free more superblocks than the reserve.
    pub fn collect_in_step(
        &mut self,
        store: &mut UnitStore,
        host_units: u32,
        at: Nanos,
        media: &mut impl Media,
    ) {
        let reserve = self.rules.reserve as usize;
        let host_units = host_units + std::mem::take(&mut self.host_units_filled);
        if self.rules.pacing == Pacing::Victim {
            return self.collect_while_free(reserve, store, at, media);
        }
        let has_victim = self.victim.as_ref().is_some_and(|victim| victim.makes_room);
        if !has_victim && store.free_count() > reserve {
            return;
        }
        self.choose_victim(store);
        let mut victim = self.victim.take().expect("a victim was chosen");
        victim.debt += i64::from(host_units) * i64::from(victim.valid) * self.pace(store);
        while (victim.debt > 0 || self.must_finish(store))
            && store.superblocks.valid(victim.superblock) > 0
        {
            let (moved, _) = self.relocate_next(store, &mut victim, at, media);
            victim.debt -= i64::from(moved) * i64::from(victim.gain);
        }
        self.keep_or_release(store, victim, at, media);
    }

    /// `CATCHING_UP` while less of the reserve is left than after the frontiers have opened their
    /// superblocks; otherwise 1.
    fn pace(&self, store: &UnitStore) -> i64 {
        let is_short = store.free_count() + FRONTIERS < self.rules.reserve as usize;
        if is_short { CATCHING_UP } else { 1 }
    }

    /// Relocations that share the host's frontier may have taken the last free superblock: then the
    /// victim must be empty before the host fills that one.
    fn must_finish(&self, store: &UnitStore) -> bool {
        self.rules.relocation == Relocation::Mixed && store.free_count() < FREE_KEPT
    }

    /// Collects and erases in the idle time from `from` to `until`, of which the first part,
    /// `ftl.idle_after`, is not used.
    ///
    /// Relocates one page after the other, until the SLC cache is empty and enough superblocks are
    /// free, or collection gains nothing.
    pub fn collect_idle(
        &mut self,
        store: &mut UnitStore,
        from: Nanos,
        until: Nanos,
        media: &mut impl Media,
    ) {
        let mut at = from + self.rules.idle_after;
        while at < until && self.choose_idle_victim(store) {
            let mut victim = self.victim.take().expect("a victim was chosen");
            let gains = victim.gain > 0;
            while gains && at < until && store.superblocks.valid(victim.superblock) > 0 {
                let before = at;
                at = self.relocate_next(store, &mut victim, at, media).1.max(before);
            }
            self.keep_or_release(store, victim, at, media);
            if !gains {
                break;
            }
        }
        store.erase_idle(at, until, media);
    }

    /// Chooses a victim for idle time; false if there is nothing to do. Folding the SLC cache needs
    /// room first: if the cache has its own superblocks, collection must make that room.
    fn choose_idle_victim(&mut self, store: &mut UnitStore) -> bool {
        let (reserve, mut enough) = (self.rules.reserve as usize, self.rules.idle_reserve as usize);
        if store.slc.as_ref().is_some_and(SlcCache::has_full) {
            enough = enough.max(reserve + 1);
        }
        let needs_room = store.free_count() < enough;
        match &self.victim {
            Some(victim) if victim.makes_room => {
                return needs_room || victim.cause == Cause::Folding;
            }
            Some(_) if store.free_count() > reserve => return true,
            _ => {}
        }
        if store.free_count() > reserve && self.begin_folding(store) {
            return true;
        }
        if needs_room && store.superblocks.closed.count() > 0 {
            self.choose_victim(store);
        }
        self.victim.is_some()
    }

    /// Collects until the host may open another superblock.
    pub fn make_room(&mut self, store: &mut UnitStore, at: Nanos, media: &mut impl Media) {
        self.collect_while_free(FREE_KEPT, store, at, media);
    }

    /// Empties victims while at most `count` superblocks are free.
    fn collect_while_free(
        &mut self,
        count: usize,
        store: &mut UnitStore,
        at: Nanos,
        media: &mut impl Media,
    ) {
        while store.free_count() <= count {
            self.choose_victim(store);
            self.finish_victim(store, at, media);
        }
    }

    /// Recovers after a power cut: closes what was being emptied and has valid units again, and
    /// collects until a superblock is free.
    pub fn recover(&mut self, store: &mut UnitStore, now: Nanos, media: &mut impl Media) {
        self.host_units_filled = 0;
        self.sensed.fill(None);
        let victim = self.victim.take().map(|victim| victim.superblock);
        for superblock in store.take_emptied().chain(victim) {
            if store.superblocks.valid(superblock) > 0 {
                store.close(superblock);
            } else {
                store.release(superblock);
            }
        }
        store.erase_emptied(now, media);
        while store.free_count() == 0 {
            if !(store.slc_borrows() && self.begin_folding(store)) {
                let emptiest = store.superblocks.closed.fewest_valid();
                self.begin_victim(store, emptiest, Cause::Collection);
            }
            self.finish_victim(store, now, media);
        }
    }

    /// Relocates all that is left of the victim.
    fn finish_victim(&mut self, store: &mut UnitStore, at: Nanos, media: &mut impl Media) {
        let mut victim = self.victim.take().expect("a victim was chosen");
        while store.superblocks.valid(victim.superblock) > 0 {
            self.relocate_next(store, &mut victim, at, media);
        }
        self.keep_or_release(store, victim, at, media);
    }

    fn keep_or_release(
        &mut self,
        store: &mut UnitStore,
        victim: Victim,
        at: Nanos,
        media: &mut impl Media,
    ) {
        if store.superblocks.valid(victim.superblock) > 0 {
            self.victim = Some(victim);
            return;
        }
        store.release(victim.superblock);
        store.erase_emptied(at, media);
    }

    /// Chooses a victim that makes room, unless there is one already.
    fn choose_victim(&mut self, store: &mut UnitStore) {
        self.postpone_folding(store);
        if self.victim.is_some() {
            return;
        }
        if store.slc_borrows() && self.begin_folding(store) {
            return;
        }
        if let Some(least_worn) = self.least_worn(store) {
            return self.begin_victim(store, least_worn, Cause::Wear);
        }
        let (closed, now) = (&mut store.superblocks.closed, store.counters.host_writes);
        let chosen = victim::choose(self.rules.victim, closed, now, &mut self.random);
        self.begin_victim(store, chosen, Cause::Collection);
    }

    /// The superblock that static wear levelling must collect, if any.
    fn least_worn(&mut self, store: &UnitStore) -> Option<u32> {
        let WearLevelling::Static { spread } = self.rules.wear else { return None };
        self.choices += 1;
        if !self.choices.is_multiple_of(WEAR_CHECK_INTERVAL) {
            return None;
        }
        let (superblock, erases) = store.superblocks.least_worn_closed()?;
        (store.superblocks.erases_most > erases + spread).then_some(superblock)
    }

    fn begin_victim(&mut self, store: &mut UnitStore, superblock: u32, cause: Cause) {
        store.superblocks.take_victim(superblock);
        let valid = store.superblocks.valid(superblock);
        self.victim = Some(Victim {
            superblock,
            stream: store.superblocks.stream(superblock),
            cause,
            next: 0,
            prefetched: 0,
            valid,
            gain: store.superblock_units - valid,
            debt: 0,
            makes_room: cause != Cause::Folding || store.slc_borrows(),
        });
        self.sensed.fill(None);
    }

    /// Makes the SLC cache's oldest superblock the victim, if there is one.
    fn begin_folding(&mut self, store: &mut UnitStore) -> bool {
        let oldest = store.slc.as_mut().and_then(SlcCache::take_oldest);
        let Some(superblock) = oldest else { return false };
        self.begin_victim(store, superblock, Cause::Folding);
        true
    }

    /// Postpones the folding of a static cache, which uses up room, because room is needed.
    fn postpone_folding(&mut self, store: &mut UnitStore) {
        let Some(victim) = self.victim.take_if(|victim| !victim.makes_room) else { return };
        store.superblocks.close_slc(victim.superblock);
        store.slc.as_mut().expect("only an SLC cache is folded").put_back(victim.superblock);
    }
}
