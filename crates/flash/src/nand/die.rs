//! `Die`: one at a time, reads before what waits, everything else in order of arrival.

use std::collections::VecDeque;

use ssdlab_time::{Nanos, Span};

/// A die's time.
///
/// Modelled: one operation at a time; programs, erases and collection's reads run in order of
/// arrival; a host read waits for the operation in progress, or suspends it where the drive can,
/// then goes before those that have not begun, which start later by its time; host reads among
/// themselves run in order of arrival.
///
/// Not modelled: a bound on how often one operation may be suspended; cache reads that overlap the
/// next sense with a transfer's setup.
///
/// Differs from hardware: an operation that a read pushes back ends later for the die, but who was
/// told its end before (the write buffer, which frees a place then) is not told again.
#[derive(Clone, Debug, Default)]
pub struct Die {
    /// Operations that may not have ended yet, in order of time.
    queued: VecDeque<Queued>,
    /// When the last queued operation ends.
    queue_end: Nanos,
    /// When the last host read ends.
    read_end: Nanos,
    /// Until when a suspended operation rests: a read that follows at once need not suspend again.
    suspended_until: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    span: Span,
    task: Task,
}

/// What is queued on a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A program of this multi-plane page.
    Program(u32),
    /// An erase of one block in each plane.
    Erase,
    /// A read for collection.
    Fetch,
}

impl Die {
    /// When an operation that is queued now could start.
    pub fn queue_end(&self) -> Nanos {
        self.queue_end.max(self.read_end)
    }

    /// Queues an operation.
    pub fn queue(&mut self, earliest: Nanos, duration: Nanos, task: Task) -> Span {
        let start = earliest.max(self.queue_end());
        let span = Span { start, end: start + duration };
        self.queue_end = span.end;
        self.queued.push_back(Queued { span, task });
        span
    }

    /// Senses a page for the host; `suspend` is what suspending a program or erase takes, if the
    /// drive can.
    pub fn sense(&mut self, earliest: Nanos, duration: Nanos, suspend: Option<Nanos>) -> Span {
        let start = earliest.max(self.read_end);
        if self.queued.is_empty() {
            self.read_end = start + duration;
            return Span { start, end: self.read_end };
        }
        let begun = self.queued.iter().take_while(|queued| queued.span.start <= start).count();
        let running = begun.checked_sub(1).filter(|last| self.queued[*last].span.end > start);
        let span = match (running, suspend) {
            (None, _) => Span { start, end: start + duration },
            (Some(index), Some(cost)) if self.queued[index].task != Task::Fetch => {
                self.suspend(index, start, duration, cost)
            }
            (Some(index), _) => {
                let start = self.queued[index].span.end;
                Span { start, end: start + duration }
            }
        };
        self.read_end = span.end;
        // What follows waits for the read, or for the operation that it made longer.
        let free = running.map_or(span.end, |index| self.queued[index].span.end.max(span.end));
        self.push_back_from(begun, free);
        span
    }

    /// Lets a read in while an operation rests, which then ends later by the time it rested.
    fn suspend(&mut self, index: usize, start: Nanos, duration: Nanos, cost: Nanos) -> Span {
        let cost = if start <= self.suspended_until { Nanos::ZERO } else { cost };
        let start = start + cost;
        let end = start + duration;
        self.queued[index].span.end += duration + cost;
        self.queue_end = self.queue_end.max(self.queued[index].span.end);
        self.suspended_until = end;
        Span { start, end }
    }

    /// When the program of this page ends, while it has not ended at `now`: its data is still in
    /// the buffer until then.
    pub fn programming(&self, page: u32, now: Nanos) -> bool {
        self.queued.iter().any(|queued| queued.task == Task::Program(page) && queued.span.end > now)
    }

    /// Forgets operations that ended by `now`: no read will come before it.
    pub fn forget_before(&mut self, now: Nanos) {
        while self.queued.front().is_some_and(|queued| queued.span.end <= now) {
            self.queued.pop_front();
        }
    }

    /// Operations from `index` on start at `free` or later, in their order.
    fn push_back_from(&mut self, index: usize, mut free: Nanos) {
        for queued in self.queued.iter_mut().skip(index) {
            if queued.span.start >= free {
                return;
            }
            let duration = queued.span.end - queued.span.start;
            queued.span = Span { start: free, end: free + duration };
            free = queued.span.end;
        }
        if index < self.queued.len() {
            self.queue_end = free;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Die, Task};
    use ssdlab_time::Nanos;

    const PROGRAM: Nanos = Nanos::from_micros(700);
    const READ: Nanos = Nanos::from_micros(50);

    #[test]
    fn a_read_waits_for_the_program_in_progress_and_no_other() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, PROGRAM, Task::Program(0));
        die.queue(Nanos::ZERO, PROGRAM, Task::Program(1));
        let read = die.sense(Nanos::from_micros(10), READ, None);
        assert_eq!(read.start, PROGRAM);
        assert_eq!(die.queue_end(), PROGRAM * 2 + READ);
    }

    #[test]
    fn a_suspended_program_lets_reads_in_and_ends_later_by_their_time() {
        let (mut die, cost) = (Die::default(), Nanos::from_micros(20));
        die.queue(Nanos::ZERO, PROGRAM, Task::Program(0));
        die.queue(Nanos::ZERO, PROGRAM, Task::Program(1));
        let arrival = Nanos::from_micros(100);
        let first = die.sense(arrival, READ, Some(cost));
        assert_eq!(first.end, arrival + cost + READ);
        let second = die.sense(arrival, READ, Some(cost));
        assert_eq!(second.end, first.end + READ, "suspended already");
        assert_eq!(die.queue_end(), PROGRAM * 2 + cost + READ * 2);
        let late = PROGRAM + cost + READ * 2;
        assert!(die.programming(0, late - Nanos::new(1)) && !die.programming(0, late));
    }

    #[test]
    fn a_read_for_collection_is_not_suspended() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, READ, Task::Fetch);
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
    fn a_page_is_in_the_buffer_until_its_program_ends() {
        let mut die = Die::default();
        die.queue(Nanos::ZERO, PROGRAM, Task::Program(4));
        assert!(die.programming(4, Nanos::from_micros(699)));
        assert!(!die.programming(4, PROGRAM));
        assert!(!die.programming(3, Nanos::ZERO));
    }

    #[test]
    fn nothing_overlaps_on_one_die() {
        let mut die = Die::default();
        let mut random = ssdlab_time::Random::new(5, "die");
        let (mut now, mut reads) = (Nanos::ZERO, Vec::new());
        for _ in 0..5000 {
            now += Nanos::from_micros(random.below(60));
            die.forget_before(now);
            if random.below(4) == 0 {
                die.queue(now, PROGRAM, Task::Erase);
            } else {
                reads.push(die.sense(now, READ, None));
            }
            let clash = |span: &&ssdlab_time::Span| {
                die.queued.iter().any(|q| q.span.start < span.end && span.start < q.span.end)
            };
            assert!(reads.iter().rev().take(50).find(clash).is_none());
        }
        assert!(reads.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
