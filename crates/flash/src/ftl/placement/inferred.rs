//! `Inferred`: the rules of `hinted` by what the drive can know itself, for hosts that say nothing.
//!
//! Modelled: a write that goes on where the last one ended goes where that would have gone on; of
//! others one to a unit that is mapped is taken for an overwrite, and one to a unit that is not for
//! an append to the unit before it by number. What the host says goes before what is guessed.
//!
//! Differs from hardware: no drive is known to do this. A file whose pieces are not neighbours by
//! number is not recognised: only the host knows that they belong together.

use super::hinted::Hinted;
use super::{Hint, Lane, Origin, Placement, Sites, Slot};
use crate::ftl::map::Lpn;

/// `Hinted`, and the unit that the host wrote last.
#[derive(Clone, Debug)]
pub struct Inferred {
    hinted: Hinted,
    last: Option<Lpn>,
}

impl Inferred {
    /// The rule for the frontiers of these.
    pub fn new(hinted: Hinted) -> Self {
        Self { hinted, last: None }
    }

    /// The die for a write that says nothing of itself.
    #[inline]
    fn guess(&self, lpn: Lpn, sites: Sites<'_>) -> Option<u32> {
        let before = lpn.0.checked_sub(1).map(Lpn);
        if before.is_some() && self.last == before {
            return None;
        }
        let after = || Some(self.hinted.after(sites.die(before?)?));
        sites.die(lpn).or_else(after)
    }
}

impl Placement for Inferred {
    #[inline]
    fn host(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) -> Lane {
        let guessed = (hint == Hint::None).then(|| self.guess(lpn, sites));
        self.last = Some(lpn);
        match guessed {
            Some(die) => self.hinted.at(die),
            None => self.hinted.host(lpn, hint, sites),
        }
    }

    #[inline]
    fn moved(&self, from: Origin) -> Lane {
        self.hinted.moved(from)
    }

    fn displaced(&mut self, lane: Lane) {
        self.hinted.displaced(lane);
    }

    fn ended_run(&mut self, slot: &Slot) {
        self.hinted.ended_run(slot);
    }
}
