//! `Die`: one at a time, reads before what waits, everything else in order of arrival.

use std::collections::VecDeque;

use ssdlab_time::{Nanos, Span};

/// A die's time.
///
/// Modelled: one operation at a time; programs and erases run in order of arrival; a read waits for
/// the operation in progress and then goes before programs and erases that have not begun, which
/// start later by its time; a host read goes before collection's reads too and suspends a program
/// or erase where the drive can; reads of a kind run in order of arrival.
///
/// Not modelled: a bound on how often one operation may be suspended; cache reads that overlap the
/// next sense with a transfer's setup.
///
/// Differs from hardware: an operation that a read pushes back ends later for the die, but who was
/// told its end before (the write buffer, which frees a place then) is not told again.
///
/// What waits has no times of its own: it starts when what is before it has ended, so that a read
/// that goes first costs nothing for each of hundreds that it pushes back.
#[derive(Clone, Debug, Default)]
pub struct Die {
    /// Operations that may not have ended yet, in their order.
    queued: VecDeque<Queued>,
    /// When the die is free for the first of them.
    free: Nanos,
    /// What all of them take.
    work: Nanos,
    /// When the last of them ends at the soonest, since some must wait before they start.
    ends_after: Nanos,
    /// When the last host read ends.
    read_end: Nanos,
    /// Until when a suspended operation rests: a read that follows at once need not suspend again.
    suspended_until: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    /// Not to start before, though the die may be free.
    earliest: Nanos,
    duration: Nanos,
    task: Task,
}

/// What is queued on a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A program of a multi-plane page.
    Program,
    /// An erase of one block in each plane.
    Erase,
    /// A read for collection.
    Fetch,
}

/// A place in a die's queue.
#[derive(Clone, Copy, Debug)]
struct Turn {
    index: usize,
    /// When the operation before it ends.
    free: Nanos,
    /// What those from it on take.
    work_left: Nanos,
}

impl Die {
    /// When an operation that is queued now could start.
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

    /// Senses a page for collection: what it brings is waited for, and no program is.
    pub fn fetch(&mut self, earliest: Nanos, duration: Nanos) -> Span {
        let mut start = earliest.max(self.read_end);
        let turn = self.walk(|queued, begins, free| {
            start = start.max(free);
            begins < start || queued.task == Task::Fetch
        });
        start = start.max(turn.free);
        self.queued.insert(turn.index, Queued { earliest: start, duration, task: Task::Fetch });
        self.work += duration;
        self.ends_after = self.ends_after.max(start + duration + turn.work_left);
        Span { start, end: start + duration }
    }

