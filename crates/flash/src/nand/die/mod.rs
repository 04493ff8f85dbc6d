//! `Die`: the operations of a die, one at a time: reads first, all others in order of arrival.

mod queue;
mod reads;
#[cfg(test)]
mod tests;

use ssdlab_time::{Nanos, Span};

use super::activity::{DieActivity, OperationKind};
use queue::Queue;
pub use reads::Priority;
use reads::{Reads, SuspendedFor, Suspension};

/// The schedule of a die.
///
/// Modelled: one operation at a time; programs and erases run in order of arrival; a read waits for
/// the operation in progress and then runs before programs and erases that have not begun, and
/// delays them by its duration; a host read also runs before collection's reads, and suspends a
/// program or erase if the drive supports that; reads of a kind run in order of arrival. If the
/// drive limits the delay by host reads, an operation that they have delayed for that long, by
/// running first or by suspending it, runs to its end before further reads. Planes that read
/// independently have their own order of reads; all other operations occupy the whole die.
///
/// Source: suspends that starve programs and erases, Wu and He, "Reducing SSD Read Latency via NAND
/// Flash Program and Erase Suspension" (FAST '12); controllers that refuse further suspends of an
/// operation beyond a limit, US patent 9,886,214.
///
/// Not modelled: a limit on the number of suspends; cache reads that overlap the next sense with a
/// transfer's setup.
///
/// Differs from hardware: an operation that a read delays ends later on the die, but its end as
/// reported before (to the write buffer, which releases space then) is not corrected. A read of an
/// independent plane that would delay an operation before a read that is booked already waits for
/// the start of that read.
///
/// Queued operations have no start times: each starts when the one before it has ended, so that a
/// read costs the simulation nothing for each of the hundreds of operations that it delays.
#[derive(Clone, Debug, Default)]
pub struct Die {
    /// Operations that may not have ended yet, in their order.
    queued: Queue<Queued>,
    /// When the die is free for the first of them.
    free: Nanos,
    /// The sum of their durations.
    work: Nanos,
    /// The earliest time at which the last of them can end, given their earliest starts.
    ends_after: Nanos,
    fetched: Option<Fetched>,
    reads: Reads,
    suspension: Suspension,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    /// The earliest time at which it may start.
    earliest: Nanos,
    duration: Nanos,
    /// How long host reads have delayed it.
    delayed: Nanos,
    task: Task,
}

/// The kind of a queued operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A program of a multi-plane page.
    Program,
    /// An erase of one block in each plane.
    Erase,
    /// A read for collection.
    Fetch,
}

/// A position in a die's queue.
#[derive(Clone, Copy, Debug)]
struct Position {
    index: usize,
    /// When the operation before it ends.
    free: Nanos,
    /// The sum of the durations from it on.
    work_left: Nanos,
}

/// The last read for collection: the next one need not walk the queue before it.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    /// The earliest time at which it could start.
    earliest: Nanos,
    position: Position,
}

/// Where a host read runs among the queued operations.
#[derive(Clone, Copy, Debug)]
struct Slot {
    start: Nanos,
    /// The position after the operations that have begun.
    position: Position,
    /// The suspension of the last of these.
    suspended: Option<SuspendedFor>,
}

impl Position {
    fn pass(&mut self, next: &Queued, begins: Nanos) {
        self.free = begins + next.duration;
        self.work_left = self.work_left - next.duration;
        self.index += 1;
    }
}

impl Fetched {
    /// The same after the first operation of the queue has left it; `None` if this was it.
    fn without_first(mut self) -> Option<Self> {
        self.position.index = self.position.index.checked_sub(1)?;
        Some(self)
    }
}

impl Die {
    /// A die with this many planes that read independently; 0 or 1: it reads as a whole.
    pub fn new(planes: usize) -> Self {
        Self { reads: Reads::new(planes), ..Self::default() }
    }

    /// When the last queued operation ends.
    pub fn operations_end(&self) -> Nanos {
        (self.free + self.work).max(self.ends_after)
    }

    /// When an operation that is queued now can start.
    pub fn queue_end(&self) -> Nanos {
        self.operations_end().max(self.reads.end)
    }

