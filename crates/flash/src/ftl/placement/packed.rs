//! `Packed`: what a file gets in pieces smaller than a page is put together on one page.
//!
//! Modelled: two frontiers for the host, each with a lane a die. A command with a page of a file,
//! or more, fills *whole* pages on one die after the other; what is smaller goes *loose*, wherever
//! the next place is, and is remembered, by file. As soon as the pieces of a file and what a
//! command adds to them make a page, they are written again together with that, to a whole page on
//! the die after that of the file's last one. Which file that is the host says (an append after a
//! block, a stream); where it says nothing it is guessed as `inferred` does. Pieces that came one
//! after the other with nothing between lie in order as they are, and stay.
//!
//! What is written again is counted (`packing_moves`), and comes from the controller's memory, not
//! from flash: beside the write buffer there is room for a page of each of 64 files. The file that
//! rested longest gives up its place; its pieces stay where they are. A flush has nothing more to
//! wait for than on other drives: loose pieces are programmed, padded where they must be, so that a
//! power cut takes no more either; the copy in memory is lost with the power.
//!
//! Differs from hardware: no drive is known to do this. Where capacitors protect the buffer, pieces
//! could wait in it and be written once.

use super::hinted::Hinted;
use super::{Frontiers, Hint, Lane, Origin, Placement, Sites, Slot};
use crate::ftl::map::Lpn;
use crate::nand::Geometry;

/// Files whose pieces are remembered at a time, beside the one that is being written.
const FILES_MOST: usize = 64;

/// How writes are known to belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    /// The host says so: the next append names this unit.
    Told(Lpn),
    /// The next unit by number is taken for its next one.
    Guessed(Lpn),
    /// All of a stream.
    Stream(u8),
    /// What is overwritten in place lies where it lay, and is not gathered.
    InPlace,
}

/// The pieces of a file that do not make a page yet.
#[derive(Clone, Debug)]
struct Gather {
    file: File,
    units: Vec<Lpn>,
    /// Where the file's next page goes.
    die: u32,
    /// Whether something else was written since its first piece, so that they lie apart.
    apart: bool,
}

impl Gather {
    /// Notes the newest unit of the file.
    fn goes_on_with(&mut self, lpn: Lpn) {
        if let File::Told(last) | File::Guessed(last) = &mut self.file {
            *last = lpn;
        }
    }
}

/// Lanes for loose pieces, then as many for whole pages, then perhaps as many for what is moved.
#[derive(Clone, Debug)]
pub struct Packed {
    loose: Hinted,
    dies: u32,
    page_units: usize,
    /// Files that were written before the current one, the one that rested longest first.
    resting: Vec<Gather>,
    current: Gather,
    /// Units of the command beyond the whole page that is being filled; whether the next one is
    /// its first.
    coming: usize,
    begins: bool,
    last: Option<Lpn>,
    /// The die of the whole page that is being filled, and the units that it still takes: while
    /// there are any nothing has to be thought about.
    page_die: u32,
    page_left: u32,
    /// Earlier pieces that belong on that page.
    along: Vec<Lpn>,
}

impl Packed {
    /// The rule for these frontiers.
    pub fn new(geometry: &Geometry, frontiers: &Frontiers) -> Self {
        let current = Gather { file: File::InPlace, units: Vec::new(), die: 0, apart: false };
        Self {
            loose: Hinted::new(geometry, frontiers),
            dies: geometry.dies(),
            page_units: geometry.multi_page_units() as usize,
            resting: Vec::new(),
            current,
            coming: 0,
            begins: true,
            last: None,
            page_die: geometry.dies() - 1,
            page_left: 0,
            along: Vec::new(),
        }
    }

    /// Hears that a command with so many units follows.
    pub fn begins(&mut self, units: u32) {
        self.coming = units as usize;
        self.begins = true;
        self.page_left = 0;
    }

    /// Earlier pieces to be written before the unit that was asked for last.
    #[inline]
    pub fn along(&mut self) -> Option<Vec<Lpn>> {
        if self.along.is_empty() { None } else { Some(std::mem::take(&mut self.along)) }
    }

    /// Hears that the pages that are not full are programmed: what comes next lies elsewhere.
    pub fn flushed(&mut self) {
        self.current.apart |= !self.current.units.is_empty();
    }

    /// Forgets what was in memory: the power was cut.
    pub fn forget(&mut self) {
        self.note_last();
        self.resting.clear();
        self.current.units.clear();
        (self.coming, self.begins, self.last, self.page_left) = (0, true, None, 0);
    }

    /// Notes the newest unit of the file: that is asked for only when the next command begins.
    fn note_last(&mut self) {
        if let Some(last) = self.last {
            self.current.goes_on_with(last);
        }
    }

    fn after(&self, die: u32) -> u32 {
        if die + 1 == self.dies { 0 } else { die + 1 }
    }

