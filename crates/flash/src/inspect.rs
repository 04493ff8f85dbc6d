//! The internal state of a twin, for lessons, tests and a server's maps: where a unit is, and the
//! superblocks.
//!
//! Read-only, and not part of the `Device` contract: a real drive does not report this. See
//! `Ssd::locate` and `Ssd::superblocks`.

/// Where the current content of a mapping unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitLocation {
    /// Never written, or trimmed.
    Unmapped,
    /// In the controller's memory: its page is partly filled or being programmed.
    Buffer,
    /// In flash.
    Flash {
        /// Die, from 0; its channel is `die % channels`.
        die: u32,
        /// Block in each plane of that die; also the number of the superblock.
        block: u32,
        /// (Multi-plane) page in that block.
        page: u32,
    },
}

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
