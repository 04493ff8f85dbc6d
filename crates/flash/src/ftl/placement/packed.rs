//! `Packed`: gathers pieces of a file that are smaller than a page and rewrites them to one page.
//!
//! Modelled: two frontiers for the host, each with a lane per die. A command with a page of a file
//! or more fills *whole* pages on one die after the other; smaller pieces are written *loose*, to
//! the next free place, and remembered by file. As soon as the pieces of a file and a new command
//! make a page, they are rewritten with it to a whole page, on the die after that of the file's
//! last one. The host's hint identifies the file (an append after a block, a stream); without a
//! hint it is guessed as in `inferred`. Pieces written directly one after the other are already in
//! order, and stay.
//!
//! Rewritten units are counted (`packing_moves`), and come from the controller's memory, not from
//! flash: in addition to the write buffer there is room for one page of each of 64 files. The file
//! that was inactive longest is evicted; its pieces stay where they are. A flush waits as on other
//! drives: loose pieces are programmed, padded if necessary, so that a power cut loses no more
//! either; the copy in memory is lost with the power.
//!
//! Differs from hardware: no drive is known to do this. If capacitors protect the buffer, pieces
//! could wait in it and be written once.

use super::hinted::Hinted;
use super::{Hint, Lane, UnitLocator};
use crate::ftl::map::Lpn;
use crate::nand::Geometry;

/// The number of files whose pieces are remembered, in addition to the current one.
const FILES_MAX: usize = 64;

/// How the drive knows that writes belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    /// By the hint of an append: the next one must follow this unit.
    Hinted(Lpn),
    /// By number: the unit after this one continues the file.
    Guessed(Lpn),
    Stream(u8),
    /// Overwrites in place: these units stay on their die and are not gathered.
    InPlace,
}

/// The pieces of a file that do not fill a page yet.
#[derive(Clone, Debug)]
struct Pieces {
    file: File,
    units: Vec<Lpn>,
    /// The die for the file's next page.
    die: u32,
    /// Whether other data was written since the first piece, so that they are not adjacent.
    scattered: bool,
}

impl Pieces {
    /// Records the newest unit of the file.
    fn continue_after(&mut self, lpn: Lpn) {
        if let File::Hinted(last) | File::Guessed(last) = &mut self.file {
            *last = lpn;
        }
    }
}

/// Lanes for loose pieces, then as many for whole pages, then possibly as many for relocations.
#[derive(Clone, Debug)]
pub struct Packed {
    pub loose: Hinted,
    dies: u32,
    page_units: usize,
    /// Files that were written before the current one, the least recent first.
    inactive: Vec<Pieces>,
    current: Pieces,
    /// Units of the command after the whole page that is being filled.
    units_left: usize,
    /// Whether the next unit is the first of a command.
    begins: bool,
    last: Option<Lpn>,
    /// The die of the whole page that is being filled, and its free units. While there are any, no
    /// decision is needed.
    page_die: u32,
    page_left: u32,
    /// Earlier pieces to be rewritten to that page.
    rewrites: Vec<Lpn>,
}

impl Packed {
    pub fn new(geometry: &Geometry, loose: Hinted) -> Self {
        let current = Pieces { file: File::InPlace, units: Vec::new(), die: 0, scattered: false };
        Self {
            loose,
            dies: geometry.dies(),
            page_units: geometry.multi_page_units() as usize,
            inactive: Vec::new(),
            current,
            units_left: 0,
            begins: true,
            last: None,
            page_die: geometry.dies() - 1,
            page_left: 0,
            rewrites: Vec::new(),
        }
    }

    /// A command with `units` units follows.
    #[inline]
    pub fn begin_command(&mut self, units: u32) {
        self.units_left = units as usize;
        self.begins = true;
        self.page_left = 0;
    }

    /// Takes earlier pieces that must be rewritten before the unit placed last.
    #[inline]
    pub fn take_pieces(&mut self) -> Option<Vec<Lpn>> {
        if self.rewrites.is_empty() { None } else { Some(std::mem::take(&mut self.rewrites)) }
    }

    /// All partly filled pages are programmed: the next piece is not adjacent.
    pub fn flushed(&mut self) {
        self.current.scattered |= !self.current.units.is_empty();
    }

    /// Forgets everything in memory, because the power was cut.
    pub fn power_cut(&mut self) {
        self.record_last();
        self.inactive.clear();
        self.current.units.clear();
        (self.units_left, self.begins, self.last, self.page_left) = (0, true, None, 0);
    }

    /// Records the newest unit of the file. Done only when the next command begins, for speed.
    fn record_last(&mut self) {
        if let Some(last) = self.last {
            self.current.continue_after(last);
        }
    }

