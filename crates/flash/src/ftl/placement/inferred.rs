//! `Inferred`: the rules of `hinted`, with hints that the drive guesses for hosts that give none.
//!
//! Modelled: a sequential write goes where the previous one would have continued; any other write
//! to a mapped unit counts as an overwrite, and one to an unmapped unit as an append to the unit
//! with the previous number. Hints from the host take precedence.
//!
//! Differs from hardware: no drive is known to do this. A file whose pieces do not have consecutive
//! numbers is not recognised: only the host knows that they belong together.

use super::hinted::Hinted;
use super::{Hint, Lane, UnitLocator};
use crate::ftl::map::Lpn;

/// `Hinted`, and the unit that the host wrote last.
#[derive(Clone, Debug)]
pub struct Inferred {
    pub hinted: Hinted,
    pub last: Option<Lpn>,
}

impl Inferred {
    /// The die for a write without a hint.
    #[inline]
    fn guess(&self, lpn: Lpn, locator: UnitLocator<'_>) -> Option<u32> {
        let before = lpn.0.checked_sub(1).map(Lpn);
        if before.is_some() && self.last == before {
            return None;
        }
        let after = || Some(self.hinted.after(locator.die(before?)?));
        locator.die(lpn).or_else(after)
    }

    #[inline]
    pub fn host(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) -> Lane {
        let guessed = (hint == Hint::None).then(|| self.guess(lpn, locator));
        self.last = Some(lpn);
        match guessed {
            Some(die) => self.hinted.lane(die),
            None => self.hinted.host(lpn, hint, locator),
        }
    }
}