    /// Senses a page for the host; `suspend` is what suspending a program or erase takes, if the
    /// drive can.
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
        let mut turn = self.walk(|_, begins, _| begins <= start);
        if turn.free > start {
            match suspend {
                Some(cost) if self.queued[turn.index - 1].task != Task::Fetch => {
                    let cost = if start <= self.suspended_until { Nanos::ZERO } else { cost };
                    start += cost;
                    self.suspended_until = start + duration;
                    self.queued[turn.index - 1].duration += cost + duration;
                    self.work += cost + duration;
                    turn.free += cost + duration;
                }
                _ => start = turn.free,
            }
        }
        self.read_end = start + duration;
        // What follows waits for the read, or for the operation that it made longer.
        let free = turn.free.max(self.read_end);
        if let Some(next) = self.queued.get_mut(turn.index) {
            next.earliest = next.earliest.max(free);
        }
        self.ends_after = self.ends_after.max(free + turn.work_left);
        Span { start, end: self.read_end }
    }

    /// Keeps the die from doing anything else until then, because the data of the last host read
    /// has not left it.
    pub fn hold(&mut self, until: Nanos) {
        let (from, held) = (self.read_end, until.saturating_sub(self.read_end));
        let mut turn = self.walk(|_, begins, _| begins < from);
        if turn.free > from {
            // It was suspended for the read, and is still.
            self.suspended_until = self.suspended_until.max(until);
            self.queued[turn.index - 1].duration += held;
            self.work += held;
            turn.free += held;
        }
        self.read_end = from + held;
        let free = turn.free.max(self.read_end);
        if let Some(next) = self.queued.get_mut(turn.index) {
            next.earliest = next.earliest.max(free);
        }
        self.ends_after = self.ends_after.max(free + turn.work_left);
    }

    /// Keeps the die at a read for collection until then, because its data has not left it.
    pub fn lengthen(&mut self, read: Span, until: Nanos) {
        let held = until.saturating_sub(read.end);
        let turn = self.walk(|_, begins, _| begins < read.start);
        self.queued[turn.index].duration += held;
        self.work += held;
        self.ends_after = self.ends_after.max(read.start + turn.work_left + held);
    }

    /// Goes along the queue past those for which `passes`, given when each begins and when the die
    /// is free for it.
    fn walk(&self, mut passes: impl FnMut(&Queued, Nanos, Nanos) -> bool) -> Turn {
        let mut turn = Turn { index: 0, free: self.free, work_left: self.work };
        while let Some(queued) = self.queued.get(turn.index) {
            let begins = turn.free.max(queued.earliest);
            if !passes(queued, begins, turn.free) {
                break;
            }
            turn.free = begins + queued.duration;
            turn.work_left = turn.work_left - queued.duration;
            turn.index += 1;
        }
        turn
    }

    /// Forgets operations that ended by `now`: no read will come before it.
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
    fn a_read_waits_for_the_program_in_progress_and_no_other() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        let read = die.sense(Nanos::from_micros(10), READ, None);
        assert_eq!(read.start, PROGRAM);
        assert_eq!(die.queue_end(), PROGRAM * 2 + READ);
    }

    #[test]
    fn a_suspended_program_lets_reads_in_and_ends_later_by_their_time() {
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
    fn a_read_for_collection_goes_before_programs_that_wait_and_behind_its_like() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(Nanos::ZERO, PROGRAM, Task::Program);
        die.queue(PROGRAM * 4, PROGRAM, Task::Program);
        let arrival = Nanos::from_micros(10);
        assert_eq!(die.fetch(arrival, READ).start, PROGRAM);
        assert_eq!(die.fetch(arrival, READ).start, PROGRAM + READ);
        assert_eq!(die.fetch(PROGRAM * 3, READ).start, PROGRAM * 3, "the die waits for data then");
        assert_eq!(die.queue_end(), PROGRAM * 5, "the last one has not been held up");
    }

    #[test]
    fn a_read_for_collection_is_not_suspended() {
        let mut die = Die::default();
        die.fetch(Nanos::ZERO, READ);
        let read = die.sense(Nanos::new(1), READ, Some(Nanos::ZERO));
        assert_eq!(read.start, READ);
    }

    #[test]
    fn reads_queue_up_behind_each_other() {
        let mut die = Die::default();
        assert_eq!(die.sense(Nanos::ZERO, READ, None).end, READ);
        assert_eq!(die.sense(Nanos::ZERO, READ, None).end, READ * 2);
        assert_eq!(die.queue(Nanos::ZERO, PROGRAM, Task::Erase).start, READ * 2);
    }

    #[test]
    fn a_die_that_is_held_begins_nothing_and_what_it_suspended_goes_on_later() {
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
    fn nothing_overlaps_on_one_die() {
        for holds in [false, true] {
            lives_without_overlap(holds);
        }
    }

    fn lives_without_overlap(holds: bool) {
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
            assert_eq!(die.queue_end(), end.max(die.free), "the end is known without a walk");
            let clash =
                |span: &&Span| queued.iter().any(|q| q.start < span.end && span.start < q.end);
            assert!(reads.iter().rev().take(50).find(clash).is_none());
        }
        assert!(reads.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
