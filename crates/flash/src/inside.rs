//! What a twin's insides look like to those who may see them: lessons, tests, a server's own maps.
//!
//! Read-only, and no part of the `Device` contract: no host learns this of a real drive.
//! `Ssd::whereabouts` and `Ssd::superblocks` answer.

/// Where the current content of a mapping unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Nowhere: never written, or trimmed.
    Nowhere,
    /// In the controller's memory: its page is not full yet, or being programmed.
    Buffer,
    /// In flash.
    Flash {
        /// Die, from 0; its channel is `die % channels`.
        die: u32,
        /// Block of each plane of that die, which is also the number of the superblock.
        block: u32,
        /// (Multi-plane) page in that block.
        page: u32,
    },
}

/// What a superblock is there for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperblockState {
    /// Erased: waits to be filled.
    Free,
    /// A frontier fills it.
    Open,
    /// Full: a possible victim.
    Closed,
    /// Being emptied by collection.
    Victim,
    /// Emptied: erased as soon as what it held is safe elsewhere.
    Empty,
    /// Given up: its good blocks took the place of bad ones.
    Retired,
}

/// A superblock as the translation layer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// What it is there for.
    pub state: SuperblockState,
    /// Units in it that are current.
    pub valid: u32,
    /// How often it was erased.
    pub erases: u32,
    /// Whether it holds one bit a cell now: it is in the SLC cache.
    pub slc: bool,
    /// Which of the host's streams fills or filled it; 0 where there is only one.
    pub stream: u8,
}
