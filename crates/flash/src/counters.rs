//! What a drive counts of its own life, and the write amplification that follows.

use crate::cause::Cause;

/// Counts since the twin was made, in mapping units where not said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes in a mapping unit.
    pub unit_bytes: u64,
    /// Units that the host wrote, in whole or in part.
    pub host_writes: u64,
    /// Bytes that the host wrote.
    pub host_write_bytes: u64,
    /// Units that the host wrote and a power cut took before they were programmed.
    pub host_writes_lost: u64,
    /// Units of zeros that the host wrote and that only the map knows of (`elides_zeros`).
    pub host_writes_elided: u64,
    /// Units that the host read.
    pub host_reads: u64,
    /// Units that the host trimmed.
    pub host_trims: u64,
    /// Units that collection moved.
    pub collection_moves: u64,
    /// Units that wear levelling moved.
    pub wear_moves: u64,
    /// Units that were folded: moved out of the SLC cache.
    pub folding_moves: u64,
    /// Units that were written again to lie on one page with others of their file.
    pub packing_moves: u64,
    /// Units programmed for host writes.
    pub nand_host_writes: u64,
    /// Units programmed because collection moved them.
    pub nand_collection_writes: u64,
    /// Units programmed because wear levelling moved them.
    pub nand_wear_writes: u64,
    /// Units programmed because they were folded.
    pub nand_folding_writes: u64,
    /// Units programmed because they were written again for packing.
    pub nand_packing_writes: u64,
    /// Units programmed to store pages of the map that had to leave memory.
    pub nand_mapping_writes: u64,
    /// Units programmed empty because a flush closed a page before it was full.
    pub nand_padding_writes: u64,
    /// Units of the host that went to another die than their placement named, which had no room;
    /// without those that only followed them there.
    pub displaced_writes: u64,
    /// Moved units that went to another die than their own, which had no room.
    pub displaced_moves: u64,
    /// Page senses for host reads; planes sensed together count once.
    pub host_senses: u64,
    /// Page senses for collection.
    pub collection_senses: u64,
    /// Page senses to bring a part of the map into memory.
    pub mapping_senses: u64,
    /// Erase operations; planes erased together count once.
    pub erases: u64,
}

impl Counters {
    /// Units moved for a cause.
    ///
    /// # Panics
    /// Where nothing is moved for that cause.
    pub(crate) fn moves(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Collection => &mut self.collection_moves,
            Cause::Wear => &mut self.wear_moves,
            Cause::Folding => &mut self.folding_moves,
            Cause::Packing => &mut self.packing_moves,
            Cause::Host | Cause::Padding => panic!("{cause:?} moves nothing"),
        }
    }

    /// Units programmed for whatever cause.
    pub fn nand_writes(&self) -> u64 {
        self.nand_host_writes
            + self.nand_collection_writes
            + self.nand_wear_writes
            + self.nand_folding_writes
            + self.nand_packing_writes
            + self.nand_mapping_writes
            + self.nand_padding_writes
    }

    /// Write amplification: flash writes per host write, in bytes; `None` before the first one.
    ///
    /// What still waits in the buffer counts as host writes but not yet as flash writes.
    pub fn waf(&self) -> Option<f64> {
        let flash = self.nand_writes() * self.unit_bytes;
        (self.host_write_bytes > 0).then(|| flash as f64 / self.host_write_bytes as f64)
    }
}

/// How worn a drive is: erases of its superblocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Of the least worn one.
    pub erases_least: u32,
    /// On average.
    pub erases_mean: f64,
    /// Of the most worn one.
    pub erases_most: u32,
    /// The average in per cent of the P/E cycles that the flash is sold for, which may pass 100;
    /// `None` where the profile does not say how many (`flash.endurance`).
    pub percentage_used: Option<f64>,
}

impl Wear {
    /// The wear of superblocks that were erased so often.
    ///
    /// # Panics
    /// Without any superblock.
    pub fn new(erases: impl Iterator<Item = u32> + Clone, endurance: Option<u32>) -> Self {
        let count = erases.clone().count() as f64;
        let sum: f64 = erases.clone().map(f64::from).sum();
        let used = |cycles: u32| 100.0 * sum / count / f64::from(cycles);
        Self {
            erases_least: erases.clone().min().expect("a drive has superblocks"),
            erases_mean: sum / count,
            erases_most: erases.max().expect("a drive has superblocks"),
            percentage_used: endurance.map(used),
        }
    }
}
