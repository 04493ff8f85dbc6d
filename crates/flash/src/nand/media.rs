//! `Media`: the flash operations of the translation layer; `Untimed` has no timing, for studies of
//! counts.

use ssdlab_time::Nanos;

use super::Place;

/// The flash operations of the translation layer. Each returns the time at which it is done.
pub trait Media {
    /// Senses a page for collection and transfers its units to the controller.
    fn fetch(&mut self, place: Place, at: Nanos, units: u32) -> Nanos;

    /// Transfers units of a page that is already in the die's register to the controller.
    fn fetch_again(&mut self, die: u32, at: Nanos, units: u32) -> Nanos;

    /// Transfers a multi-plane page to its die and programs it.
    fn program(&mut self, place: Place, ready: Nanos) -> Nanos;

    /// Erases one block of each plane of a die.
    fn erase(&mut self, die: u32, at: Nanos) -> Nanos;
}

/// Flash whose operations take no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed;

impl Media for Untimed {
    fn fetch(&mut self, _place: Place, at: Nanos, _units: u32) -> Nanos {
        at
    }

    fn fetch_again(&mut self, _die: u32, at: Nanos, _units: u32) -> Nanos {
        at
    }

    fn program(&mut self, _place: Place, ready: Nanos) -> Nanos {
        ready
    }

    fn erase(&mut self, _die: u32, at: Nanos) -> Nanos {
        at
    }
}
