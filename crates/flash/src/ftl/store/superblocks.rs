//! `Superblocks`: the state, valid count and content of each superblock, and which are free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::closed::Closed;
use crate::config::{Profile, WearLevelling};
use crate::counters::Cause;
use crate::ftl::map::{Lpn, P2l};
use crate::nand::{Place, Ppn, Splitter};
use SuperblockState as State;

/// The state of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperblockState {
    /// Erased: waiting to be filled.
    Free,
    /// Being filled by a frontier.
    Open,
    /// Full: a possible victim.
    Closed,
    /// Being emptied by collection.
    Victim,
    /// Emptied: erased as soon as its former units are safe elsewhere.
    Empty,
    /// Out of service: its good blocks replaced bad ones.
    Retired,
}

/// A superblock in the translation layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Its state.
    pub state: SuperblockState,
    /// Its valid count.
    pub valid: u32,
    /// Its erase count.
    pub erases: u32,
    /// Whether it is in the SLC cache: it holds one bit per cell.
    pub slc: bool,
    /// The host stream that fills or filled it; 0 if streams are not separated.
    pub stream: u8,
}

/// The last page that was programmed in a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWrite {
    /// Why most of its units were written.
    pub cause: Cause,
    /// Units that the host had written then.
    pub host_writes: u64,
}

/// The wear of a drive: erase counts of its superblocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// The lowest erase count.
    pub erases_least: u32,
    /// The mean erase count.
    pub erases_mean: f64,
    /// The highest erase count.
    pub erases_most: u32,
    /// The mean in percent of the rated P/E cycles, possibly more than 100; `None` if the profile
    /// does not state them (`flash.endurance`).
    pub percentage_used: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct Superblocks {
    pub splitter: Splitter,
    has_slc: bool,
    /// By number.
    pub table: Vec<Superblock>,
    /// By number: the last write since the superblock was erased. Not in `table`, which each host
    /// write reads at random.
    pub last_writes: Vec<Option<LastWrite>>,
    /// By erase count, if wear is levelled, then by how long they have been free.
    free: BinaryHeap<Reverse<(u32, u64, u32)>>,
    /// The number of times that a superblock became free.
    frees: u64,
    levels_wear: bool,
    /// The erase count of the most worn superblock.
    pub erases_most: u32,
    /// The possible victims.
    pub closed: Closed,
    /// The unit and validity of each address.
    pub p2l: P2l,
}

impl Superblocks {
    /// All erased. The first ones may be set apart for an SLC cache: they are never free.
    pub fn new(profile: &Profile) -> Self {
        let geometry = &profile.geometry;
        let erased = Superblock { state: State::Free, valid: 0, erases: 0, slc: false, stream: 0 };
        let free = profile.superblocks_apart()..geometry.blocks_per_plane;
        Self {
            splitter: Splitter::new(geometry),
            has_slc: profile.slc.is_some(),
            table: vec![erased; geometry.blocks_per_plane as usize],
            last_writes: vec![None; geometry.blocks_per_plane as usize],
            free: free.map(|i| Reverse((0, u64::from(i), i))).collect(),
            frees: u64::from(geometry.blocks_per_plane),
            levels_wear: profile.collection.wear != WearLevelling::None,
            erases_most: 0,
            closed: Closed::new(geometry.blocks_per_plane, geometry.superblock_units()),
            p2l: P2l::new(geometry.units()),
        }
    }

    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Opens a free superblock: the one erased least often if wear is levelled; among equals, and
    /// without wear levelling, the one that has been free for longest.
    pub fn take_free(&mut self) -> u32 {
        let next = self.free.pop();
        let Reverse((_, _, superblock)) = next.expect("collection keeps a free superblock");
        self.table[superblock as usize].state = State::Open;
        superblock
    }

    /// Makes a full superblock a possible victim. `now` is the number of units that the host has
    /// written.
    pub fn close(&mut self, superblock: u32, now: u64) {
        let entry = &mut self.table[superblock as usize];
        entry.state = State::Closed;
        self.closed.add(superblock, entry.valid, now);
    }

    /// Marks a closed superblock as the victim.
    pub fn take_victim(&mut self, superblock: u32) {
        let entry = &mut self.table[superblock as usize];
        entry.state = State::Victim;
        if !entry.slc {
            self.closed.remove(superblock);
        }
    }

    /// Marks a superblock without valid units as emptied: it waits to be erased.
    pub fn empty(&mut self, superblock: u32) {
        assert_eq!(self.valid(superblock), 0, "superblock {superblock} still has valid units");
        self.table[superblock as usize].state = State::Empty;
    }

