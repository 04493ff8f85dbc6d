//! `Cause`: why a unit is written to flash.

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
}
