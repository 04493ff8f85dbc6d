//! The counters of a drive, and its write amplification.

/// Why a unit is written to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Collection relocated it.
    Collection,
    /// Wear levelling relocated it.
    Wear,
    /// It was folded: moved out of the SLC cache.
    Folding,
    /// It fills the rest of a page that had to be programmed.
    Padding,
    /// It was rewritten to share a page with other units of its file.
    Packing,
}

impl Cause {
    /// The number of causes; `cause as usize` is less.
    pub const COUNT: usize = 6;

    /// All causes; `ALL[cause as usize]` is `cause`.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Host, Self::Collection, Self::Wear, Self::Folding, Self::Padding, Self::Packing];
}

/// Counts since the twin was created, in mapping units unless noted otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes in a mapping unit.
    pub unit_bytes: u64,
    /// Units that the host wrote, in whole or in part; writes that are merged count once.
    pub host_writes: u64,
    /// Bytes that the host wrote.
    pub host_write_bytes: u64,
    /// Units that the host wrote and that a power cut lost before they were programmed.
    pub host_writes_lost: u64,
    /// Units of zeros that the host wrote and that only the map records (`elides_zeros`).
    pub host_writes_elided: u64,
    /// Units that the host read.
    pub host_reads: u64,
    /// Units that the host trimmed.
    pub host_trims: u64,
    /// Units that collection relocated.
    pub collection_moves: u64,
    /// Units that wear levelling relocated.
    pub wear_moves: u64,
    /// Units that were folded: moved out of the SLC cache.
    pub folding_moves: u64,
    /// Units that were rewritten to share a page with other units of their file.
    pub packing_moves: u64,
    /// Units programmed for host writes.
    pub nand_host_writes: u64,
    /// Units programmed because collection relocated them.
    pub nand_collection_writes: u64,
    /// Units programmed because wear levelling relocated them.
    pub nand_wear_writes: u64,
    /// Units programmed because they were folded.
    pub nand_folding_writes: u64,
    /// Units programmed because packing rewrote them.
    pub nand_packing_writes: u64,
    /// Units programmed to store dirty map pages evicted from memory.
    pub nand_mapping_writes: u64,
    /// Padding units, programmed because a page had to be programmed before it was full.
    pub nand_padding_writes: u64,
    /// Host units that went to another die because the die of their placement had no room, without
    /// units that only followed them there.
    pub displaced_writes: u64,
    /// Relocated units that went to another die because their own had no room.
    pub displaced_moves: u64,
    /// Page senses for host reads; planes sensed together count once.
    pub host_senses: u64,
    /// Page senses for collection.
    pub collection_senses: u64,
    /// Page senses to read map pages.
    pub mapping_senses: u64,
    /// Erase operations; planes erased together count once.
    pub erases: u64,
}

impl Counters {
    /// Those that users see, by name.
    pub fn named(&self) -> [(&'static str, u64); 22] {
        [
            ("host_writes", self.host_writes),
            ("host_writes_elided", self.host_writes_elided),
            ("host_reads", self.host_reads),
            ("host_trims", self.host_trims),
            ("collection_moves", self.collection_moves),
            ("nand_host_writes", self.nand_host_writes),
            ("nand_collection_writes", self.nand_collection_writes),
            ("wear_moves", self.wear_moves),
            ("nand_wear_writes", self.nand_wear_writes),
            ("folding_moves", self.folding_moves),
            ("nand_folding_writes", self.nand_folding_writes),
            ("packing_moves", self.packing_moves),
            ("nand_packing_writes", self.nand_packing_writes),
            ("displaced_writes", self.displaced_writes),
            ("displaced_moves", self.displaced_moves),
            ("host_write_bytes", self.host_write_bytes),
            ("nand_mapping_writes", self.nand_mapping_writes),
            ("mapping_senses", self.mapping_senses),
            ("nand_padding_writes", self.nand_padding_writes),
            ("host_senses", self.host_senses),
            ("collection_senses", self.collection_senses),
            ("erases", self.erases),
        ]
    }

    /// The count of units moved for a cause for which units are moved.
    pub(crate) fn moves(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Collection => &mut self.collection_moves,
            Cause::Wear => &mut self.wear_moves,
            Cause::Folding => &mut self.folding_moves,
            Cause::Packing => &mut self.packing_moves,
            Cause::Host | Cause::Padding => panic!("{cause:?} moves nothing"),
        }
    }

    /// Units programmed for any cause.
    pub fn nand_writes(&self) -> u64 {
        self.nand_host_writes
            + self.nand_collection_writes
            + self.nand_wear_writes
            + self.nand_folding_writes
            + self.nand_packing_writes
            + self.nand_mapping_writes
            + self.nand_padding_writes
    }

    /// Write amplification: flash writes per host write, in bytes; `None` before the first host
    /// write.
    ///
    /// Units in the buffer count as host writes but not yet as flash writes.
    pub fn waf(&self) -> Option<f64> {
        let flash = self.nand_writes() * self.unit_bytes;
        (self.host_write_bytes > 0).then(|| flash as f64 / self.host_write_bytes as f64)
    }
}
