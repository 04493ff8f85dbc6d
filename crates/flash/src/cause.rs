//! `Cause`: why a unit is written to flash.

/// Why a unit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Collection moved it.
    Collection,
    /// Wear levelling moved it.
    Wear,
    /// It was moved out of the SLC cache.
    Folding,
    /// A page had to be programmed before it was full.
    Padding,
    /// A piece of a page was put together with others of its file.
    Packing,
}

impl Cause {
    /// How many there are; `cause as usize` is below it.
    pub const COUNT: usize = 6;
}