    /// Determines the file of the command that begins with this unit.
    fn identify_file(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) {
        self.record_last();
        let before = lpn.0.checked_sub(1).map(Lpn);
        let (file, prior) = match hint {
            Hint::After(prior) => (File::Hinted(prior), Some(prior)),
            Hint::Stream(number) => (File::Stream(number), None),
            Hint::Overwrite => return self.switch_to_overwrite(locator.die(lpn)),
            Hint::None | Hint::Continues => {
                // After hinted writes, a write without a hint is another file, even if adjacent.
                let no_hint = matches!(self.current.file, File::Guessed(_) | File::InPlace);
                if no_hint && before.is_some() && self.last == before {
                    return;
                }
                let die = locator.die(lpn);
                let Some(before) = before.filter(|_| die.is_none()) else {
                    return self.switch_to_overwrite(die);
                };
                (File::Guessed(before), Some(before))
            }
        };
        if self.current.file != file {
            let after = prior.and_then(|prior| locator.die(prior)).unwrap_or(self.page_die);
            self.switch_to(file, after);
        }
    }

    /// Switches to overwrites in place.
    fn switch_to_overwrite(&mut self, die: Option<u32>) {
        self.deactivate();
        self.current.file = File::InPlace;
        self.current.die = die.unwrap_or_else(|| self.loose.after(self.page_die));
    }

    /// Switches to a file. `last_die` has its last page if the file is not remembered.
    fn switch_to(&mut self, file: File, last_die: u32) {
        self.deactivate();
        if let Some(index) = self.inactive.iter().position(|pieces| pieces.file == file) {
            self.current = Pieces { scattered: true, ..self.inactive.remove(index) };
            return;
        }
        self.current.file = file;
        self.current.die = self.loose.after(last_die);
    }

    /// Remembers the pieces of the current file.
    fn deactivate(&mut self) {
        self.current.scattered = false;
        if self.current.units.is_empty() {
            return;
        }
        if self.inactive.len() == FILES_MAX {
            self.inactive.remove(0);
        }
        let units = std::mem::take(&mut self.current.units);
        self.inactive.push(Pieces { units, ..self.current });
    }

    /// Begins a whole page, if the gathered pieces and the `coming` units of the command fill one.
    fn begin_page(&mut self, coming: usize, locator: UnitLocator<'_>) {
        let pieces = &mut self.current;
        if pieces.units.len() + coming < self.page_units {
            return;
        }
        if !pieces.units.is_empty() {
            if !pieces.scattered {
                return;
            }
            // Pieces may have been trimmed since.
            pieces.units.retain(|lpn| locator.l2p.get(*lpn).is_some());
            if pieces.units.len() + coming < self.page_units {
                return;
            }
        }
        let left = self.page_units - pieces.units.len();
        self.rewrites.append(&mut pieces.units);
        pieces.scattered = false;
        self.page_die = pieces.die;
        self.page_left = left as u32;
        self.units_left = coming - left;
        self.current.die = self.loose.after(self.page_die);
    }

    /// The lane for a unit that begins a command, or is not on a whole page being filled.
    #[inline(never)]
    fn decide(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) -> Lane {
        let coming = self.units_left.max(1);
        self.units_left = coming - 1;
        if std::mem::take(&mut self.begins) {
            self.identify_file(lpn, hint, locator);
        }
        self.last = Some(lpn);
        self.begin_page(coming, locator);
        if self.page_left > 0 { self.page_lane() } else { self.loose_lane(lpn, locator) }
    }

    #[inline]
    fn page_lane(&mut self) -> Lane {
        self.page_left -= 1;
        Lane(self.dies + self.page_die)
    }

    fn loose_lane(&mut self, lpn: Lpn, locator: UnitLocator<'_>) -> Lane {
        if self.current.file == File::InPlace {
            return self.loose.host(lpn, Hint::Overwrite, locator);
        }
        self.current.units.push(lpn);
        let Lane(die) = self.loose.host(lpn, Hint::Continues, locator);
        if self.current.units.len() == self.page_units {
            self.current.units.clear();
            self.current.scattered = false;
            self.current.die = self.loose.after(die);
        }
        Lane(die)
    }

    #[inline]
    pub fn host(&mut self, lpn: Lpn, hint: Hint, locator: UnitLocator<'_>) -> Lane {
        if self.page_left == 0 {
            return self.decide(lpn, hint, locator);
        }
        self.last = Some(lpn);
        self.page_lane()
    }

    pub fn displaced(&mut self, lane: Lane) {
        if lane.0 < self.dies {
            self.loose.displaced(lane);
        } else {
            self.page_die = lane.0 - self.dies;
            self.current.die = self.loose.after(self.page_die);
        }
    }
}
