//! `Superblocks`: what each holds (P2L, valid units, valid counts) and which are free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::closed::Closed;
use super::map::{Lpn, table};
use super::victim::Candidates;
use crate::config::{Profile, WearLevelling};
use crate::inside::{Superblock, SuperblockState as State};
use crate::nand::Ppn;

/// All superblocks of a drive.
#[derive(Clone, Debug)]
pub struct Superblocks {
    table: Vec<Superblock>,
    /// By erases, where wear is levelled, then by how long they have been free.
    free: BinaryHeap<Reverse<(u32, u64, u32)>>,
    frees: u64,
    levels_wear: bool,
    erases_most: u32,
    closed: Closed,
    /// The unit that each address was written for; meaningful where the address is valid.
    p2l: Vec<u32>,
    valid_bits: Vec<u64>,
}

impl Superblocks {
    /// All erased. The first ones may be set apart for an SLC cache: they are never free.
    pub fn new(profile: &Profile) -> Self {
        let geometry = &profile.geometry;
        let erased = Superblock { state: State::Free, valid: 0, erases: 0, slc: false, stream: 0 };
        let free = profile.superblocks_apart()..geometry.blocks_per_plane;
        let units = geometry.units() as usize;
        Self {
            table: vec![erased; geometry.blocks_per_plane as usize],
            free: free.map(|i| Reverse((0, u64::from(i), i))).collect(),
            frees: u64::from(geometry.blocks_per_plane),
            levels_wear: profile.collection.wear != WearLevelling::None,
            erases_most: 0,
            closed: Closed::new(geometry.blocks_per_plane, geometry.superblock_units()),
            p2l: table::zeros(units),
            valid_bits: table::zeros(units.div_ceil(64)),
        }
    }

    /// How many are erased and not yet open.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Opens the one erased least often, where wear is levelled; of equals, and else, the one that
    /// has been free for longest.
    ///
    /// # Panics
    /// When none is free: collection must keep one in reserve.
    pub fn take_free(&mut self) -> u32 {
        let Reverse((_, _, superblock)) =
            self.free.pop().expect("collection keeps a free superblock");
        self.table[superblock as usize].state = State::Open;
        superblock
    }

    /// Makes a full one a possible victim, at a time counted in units that the host wrote.
    pub fn close(&mut self, superblock: u32, now: u64) {
        let entry = &mut self.table[superblock as usize];
        entry.state = State::Closed;
        self.closed.add(superblock, entry.valid, now);
    }

    /// The possible victims.
    pub fn closed(&mut self) -> &mut Closed {
        &mut self.closed
    }

    /// Takes a victim to be emptied.
    pub fn take_victim(&mut self, superblock: u32) {
        let entry = &mut self.table[superblock as usize];
        entry.state = State::Victim;
        if !entry.slc {
            self.closed.remove(superblock);
        }
    }

    /// Notes that one may be erased as soon as what it held is safe elsewhere.
    pub fn empty(&mut self, superblock: u32) {
        assert_eq!(self.valid(superblock), 0, "superblock {superblock} is emptied, not yet empty");
        self.table[superblock as usize].state = State::Empty;
    }

    /// Erases an emptied one. Who erased it then says what becomes of it.
    pub fn erase(&mut self, superblock: u32) {
        let entry = &mut self.table[superblock as usize];
        assert_eq!(entry.valid, 0, "superblock {superblock} is erased with valid units");
        entry.state = State::Free;
        entry.slc = false;
        entry.stream = 0;
        entry.erases += 1;
        self.erases_most = self.erases_most.max(entry.erases);
    }

    /// Makes an erased one available.
    pub fn set_free(&mut self, superblock: u32) {
        let erases = self.table[superblock as usize].erases;
        let wear = if self.levels_wear { erases } else { 0 };
        self.free.push(Reverse((wear, self.frees, superblock)));
        self.frees += 1;
    }

    /// Gives an erased one up.
    pub fn retire(&mut self, superblock: u32) {
        self.table[superblock as usize].state = State::Retired;
    }

    /// Notes which of the host's streams fills it.
    pub fn set_stream(&mut self, superblock: u32, stream: u8) {
        self.table[superblock as usize].stream = stream;
    }

    /// Which of the host's streams filled it.
    pub fn stream(&self, superblock: u32) -> u8 {
        self.table[superblock as usize].stream
    }

    /// Opens an erased one for the SLC cache.
    pub fn open_slc(&mut self, superblock: u32) {
        let entry = &mut self.table[superblock as usize];
        entry.state = State::Open;
        entry.slc = true;
    }