    /// Queues a program or an erase.
    pub fn queue(&mut self, earliest: Nanos, duration: Nanos, task: Task) -> Span {
        let earliest = earliest.max(self.reads.end);
        self.queued.push_back(Queued { earliest, duration, delayed: Nanos::ZERO, task });
        self.work += duration;
        if let Some(fetched) = &mut self.fetched {
            fetched.position.work_left += duration;
        }
        self.ends_after = self.ends_after.max(earliest) + duration;
        let end = self.queue_end();
        Span { start: end - duration, end }
    }

    /// Senses a page for collection, before queued programs: relocations wait for its data.
    pub fn fetch(&mut self, earliest: Nanos, duration: Nanos) -> Span {
        let earliest = earliest.max(self.reads.end);
        let mut start = earliest;
        // A read passes what another passed that could not start later.
        let last = self.fetched.filter(|last| last.earliest <= earliest);
        let first = last.map_or_else(|| self.first(), |last| last.position);
        let mut position = self.walk_from(first, |queued, begins, free| {
            start = start.max(free);
            begins < start || queued.task == Task::Fetch
        });
        start = start.max(position.free);
        let (delayed, task) = (Nanos::ZERO, Task::Fetch);
        self.queued.insert(position.index, Queued { earliest: start, duration, delayed, task });
        self.work += duration;
        self.ends_after = self.ends_after.max(start + duration + position.work_left);
        position.work_left += duration;
        self.fetched = Some(Fetched { earliest, position });
        Span { start, end: start + duration }
    }

    /// Senses a page of a plane for the host.
    #[inline]
    pub fn sense(
        &mut self,
        plane: usize,
        earliest: Nanos,
        duration: Nanos,
        priority: &Priority,
    ) -> Span {
        let start = earliest.max(self.reads.free(plane));
        if self.queued.is_empty() {
            return self.reads.book(plane, start, duration);
        }
        self.fetched = None;
        self.sense_among_queued(plane, start, duration, priority)
    }

    fn sense_among_queued(
        &mut self,
        plane: usize,
        start: Nanos,
        duration: Nanos,
        priority: &Priority,
    ) -> Span {
        let mut slot = self.slot(start, duration, priority);
        let latest = self.reads.latest_start();
        if start < latest && self.delays_before(&slot, duration, latest) {
            slot = self.slot_at_latest(duration, priority);
        }
        if let Some(SuspendedFor { suspension, added, .. }) = slot.suspended {
            let running = &mut self.queued[slot.position.index - 1];
            running.duration += added;
            running.delayed += added;
            self.work += added;
            slot.position.free += added;
            self.suspension = suspension;
        }
        let read = self.reads.book(plane, slot.start, duration);
        self.delay_next(&slot.position, read.end);
        read
    }

    /// Where a host read runs that can start at `start`.
    #[inline]
    fn slot(&self, start: Nanos, duration: Nanos, priority: &Priority) -> Slot {
        let position = self.walk(|_, begins, _| begins <= start);
        let mut slot = Slot { start, position, suspended: None };
        if position.free > start {
            let running = &self.queued[position.index - 1];
            slot.suspended = self.suspend(running, start, duration, priority);
            slot.start = slot.suspended.map_or(position.free, |read| read.start);
        }
        if slot.suspended.is_none() && priority.limit.is_some() {
            self.pass_delayed(&mut slot, duration, priority);
        }
        slot
    }

    #[cold]
    fn slot_at_latest(&self, duration: Nanos, priority: &Priority) -> Slot {
        self.slot(self.reads.latest_start(), duration, priority)
    }

    /// The suspension of the operation in progress for a read; `None` if the read must wait.
    #[inline]
    fn suspend(
        &self,
        running: &Queued,
        start: Nanos,
        duration: Nanos,
        priority: &Priority,
    ) -> Option<SuspendedFor> {
        let read = self.suspension.add(start, duration, priority.suspend?);
        let may = running.task != Task::Fetch && priority.allows(running.delayed + read.added);
        may.then_some(read)
    }

    /// Moves a read behind the operations that it must not delay any longer.
    fn pass_delayed(&self, slot: &mut Slot, duration: Nanos, priority: &Priority) {
        while let Some(next) = self.queued.get(slot.position.index) {
            let begins = slot.position.free.max(next.earliest);
            let delay = (slot.start + duration).saturating_sub(begins);
            if priority.allows(next.delayed + delay) {
                return;
            }
            slot.position.pass(next, begins);
            slot.start = slot.start.max(slot.position.free);
        }
    }

