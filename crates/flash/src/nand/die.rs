//! `Die`: the operations of a die, one at a time: reads first, all others in order of arrival.

use std::collections::VecDeque;

use ssdlab_time::{Nanos, Span};

/// The schedule of a die.
///
/// Modelled: one operation at a time; programs and erases run in order of arrival; a read waits for
/// the operation in progress and then runs before programs and erases that have not begun, and
/// delays them by its duration; a host read also runs before collection's reads, and suspends a
/// program or erase if the drive supports that; reads of a kind run in order of arrival.
///
/// Not modelled: a limit on how often one operation may be suspended; cache reads that overlap the
/// next sense with a transfer's setup.
///
/// Differs from hardware: an operation that a read delays ends later on the die, but its end as
/// reported before (to the write buffer, which releases space then) is not corrected.
///
/// Queued operations have no start times: each starts when the one before it has ended, so that a
/// read costs the simulation nothing for each of the hundreds of operations that it delays.
#[derive(Clone, Debug, Default)]
pub struct Die {
    /// Operations that may not have ended yet, in their order.
    queued: VecDeque<Queued>,
    /// When the die is free for the first of them.
    free: Nanos,
    /// The sum of their durations.
    work: Nanos,
    /// The earliest time at which the last of them can end, given their earliest starts.
    ends_after: Nanos,
    /// When the last host read ends.
    read_end: Nanos,
    /// Until when an operation is suspended: a read that follows at once need not suspend it again.
    suspended_until: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    /// The earliest time at which it may start.
    earliest: Nanos,
    duration: Nanos,
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

impl Die {
    /// When an operation that is queued now can start.
    pub fn queue_end(&self) -> Nanos {
        (self.free + self.work).max(self.ends_after).max(self.read_end)
    }

    /// Queues a program or an erase.
    pub fn queue(&mut self, earliest: Nanos, duration: Nanos, task: Task) -> Span {
        let earliest = earliest.max(self.read_end);
        self.queued.push_back(Queued { earliest, duration, task });
        self.work += duration;
        self.ends_after = self.ends_after.max(earliest) + duration;
        let end = self.queue_end();
        Span { start: end - duration, end }
    }

    /// Senses a page for collection, before queued programs: relocations wait for its data.
    pub fn fetch(&mut self, earliest: Nanos, duration: Nanos) -> Span {
        let mut start = earliest.max(self.read_end);
        let position = self.walk(|queued, begins, free| {
            start = start.max(free);
            begins < start || queued.task == Task::Fetch
        });
        start = start.max(position.free);
        self.queued.insert(position.index, Queued { earliest: start, duration, task: Task::Fetch });
        self.work += duration;
        self.ends_after = self.ends_after.max(start + duration + position.work_left);
        Span { start, end: start + duration }
    }

    /// Senses a page for the host. `suspend` is the time to suspend a program or erase; `None` if
    /// the drive does not support that.
    #[inline]
    pub fn sense(&mut self, earliest: Nanos, duration: Nanos, suspend: Option<Nanos>) -> Span {
        let start = earliest.max(self.read_end);
        if self.queued.is_empty() {
            self.read_end = start + duration;
            return Span { start, end: self.read_end };
        }
        self.sense_among_queued(start, duration, suspend)
    }

    fn sense_among_queued(
        &mut self,
        mut start: Nanos,
        duration: Nanos,
        suspend: Option<Nanos>,
    ) -> Span {
        let mut position = self.walk(|_, begins, _| begins <= start);
        if position.free > start {
            match suspend {
                Some(cost) if self.queued[position.index - 1].task != Task::Fetch => {
                    let cost = if start <= self.suspended_until { Nanos::ZERO } else { cost };
                    start += cost;
                    self.suspended_until = start + duration;
                    self.queued[position.index - 1].duration += cost + duration;
                    self.work += cost + duration;
                    position.free += cost + duration;
                }
                _ => start = position.free,
            }
        }
        self.read_end = start + duration;
        self.delay_next(&position);
        Span { start, end: self.read_end }
    }

    /// Keeps the die busy after the last host read, until its data has been transferred.
    pub fn hold(&mut self, until: Nanos) {
        let (from, held) = (self.read_end, until.saturating_sub(self.read_end));
        let mut position = self.walk(|_, begins, _| begins < from);
        if position.free > from {
            // The operation that was suspended for the read remains suspended.
            self.suspended_until = self.suspended_until.max(until);
            self.queued[position.index - 1].duration += held;
            self.work += held;
            position.free += held;
        }
        self.read_end = from + held;
        self.delay_next(&position);
    }

    /// The next operation waits for the host read, or for the operation that the read prolonged.
    fn delay_next(&mut self, position: &Position) {
        let free = position.free.max(self.read_end);
        if let Some(next) = self.queued.get_mut(position.index) {
            next.earliest = next.earliest.max(free);
        }
        self.ends_after = self.ends_after.max(free + position.work_left);
    }

    /// Prolongs a read for collection, until its data has been transferred.
    pub fn lengthen(&mut self, read: Span, until: Nanos) {
        let held = until.saturating_sub(read.end);
        let position = self.walk(|_, begins, _| begins < read.start);
        self.queued[position.index].duration += held;
        self.work += held;
        self.ends_after = self.ends_after.max(read.start + position.work_left + held);
    }