    /// Notes that one of the SLC cache is full: not a possible victim of collection.
    pub fn close_slc(&mut self, superblock: u32) {
        self.table[superblock as usize].state = State::Closed;
    }

    /// Whether it is in the SLC cache.
    #[inline]
    pub fn is_slc(&self, superblock: u32) -> bool {
        self.table[superblock as usize].slc
    }

    /// Notes that an address now holds this unit.
    #[inline]
    pub fn assign(&mut self, superblock: u32, ppn: Ppn, lpn: Lpn) {
        self.p2l[ppn.0 as usize] = lpn.0;
        self.valid_bits[ppn.0 as usize / 64] |= 1 << (ppn.0 % 64);
        self.table[superblock as usize].valid += 1;
    }

    /// Fetches an address's valid bit into the cache.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        table::prefetch(&self.valid_bits, ppn.0 as usize / 64);
    }

    /// Notes that an address holds a unit's current content again, after a power cut.
    pub fn restore(&mut self, superblock: u32, ppn: Ppn) {
        assert!(!self.is_valid(ppn), "an address is restored that was never given up");
        self.valid_bits[ppn.0 as usize / 64] |= 1 << (ppn.0 % 64);
        self.table[superblock as usize].valid += 1;
        self.closed.gain_unit(superblock);
    }

    /// Notes that an address holds nothing that is needed.
    #[inline]
    pub fn invalidate(&mut self, superblock: u32, ppn: Ppn) {
        self.valid_bits[ppn.0 as usize / 64] &= !(1 << (ppn.0 % 64));
        self.table[superblock as usize].valid -= 1;
        self.closed.lose_unit(superblock);
    }

    /// Which of up to 64 addresses from `first` on are valid: bit 0 is the first.
    #[inline]
    pub fn valid_mask(&self, first: Ppn, units: u32) -> u64 {
        let (word, shift) = (first.0 as usize / 64, first.0 % 64);
        let mut bits = self.valid_bits[word] >> shift;
        if shift + units > 64 {
            bits |= self.valid_bits[word + 1] << (64 - shift);
        }
        bits & (u64::MAX >> (64 - units))
    }

    /// Notes that the addresses of `mask`, counted from `first` on, hold nothing that is needed.
    #[inline]
    pub fn unassign(&mut self, superblock: u32, first: Ppn, mask: u64) {
        let (word, shift) = (first.0 as usize / 64, first.0 % 64);
        self.valid_bits[word] &= !(mask << shift);
        if shift > 0 && mask >> (64 - shift) > 0 {
            self.valid_bits[word + 1] &= !(mask >> (64 - shift));
        }
        self.table[superblock as usize].valid -= mask.count_ones();
    }

    /// Whether an address holds a unit's current content.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid_bits[ppn.0 as usize / 64] >> (ppn.0 % 64) & 1 == 1
    }

    /// The unit that was written to an address.
    #[inline]
    pub fn lpn(&self, ppn: Ppn) -> Lpn {
        Lpn(self.p2l[ppn.0 as usize])
    }

    /// How many units of a superblock are valid.
    pub fn valid(&self, superblock: u32) -> u32 {
        self.table[superblock as usize].valid
    }

    /// Erases of the most worn superblock.
    pub fn erases_most(&self) -> u32 {
        self.erases_most
    }

    /// The full superblock erased least often, and how often.
    pub fn least_worn_closed(&self) -> Option<(u32, u32)> {
        let erases = |superblock: u32| self.table[superblock as usize].erases;
        let all = (0..self.closed.count()).map(|index| self.closed.at(index));
        all.map(|superblock| (superblock, erases(superblock)))
            .min_by_key(|(superblock, erases)| (*erases, *superblock))
    }

    /// Erases of each superblock.
    pub fn erases(&self) -> impl Iterator<Item = u32> + Clone {
        self.table.iter().map(|entry| entry.erases)
    }

    /// All of them, by number.
    pub fn all(&self) -> &[Superblock] {
        &self.table
    }

    /// Whether it is erased.
    pub fn is_free(&self, superblock: u32) -> bool {
        self.table[superblock as usize].state == State::Free
    }

    /// All valid units, by their bits.
    pub fn valid_counted(&self) -> u64 {
        self.valid_bits.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// All valid units, by the counts of the superblocks.
    pub fn valid_summed(&self) -> u64 {
        self.table.iter().map(|entry| u64::from(entry.valid)).sum()
    }
}