    /// Whether a read before `latest` would delay an operation, which could then overlap a read
    /// that is booked already.
    fn delays_before(&self, slot: &Slot, duration: Nanos, latest: Nanos) -> bool {
        if let Some(read) = slot.suspended {
            return !read.joins;
        }
        let next = self.queued.get(slot.position.index);
        let delays = |next: &Queued| slot.position.free.max(next.earliest) < slot.start + duration;
        slot.start < latest && next.is_some_and(delays)
    }

    /// Keeps the die busy after the last host read, until its data has been transferred.
    pub fn hold(&mut self, until: Nanos) {
        self.fetched = None;
        let (from, held) = (self.reads.end, until.saturating_sub(self.reads.end));
        let mut position = self.walk(|_, begins, _| begins < from);
        if position.free > from {
            // The operation that was suspended for the read remains suspended.
            self.suspension.until = self.suspension.until.max(until);
            let running = &mut self.queued[position.index - 1];
            running.duration += held;
            running.delayed += held;
            self.work += held;
            position.free += held;
        }
        self.reads.end = from + held;
        self.delay_next(&position, self.reads.end);
    }

    /// The next operation waits for a host read, or for the operation that the read prolonged.
    #[inline]
    fn delay_next(&mut self, position: &Position, read_end: Nanos) {
        let free = position.free.max(read_end);
        if let Some(next) = self.queued.get_mut(position.index) {
            let begins = position.free.max(next.earliest);
            next.delayed += free.saturating_sub(begins);
            next.earliest = next.earliest.max(free);
        }
        self.ends_after = self.ends_after.max(free + position.work_left);
    }

    /// Prolongs the last read for collection, until its data has been transferred.
    pub fn lengthen(&mut self, read: Span, until: Nanos) {
        let held = until.saturating_sub(read.end);
        let first = self.fetched.map_or_else(|| self.first(), |last| last.position);
        let position = self.walk_from(first, |_, begins, _| begins < read.start);
        self.queued[position.index].duration += held;
        if let Some(fetched) = &mut self.fetched {
            fetched.position.work_left += held;
        }
        self.work += held;
        self.ends_after = self.ends_after.max(read.start + position.work_left + held);
    }

    /// The position after the operations for which `passes`, given when each begins and when the
    /// die is free for it.
    fn walk(&self, passes: impl FnMut(&Queued, Nanos, Nanos) -> bool) -> Position {
        self.walk_from(self.first(), passes)
    }

    fn walk_from(
        &self,
        mut position: Position,
        mut passes: impl FnMut(&Queued, Nanos, Nanos) -> bool,
    ) -> Position {
        while let Some(queued) = self.queued.get(position.index) {
            let begins = position.free.max(queued.earliest);
            if !passes(queued, begins, position.free) {
                break;
            }
            position.pass(queued, begins);
        }
        position
    }

    fn first(&self) -> Position {
        Position { index: 0, free: self.free, work_left: self.work }
    }

    /// What it does at `now`, which is not before the last call of `forget_before`.
    pub fn activity(&self, now: Nanos) -> DieActivity {
        let mut running = None;
        let position = self.walk(|queued, begins, _| {
            if begins <= now && now < begins + queued.duration {
                let kind = match queued.task {
                    Task::Program => OperationKind::Program,
                    Task::Erase => OperationKind::Erase,
                    Task::Fetch => OperationKind::Fetch,
                };
                running = Some((kind, begins + queued.duration));
            }
            begins + queued.duration <= now
        });
        let read_end = self.suspension.reads_until(now).unwrap_or(self.reads.end);
        let suspended = self.suspension.reads_until(now).is_some();
        if (suspended || running.is_none()) && read_end > now {
            running = Some((OperationKind::Sense, read_end));
        }
        let queued = self.queued.len() - position.index;
        DieActivity { now: running, free_at: self.queue_end().max(now), queued }
    }

    /// Removes operations that ended by `now`: no read starts earlier.
    #[inline]
    pub fn forget_before(&mut self, now: Nanos) {
        while let Some(first) = self.queued.front() {
            let end = self.free.max(first.earliest) + first.duration;
            if end > now {
                return;
            }
            self.free = end;
            self.work = self.work - first.duration;
            self.queued.pop_front();
            self.fetched = self.fetched.and_then(Fetched::without_first);
        }
    }
}
