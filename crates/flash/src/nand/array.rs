//! `Media`: the flash operations of the translation layer; `Array`: all dies and channels, and the
//! time for which the operations occupy them; `Untimed`: no time, for studies of counts.

use ssdlab_time::{Calendar, Nanos, Span};

use super::activity::{ActivityLog, DieActivity, Move, OperationKind};
use super::die::{Die, Priority, Task};
use super::{Geometry, Place, Timing};

/// The flash operations of the translation layer. Each returns the time at which it is done.
pub trait Media {
    /// Senses a page for collection and transfers its units to the controller.
    fn fetch(&mut self, place: Place, at: Nanos, units: u32) -> Nanos;

    /// Transfers units of a page that is already in the die's register to the controller.
    fn fetch_again(&mut self, die: u32, at: Nanos, units: u32) -> Nanos;

    /// Transfers a multi-plane page to its die and programs it.
    fn program(&mut self, place: Place, ready: Nanos) -> Nanos;

    /// Erases one block of each plane of a die: those of a superblock.
    fn erase(&mut self, die: u32, superblock: u32, at: Nanos) -> Nanos;

    /// Records units that were moved, if anyone wants to know.
    fn record_move(&mut self, _moved: Move) {}
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

    fn erase(&mut self, _die: u32, _superblock: u32, at: Nanos) -> Nanos {
        at
    }
}

/// The dies and channels of a drive.
///
/// Modelled: a die programs or erases all its planes at once, and senses them at once unless they
/// read independently (asynchronous independent plane reads): then a host read occupies only the
/// plane that holds its page, and each plane has its own register; a channel makes one transfer
/// at a time, in the order in which dies become ready; a program's data is transferred just before
/// it starts; a die without a cache register is busy until its data has been transferred. Not
/// modelled: planes that program independently, command and address cycles, copy-back. Differs from
/// hardware: a collection's read occupies all planes of its die also if these read independently; a
/// relocation keeps a die without a cache register busy during the transfer, but not while the
/// transfer waits for the channel.
#[derive(Clone, Debug)]
pub struct Array {
    dies: Vec<Die>,
    channels: Vec<Calendar>,
    /// The channel of each die; a table, because a division per read is slow.
    channel_of_die: Vec<usize>,
    /// tR of each page of a block; a table for the same reason.
    read_of_page: Vec<Nanos>,
    timing: Timing,
    /// Registers of a die: one for each plane that reads independently.
    registers_of_die: usize,
    priority: Priority,
    /// For each register: the page in it, and since when.
    registers: Vec<Option<(u32, Nanos)>>,
    unit_transfer: Nanos,
    multi_page_transfer: Nanos,
    pages_per_block: u32,
    now: Nanos,
    /// `None` unless the drive is observed.
    log: Option<Box<ActivityLog>>,
}

impl Array {
    pub fn new(geometry: &Geometry, timing: &Timing) -> Self {
        let multi_page = u64::from(geometry.multi_page_units()) * geometry.unit_bytes();
        let transfer = |bytes| Nanos::transfer(bytes, timing.channel_bandwidth);
        let planes = if geometry.independent_plane_reads { geometry.planes as usize } else { 1 };
        let dies = geometry.dies() as usize;
        Self {
            dies: vec![Die::new(planes); dies],
            channels: vec![Calendar::default(); geometry.channels as usize],
            channel_of_die: (0..geometry.dies())
                .map(|die| (die % geometry.channels) as usize)
                .collect(),
            read_of_page: (0..geometry.pages_per_block).map(|page| timing.read_of(page)).collect(),
            timing: timing.clone(),
            registers_of_die: planes,
            priority: Priority { suspend: timing.suspend, limit: timing.delay_limit },
            registers: vec![None; dies * planes],
            unit_transfer: transfer(geometry.unit_bytes()),
            multi_page_transfer: transfer(multi_page),
            pages_per_block: geometry.pages_per_block,
            now: Nanos::ZERO,
            log: None,
        }
    }

    /// Senses a page for the host; returns when its data is in the die's register.
    #[inline]
    pub fn sense(&mut self, place: Place, at: Nanos) -> Nanos {
        let on_die = usize::from(place.plane);
        let register = place.die as usize * self.registers_of_die + on_die;
        if let Some((page, since)) = self.registers[register]
            && page == place.page
        {
            return since.max(at);
        }
        let duration = self.read_of(place);
        let die = &mut self.dies[place.die as usize];
        die.forget_before(self.now);
        let read = die.sense(on_die, at, duration, &self.priority);
        let end = read.end;
        if self.timing.keeps_page {
            // A queued operation uses the register as soon as it begins.
            let stays = die.operations_end() <= end;
            self.registers[register] = stays.then_some((place.page, end));
        }
        self.record(OperationKind::Sense, place, read);
        end
    }

