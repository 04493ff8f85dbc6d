//! `Array`: all dies and channels, and the four operations that take their time.

use ssdlab_time::{Calendar, Nanos, Span};

use super::die::{Die, Task};
use super::{Geometry, Place, Timing};

/// The dies and channels of a drive.
///
/// Modelled: a die senses, programs or erases all its planes at once; a channel moves one transfer
/// at a time, in the order in which dies become ready; a program's data is moved just before it
/// starts. Not modelled: planes that work independently, command and address cycles, copy-back.
#[derive(Clone, Debug)]
pub struct Array {
    dies: Vec<Die>,
    channels: Vec<Calendar>,
    timing: Timing,
    unit_transfer: Nanos,
    multi_page_transfer: Nanos,
    now: Nanos,
}

impl Array {
    /// An idle array.
    pub fn new(geometry: &Geometry, timing: &Timing) -> Self {
        let multi_page = u64::from(geometry.multi_page_units()) * geometry.unit_bytes();
        let transfer = |bytes| Nanos::transfer(bytes, timing.channel_bandwidth);
        Self {
            dies: vec![Die::default(); geometry.dies() as usize],
            channels: vec![Calendar::default(); geometry.channels as usize],
            timing: timing.clone(),
            unit_transfer: transfer(geometry.unit_bytes()),
            multi_page_transfer: transfer(multi_page),
            now: Nanos::ZERO,
        }
    }

    /// Senses a page for the host; returns when its data stands in the die's register.
    #[inline]
    pub fn sense(&mut self, place: Place, at: Nanos) -> Nanos {
        let duration = self.timing.read_of(place);
        let suspend = self.timing.suspend;
        self.die(place.die).sense(at, duration, suspend).end
    }

    /// Moves units from a die's register to the controller; returns when the channel does so.
    #[inline]
    pub fn transfer_out(&mut self, die: u32, ready: Nanos, units: u32) -> Span {
        let duration = self.unit_transfer * u64::from(units);
        self.channel(die).book(ready, duration)
    }

    /// Senses a page for collection and moves its units to the controller.
    pub fn fetch(&mut self, place: Place, at: Nanos, units: u32) -> Nanos {
        let duration = self.timing.read_of(place);
        let sensed = self.die(place.die).fetch(at, duration).end;
        self.transfer_out(place.die, sensed, units).end
    }

    /// Moves a multi-plane page to its die and programs it; returns when it is done.
    pub fn program(&mut self, place: Place, ready: Nanos) -> Nanos {
        let transfer = self.multi_page_transfer;
        let die_free = self.dies[place.die as usize].queue_end();
        let begin = ready.max(die_free.saturating_sub(transfer));
        let moved = self.channel(place.die).book(begin, transfer).end;
        let program = self.timing.program_of(place);
        self.die(place.die).queue(moved, program, Task::Program).end
    }

    /// Erases one block of each plane of a die; returns when it is done.
    pub fn erase(&mut self, die: u32, at: Nanos) -> Nanos {
        let erase = self.timing.erase;
        self.die(die).queue(at, erase, Task::Erase).end
    }

    /// Says that nothing will be asked for a time before `now`.
    pub fn advance(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Breaks everything off: the power is gone.
    pub fn power_cut(&mut self) {
        self.dies.fill(Die::default());
        self.channels.fill(Calendar::default());
    }

    fn channel(&mut self, die: u32) -> &mut Calendar {
        let index = die % self.channels.len() as u32;
        &mut self.channels[index as usize]
    }

    fn die(&mut self, die: u32) -> &mut Die {
        let die = &mut self.dies[die as usize];
        die.forget_before(self.now);
        die
    }
}