    /// Finds out what the command that begins with this unit belongs to.
    fn begin(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) {
        self.note_last();
        let before = lpn.0.checked_sub(1).map(Lpn);
        let (file, prior) = match hint {
            Hint::After(prior) => (File::Told(prior), Some(prior)),
            Hint::Stream(number) => (File::Stream(number), None),
            Hint::Overwrite => return self.turn_to_place(sites.die(lpn)),
            Hint::None | Hint::GoesOn => {
                // After what the host spoke of, silence is another file, though it lies next to it.
                let silent = matches!(self.current.file, File::Guessed(_) | File::InPlace);
                if silent && before.is_some() && self.last == before {
                    return;
                }
                let die = sites.die(lpn);
                let Some(before) = before.filter(|_| die.is_none()) else {
                    return self.turn_to_place(die);
                };
                (File::Guessed(before), Some(before))
            }
        };
        if self.current.file != file {
            let after = prior.and_then(|prior| sites.die(prior)).unwrap_or(self.page_die);
            self.turn_to(file, after);
        }
    }

    /// Turns to what is overwritten in place.
    fn turn_to_place(&mut self, die: Option<u32>) {
        self.rest();
        self.current.file = File::InPlace;
        self.current.die = die.unwrap_or_else(|| self.after(self.page_die));
    }

    /// Turns to a file, whose last page lies on this die if nothing else is known of it.
    fn turn_to(&mut self, file: File, last_die: u32) {
        self.rest();
        if let Some(index) = self.resting.iter().position(|gather| gather.file == file) {
            self.current = Gather { apart: true, ..self.resting.remove(index) };
            return;
        }
        self.current.file = file;
        self.current.die = self.after(last_die);
    }

    /// Puts the pieces of the current file aside.
    fn rest(&mut self) {
        self.current.apart = false;
        if self.current.units.is_empty() {
            return;
        }
        if self.resting.len() == FILES_MOST {
            self.resting.remove(0);
        }
        let units = std::mem::take(&mut self.current.units);
        self.resting.push(Gather { units, ..self.current });
    }

    /// Begins a whole page, if what was gathered and what is to come fill one.
    fn begin_page(&mut self, coming: usize, sites: Sites<'_>) {
        let gather = &mut self.current;
        if gather.units.len() + coming < self.page_units {
            return;
        }
        if !gather.units.is_empty() {
            if !gather.apart {
                return;
            }
            // What was trimmed meanwhile is not there any more.
            gather.units.retain(|lpn| sites.l2p.get(*lpn).is_some());
            if gather.units.len() + coming < self.page_units {
                return;
            }
        }
        let left = self.page_units - gather.units.len();
        self.along.append(&mut gather.units);
        gather.apart = false;
        self.page_die = gather.die;
        self.page_left = left as u32;
        self.coming = coming - left;
        self.current.die = self.after(self.page_die);
    }

    /// The lane for a unit that begins a command, or follows what is not a whole page.
    #[inline(never)]
    fn turn(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) -> Lane {
        let coming = self.coming.max(1);
        self.coming = coming - 1;
        if std::mem::take(&mut self.begins) {
            self.begin(lpn, hint, sites);
        }
        self.last = Some(lpn);
        self.begin_page(coming, sites);
        if self.page_left > 0 { self.on_page() } else { self.loosely(lpn, sites) }
    }

    /// The lane for a unit that goes to a whole page.
    #[inline]
    fn on_page(&mut self) -> Lane {
        self.page_left -= 1;
        Lane(self.dies + self.page_die)
    }

    /// The lane for a unit that does not.
    fn loosely(&mut self, lpn: Lpn, sites: Sites<'_>) -> Lane {
        if self.current.file == File::InPlace {
            return self.loose.host(lpn, Hint::Overwrite, sites);
        }
        self.current.units.push(lpn);
        let Lane(die) = self.loose.host(lpn, Hint::GoesOn, sites);
        if self.current.units.len() == self.page_units {
            self.current.units.clear();
            self.current.apart = false;
            self.current.die = self.after(die);
        }
        Lane(die)
    }
}

impl Placement for Packed {
    #[inline]
    fn host(&mut self, lpn: Lpn, hint: Hint, sites: Sites<'_>) -> Lane {
        if self.page_left == 0 {
            return self.turn(lpn, hint, sites);
        }
        self.last = Some(lpn);
        self.on_page()
    }

    #[inline]
    fn moved(&self, from: Origin) -> Lane {
        self.loose.moved(from)
    }

    fn displaced(&mut self, lane: Lane) {
        if lane.0 < self.dies {
            self.loose.displaced(lane);
        } else {
            self.page_die = lane.0 - self.dies;
            self.current.die = self.after(self.page_die);
        }
    }

    fn ended_run(&mut self, slot: &Slot) {
        self.loose.ended_run(slot);
    }
}