    /// Empties the registers of a die, because another operation uses them.
    #[inline]
    fn empty_registers(&mut self, die: u32) {
        let first = die as usize * self.registers_of_die;
        for register in first..first + self.registers_of_die {
            self.registers[register] = None;
        }
    }

    /// Whether a die is busy until its data has been transferred: it has no cache register.
    #[inline]
    pub fn holds_dies(&self) -> bool {
        !self.timing.cache_register
    }

    /// Transfers units of the page that a die sensed last for the host from its register to the
    /// controller; returns the time span of the transfer.
    #[inline]
    pub fn transfer_out(&mut self, die: u32, ready: Nanos, units: u32) -> Span {
        let moved = self.transfer(die, ready, units);
        if self.holds_dies() {
            self.die(die).hold(moved.end);
        }
        moved
    }

    #[inline]
    fn transfer(&mut self, die: u32, ready: Nanos, units: u32) -> Span {
        let duration = self.unit_transfer * u64::from(units);
        self.channel(die).book(ready, duration)
    }

    /// Sets the clock: no later operation starts before `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Aborts all operations, because the power was cut.
    pub fn power_cut(&mut self) {
        self.dies.fill(Die::new(self.registers_of_die));
        self.channels.fill(Calendar::default());
        self.registers.fill(None);
    }

    /// Starts or ends the recording of operations and moves.
    pub fn observe(&mut self, on: bool) {
        self.log = on.then(Box::default);
    }

    /// The operations and moves recorded since the last call.
    pub fn take_activity(&mut self) -> ActivityLog {
        self.log.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What each die does at `now`.
    pub fn activity(&self, now: Nanos) -> impl Iterator<Item = DieActivity> {
        self.dies.iter().map(move |die| die.activity(now))
    }

    #[inline]
    fn record(&mut self, kind: OperationKind, place: Place, span: Span) {
        if let Some(log) = &mut self.log {
            log.add_operation(kind, place, self.pages_per_block, span);
        }
    }

    #[inline]
    fn channel(&mut self, die: u32) -> &mut Calendar {
        let channel = &mut self.channels[self.channel_of_die[die as usize]];
        channel.advance(self.now);
        channel
    }

    #[inline]
    fn read_of(&self, place: Place) -> Nanos {
        match self.timing.slc {
            Some(slc) if place.slc => slc.read,
            _ => self.read_of_page[place.page_in_block as usize],
        }
    }

    #[inline]
    fn die(&mut self, die: u32) -> &mut Die {
        let die = &mut self.dies[die as usize];
        die.forget_before(self.now);
        die
    }
}

impl Media for Array {
    fn fetch(&mut self, place: Place, at: Nanos, units: u32) -> Nanos {
        let duration = self.read_of(place);
        self.empty_registers(place.die);
        let sensed = self.die(place.die).fetch(at, duration);
        self.record(OperationKind::Fetch, place, sensed);
        let moved = self.transfer(place.die, sensed.end, units).end;
        if self.holds_dies() {
            // Busy for the transfer, but not while it waits: if the channel is booked far ahead,
            // the programs that follow on this die would be booked even further ahead.
            let out = sensed.end + self.unit_transfer * u64::from(units);
            self.die(place.die).lengthen(sensed, out.min(moved));
        }
        moved
    }

    fn fetch_again(&mut self, die: u32, at: Nanos, units: u32) -> Nanos {
        self.transfer(die, at, units).end
    }

    fn program(&mut self, place: Place, ready: Nanos) -> Nanos {
        let transfer = self.multi_page_transfer;
        self.empty_registers(place.die);
        let die_free = self.dies[place.die as usize].queue_end();
        let begin = ready.max(die_free.saturating_sub(transfer));
        let moved = self.channel(place.die).book(begin, transfer).end;
        let program = match self.timing.slc {
            Some(slc) if place.slc => slc.program,
            _ => self.timing.program,
        };
        let queued = self.die(place.die).queue(moved, program, Task::Program);
        self.record(OperationKind::Program, place, queued);
        queued.end
    }

    fn erase(&mut self, die: u32, superblock: u32, at: Nanos) -> Nanos {
        let erase = self.timing.erase;
        self.empty_registers(die);
        let queued = self.die(die).queue(at, erase, Task::Erase);
        let page = superblock * self.pages_per_block;
        self.record(OperationKind::Erase, Place { die, page, ..Place::default() }, queued);
        queued.end
    }

    #[inline]
    fn record_move(&mut self, moved: Move) {
        if let Some(log) = &mut self.log {
            log.add_move(moved);
        }
    }
}