    /// The position after the operations for which `passes`, given when each begins and when the
    /// die is free for it.
    fn walk(&self, mut passes: impl FnMut(&Queued, Nanos, Nanos) -> bool) -> Position {
        let mut position = Position { index: 0, free: self.free, work_left: self.work };
        while let Some(queued) = self.queued.get(position.index) {
            let begins = position.free.max(queued.earliest);
            if !passes(queued, begins, position.free) {
                break;
            }
            position.free = begins + queued.duration;
            position.work_left = position.work_left - queued.duration;
            position.index += 1;
        }
        position
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Die, Task};
    use ssdlab_time::{Nanos, Span};

    const PROGRAM: Nanos = Nanos::from_micros(700);
    const READ: Nanos = Nanos::from_micros(50);

    /// When each queued operation runs.
    fn spans(die: &Die) -> Vec<Span> {
        let mut spans = Vec::new();
        die.walk(|queued, start, _| {
            spans.push(Span { start, end: start + queued.duration });
            true
        });
        spans
    }

    #[test]
    fn a_read_waits_only_for_the_program_in_progress() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        let read = die.sense(Nanos::from_micros(10), READ, None);
        assert_eq!(read.start, PROGRAM);
        assert_eq!(die.queue_end(), PROGRAM * 2 + READ);
    }

    #[test]
    fn a_suspended_program_ends_later_by_the_time_of_the_reads() {
        let (mut die, cost) = (Die::default(), Nanos::from_micros(20));
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        let arrival = Nanos::from_micros(100);
        let first = die.sense(arrival, READ, Some(cost));
        assert_eq!(first.end, arrival + cost + READ);
        let second = die.sense(arrival, READ, Some(cost));
        assert_eq!(second.end, first.end + READ, "suspended already");
        assert_eq!(die.queue_end(), PROGRAM * 2 + cost + READ * 2);
        assert_eq!(spans(&die)[0].end, PROGRAM + cost + READ * 2);
    }

    #[test]
    fn a_read_for_collection_runs_before_queued_programs_and_after_earlier_reads() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(PROGRAM * 4, PROGRAM, Task::Program);
        let arrival = Nanos::from_micros(10);
        assert_eq!(die.fetch(arrival, READ).start, PROGRAM);
        assert_eq!(die.fetch(arrival, READ).start, PROGRAM + READ);
        assert_eq!(die.fetch(PROGRAM * 3, READ).start, PROGRAM * 3, "the die waits for data then");
        assert_eq!(die.queue_end(), PROGRAM * 5, "the last one was not delayed");
    }

    #[test]
    fn a_read_for_collection_is_not_suspended() {
        let mut die = Die::default();
        die.fetch(Nanos::ZERO, READ);
        let read = die.sense(Nanos::new(1), READ, Some(Nanos::ZERO));
        assert_eq!(read.start, READ);
    }

    #[test]
    fn reads_run_in_order_of_arrival() {
        let mut die = Die::default();
        assert_eq!(die.sense(Nanos::ZERO, READ, None).end, READ);
        assert_eq!(die.sense(Nanos::ZERO, READ, None).end, READ * 2);
        assert_eq!(die.queue(Nanos::ZERO, PROGRAM, Task::Erase).start, READ * 2);
    }

    #[test]
    fn a_die_busy_with_a_transfer_starts_nothing_and_resumes_a_suspended_program_later() {
        let (mut die, cost) = (Die::default(), Nanos::from_micros(20));
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        let read = die.sense(Nanos::from_micros(100), READ, Some(cost));
        let out = Nanos::from_micros(40);
        die.hold(read.end + out);
        let gone = cost + READ + out;
        assert_eq!(spans(&die)[0].end, PROGRAM + gone);
        assert_eq!(die.queue_end(), PROGRAM * 2 + gone);
        let next = die.sense(Nanos::from_micros(100), READ, Some(cost));
        assert_eq!(next.start, read.end + out);
    }

    #[test]
    fn operations_of_one_die_never_overlap() {
        for holds in [false, true] {
            check_no_overlap(holds);
        }
    }

    fn check_no_overlap(holds: bool) {
        let mut die = Die::default();
        let mut random = ssdlab_time::Random::new(5, "die");
        let (mut now, mut reads) = (Nanos::ZERO, Vec::new());
        for _ in 0..5000 {
            now += Nanos::from_micros(random.below(60));
            die.forget_before(now);
            let later = now + Nanos::from_micros(random.below(2000));
            match random.below(8) {
                0 => drop(die.queue(later, PROGRAM, Task::Erase)),
                1 | 2 => {
                    let read = die.fetch(now, READ);
                    if holds {
                        die.lengthen(read, read.end + READ);
                    }
                }
                _ => {
                    let mut read = die.sense(now, READ, None);
                    if holds {
                        read.end += Nanos::from_micros(random.below(40));
                        die.hold(read.end);
                    }
                    reads.push(read);
                }
            }
            let queued = spans(&die);
            assert!(queued.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let end = queued.last().map_or(Nanos::ZERO, |last| last.end).max(die.read_end);
            let end = end.max(die.free);
            assert_eq!(die.queue_end(), end, "the end agrees with that of the last operation");
            let clash =
                |span: &&Span| queued.iter().any(|q| q.start < span.end && span.start < q.end);
            assert!(reads.iter().rev().take(50).find(clash).is_none());
        }
        assert!(reads.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