    /// Erases an emptied superblock; returns its erase count. The caller frees or retires it.
    pub fn erase(&mut self, superblock: u32) -> u32 {
        let entry = &mut self.table[superblock as usize];
        assert_eq!(entry.valid, 0, "superblock {superblock} is erased with valid units");
        entry.state = State::Free;
        entry.slc = false;
        entry.stream = 0;
        entry.erases += 1;
        self.last_writes[superblock as usize] = None;
        self.erases_most = self.erases_most.max(entry.erases);
        entry.erases
    }

    /// Adds an erased superblock to the free ones.
    pub fn set_free(&mut self, superblock: u32) {
        let erases = self.table[superblock as usize].erases;
        let wear = if self.levels_wear { erases } else { 0 };
        self.free.push(Reverse((wear, self.frees, superblock)));
        self.frees += 1;
    }

    /// Takes an erased superblock out of service.
    pub fn retire(&mut self, superblock: u32) {
        self.table[superblock as usize].state = State::Retired;
    }

    pub fn set_stream(&mut self, superblock: u32, stream: u8) {
        self.table[superblock as usize].stream = stream;
    }

    /// The host stream that filled a superblock.
    pub fn stream(&self, superblock: u32) -> u8 {
        self.table[superblock as usize].stream
    }

    /// Opens an erased superblock for the SLC cache.
    pub fn open_slc(&mut self, superblock: u32) {
        let entry = &mut self.table[superblock as usize];
        entry.state = State::Open;
        entry.slc = true;
    }

    /// Closes a superblock of the SLC cache: it is not a possible victim of collection.
    pub fn close_slc(&mut self, superblock: u32) {
        self.table[superblock as usize].state = State::Closed;
    }

    #[inline]
    pub fn is_slc(&self, superblock: u32) -> bool {
        self.table[superblock as usize].slc
    }

    /// The die and page of a superblock's unit.
    #[inline]
    pub fn place(&self, superblock: u32, offset: u32) -> Place {
        let slc = self.has_slc && self.is_slc(superblock);
        Place { slc, ..self.splitter.place(superblock, offset) }
    }

    /// Records that a unit is written to an address.
    #[inline]
    pub fn assign(&mut self, superblock: u32, ppn: Ppn, lpn: Lpn) {
        self.p2l.set(ppn, lpn);
        self.table[superblock as usize].valid += 1;
    }

    /// Makes an address valid again, after a power cut.
    pub fn restore(&mut self, superblock: u32, ppn: Ppn) {
        assert!(!self.p2l.is_valid(ppn), "the restored address was invalid");
        self.p2l.restore(ppn);
        self.table[superblock as usize].valid += 1;
        self.closed.gain_unit(superblock);
    }

    /// Makes an address invalid.
    #[inline]
    pub fn invalidate(&mut self, ppn: Ppn) {
        let (superblock, _) = self.splitter.superblock(ppn);
        self.p2l.invalidate(ppn);
        self.table[superblock as usize].valid -= 1;
        self.closed.lose_unit(superblock);
    }

    /// Makes addresses of the victim invalid: those of `mask`, counted from `first`.
    #[inline]
    pub fn invalidate_mask(&mut self, superblock: u32, first: Ppn, mask: u64) {
        self.p2l.invalidate_mask(first, mask);
        self.table[superblock as usize].valid -= mask.count_ones();
    }

    pub fn valid(&self, superblock: u32) -> u32 {
        self.table[superblock as usize].valid
    }

    /// The closed superblock erased least often, and its erase count.
    pub fn least_worn_closed(&self) -> Option<(u32, u32)> {
        let erases = |superblock: u32| self.table[superblock as usize].erases;
        let all = (0..self.closed.count()).map(|index| self.closed.at(index));
        all.map(|superblock| (superblock, erases(superblock)))
            .min_by_key(|(superblock, erases)| (*erases, *superblock))
    }

    pub fn is_free(&self, superblock: u32) -> bool {
        self.table[superblock as usize].state == State::Free
    }

    /// The wear of the flash, rated for `endurance` P/E cycles.
    pub fn wear(&self, endurance: Option<u32>) -> Wear {
        let erases = self.table.iter().map(|superblock| superblock.erases);
        let count = self.table.len() as f64;
        let sum: f64 = erases.clone().map(f64::from).sum();
        Wear {
            erases_least: erases.min().expect("a drive has superblocks"),
            erases_mean: sum / count,
            erases_most: self.erases_most,
            percentage_used: endurance.map(|cycles| 100.0 * sum / count / f64::from(cycles)),
        }
    }

    pub fn valid_sum(&self) -> u64 {
        self.table.iter().map(|entry| u64::from(entry.valid)).sum()
    }
}
