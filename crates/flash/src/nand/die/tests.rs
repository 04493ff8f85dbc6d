//! Schedules of one die.

use ssdlab_time::{Nanos, Span};

use super::{Die, DieActivity, OperationKind, Priority, Task};

const PROGRAM: Nanos = Nanos::from_micros(700);
const READ: Nanos = Nanos::from_micros(50);

/// Suspends that take `cost`.
fn suspends(cost: Nanos) -> Priority {
    Priority { suspend: Some(cost), limit: None }
}

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
    let read = die.sense(0, Nanos::from_micros(10), READ, &Priority::default());
    assert_eq!(read.start, PROGRAM);
    assert_eq!(die.queue_end(), PROGRAM * 2 + READ);
}

#[test]
fn the_activity_of_a_die_is_its_operation_in_progress_or_the_read_for_which_it_is_suspended() {
    let us = Nanos::from_micros;
    let now = |die: &Die, time| die.activity(us(time)).now;
    let mut die = Die::default();
    assert_eq!(now(&die, 0), None);
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    die.queue(us(900), PROGRAM, Task::Erase);
    let free_at = us(1600);
    let expected = Some((OperationKind::Program, us(700)));
    assert_eq!(die.activity(us(10)), DieActivity { now: expected, free_at, queued: 2 });
    assert_eq!(die.activity(us(700)), DieActivity { now: None, free_at, queued: 1 });
    assert_eq!(now(&die, 900), Some((OperationKind::Erase, us(1600))));

    // A read suspends the program from 100 us on, and runs from 120 to 170 us.
    die.sense(0, us(100), READ, &suspends(us(20)));
    assert_eq!(now(&die, 99), Some((OperationKind::Program, us(770))));
    assert_eq!(now(&die, 130), Some((OperationKind::Sense, us(170))));
    assert_eq!(now(&die, 170), Some((OperationKind::Program, us(770))));

    // Another waits for its end.
    die.sense(0, us(400), READ, &Priority::default());
    assert_eq!(now(&die, 500), Some((OperationKind::Program, us(770))));
    assert_eq!(now(&die, 790), Some((OperationKind::Sense, us(820))));
    assert_eq!(now(&die, 820), None);
}

#[test]
fn a_suspended_program_ends_later_by_the_time_of_the_reads() {
    let (mut die, cost) = (Die::default(), Nanos::from_micros(20));
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    let arrival = Nanos::from_micros(100);
    let first = die.sense(0, arrival, READ, &suspends(cost));
    assert_eq!(first.end, arrival + cost + READ);
    let second = die.sense(0, arrival, READ, &suspends(cost));
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
    let read = die.sense(0, Nanos::new(1), READ, &suspends(Nanos::ZERO));
    assert_eq!(read.start, READ);
}

#[test]
fn reads_run_in_order_of_arrival() {
    let mut die = Die::default();
    assert_eq!(die.sense(0, Nanos::ZERO, READ, &Priority::default()).end, READ);
    assert_eq!(die.sense(0, Nanos::ZERO, READ, &Priority::default()).end, READ * 2);
    assert_eq!(die.queue(Nanos::ZERO, PROGRAM, Task::Erase).start, READ * 2);
}

#[test]
fn a_die_busy_with_a_transfer_starts_nothing_and_resumes_a_suspended_program_later() {
    let (mut die, cost) = (Die::default(), Nanos::from_micros(20));
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    let read = die.sense(0, Nanos::from_micros(100), READ, &suspends(cost));
    let out = Nanos::from_micros(40);
    die.hold(read.end + out);
    let gone = cost + READ + out;
    assert_eq!(spans(&die)[0].end, PROGRAM + gone);
    assert_eq!(die.queue_end(), PROGRAM * 2 + gone);
    let next = die.sense(0, Nanos::from_micros(100), READ, &suspends(cost));
    assert_eq!(next.start, read.end + out);
}

#[test]
fn after_the_limit_a_program_runs_to_its_end_before_further_reads() {
    let (mut die, cost) = (Die::default(), Nanos::from_micros(20));
    let priority = Priority { suspend: Some(cost), limit: Some(Nanos::from_micros(125)) };
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    let arrival = Nanos::from_micros(100);
    let first = die.sense(0, arrival, READ, &priority);
    assert_eq!(first.end, arrival + cost + READ);
    let second = die.sense(0, arrival, READ, &priority);
    assert_eq!(second.end, first.end + READ, "120 us in total");
    let third = die.sense(0, arrival, READ, &priority);
    assert_eq!(third.start, PROGRAM + cost + READ * 2, "the end of the program");
    assert_eq!(die.queue_end(), third.end);
}

#[test]
fn after_the_limit_a_program_that_has_not_begun_runs_before_further_reads() {
    let mut die = Die::new(2);
    let priority = Priority { suspend: None, limit: Some(READ * 2) };
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    let program = die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    let mut sense = |plane, at| die.sense(plane, at, READ, &priority).start - program.start;
    assert_eq!(sense(0, program.start.saturating_sub(READ)), Nanos::ZERO);
    let [later, latest] = [40, 80].map(Nanos::from_micros);
    assert_eq!(sense(1, program.start + later), later, "delays it by 90 us in total");
    assert_eq!(sense(0, program.start + latest), later + READ + PROGRAM, "would by 130 us");
}

#[test]
fn planes_that_read_independently_read_at_the_same_time_and_wait_for_the_same_program() {
    let mut die = Die::new(2);
    let priority = Priority::default();
    let both = [0, 1, 1].map(|plane| die.sense(plane, Nanos::ZERO, READ, &priority).start);
    assert_eq!(both, [Nanos::ZERO, Nanos::ZERO, READ]);
    let program = die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    assert_eq!(program.start, READ * 2, "a program occupies both planes");
    let now = program.start + READ;
    let waiting = [0, 1].map(|plane| die.sense(plane, now, READ, &priority).start);
    assert_eq!(waiting, [program.end, program.end]);
}

#[test]
fn a_read_of_another_plane_joins_a_suspension() {
    let (mut die, cost) = (Die::new(2), Nanos::from_micros(20));
    die.queue(Nanos::ZERO, PROGRAM, Task::Program);
    let [first, later] = [100, 110].map(Nanos::from_micros);
    let reads = [(0, first), (1, later)]
        .map(|(plane, at)| die.sense(plane, at, READ, &suspends(cost)).start);
    assert_eq!(reads, [first + cost; 2]);
    assert_eq!(die.queue_end(), PROGRAM + cost + READ);
}

#[test]
fn operations_of_one_die_never_overlap() {
    for holds in [false, true] {
        check_no_overlap(Die::default(), holds, None);
        check_no_overlap(Die::default(), holds, Some(READ * 4));
    }
    check_no_overlap(Die::new(4), false, None);
    check_no_overlap(Die::new(4), false, Some(READ * 4));
}

/// Runs random operations; the later of two reads of a plane starts when the first has ended.
fn check_no_overlap(mut die: Die, holds: bool, limit: Option<Nanos>) {
    let priority = Priority { suspend: None, limit };
    let mut random = ssdlab_time::Random::new(5, "die");
    let (mut now, mut reads) = (Nanos::ZERO, vec![Vec::new(); 4]);
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
            kind => {
                let plane = if die.reads.is_by_plane() { random.below(4) as usize } else { 0 };
                // Some reads wait for the map first.
                let at = if kind == 3 && !holds { later } else { now };
                let mut read = die.sense(plane, at, READ, &priority);
                if holds {
                    read.end += Nanos::from_micros(random.below(40));
                    die.hold(read.end);
                }
                reads[plane].push(read);
            }
        }
        check_schedule(&die, &reads);
        let delays = (0..die.queued.len()).map(|index| die.queued[index].delayed);
        let delay = delays.max().unwrap_or_default();
        assert!(holds || priority.allows(delay), "an operation was delayed by {delay}");
    }
    let in_order = |of_plane: &Vec<Span>| of_plane.windows(2).all(|p| p[0].end <= p[1].start);
    assert!(reads.iter().all(in_order));
}

fn check_schedule(die: &Die, reads: &[Vec<Span>]) {
    let queued = spans(die);
    assert!(queued.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let end = queued.last().map_or(Nanos::ZERO, |last| last.end).max(die.reads.end);
    let end = end.max(die.free);
    assert_eq!(die.queue_end(), end, "the end agrees with that of the last operation");
    let clash = |read: &&Span| queued.iter().any(|q| q.start < read.end && read.start < q.end);
    for of_plane in reads {
        assert_eq!(of_plane.iter().rev().take(50).find(clash), None);
    }
}

#[test]
fn where_reads_for_collection_run_does_not_depend_on_where_the_walk_begins() {
    let mut random = ssdlab_time::Random::new(6, "die");
    let (mut die, mut from_start) = (Die::default(), Die::default());
    let (mut now, mut known) = (Nanos::ZERO, 0);
    for _ in 0..20_000 {
        now += Nanos::from_micros(random.below(90));
        let at = now + Nanos::from_micros(random.below(3) * 400);
        let (kind, held) = (random.below(24), Nanos::from_micros(random.below(30)));
        known += u32::from(die.fetched.is_some());
        from_start.fetched = None;
        let ends = [&mut die, &mut from_start].map(|die| {
            die.forget_before(now);
            match kind {
                0 => die.queue(at, PROGRAM * 4, Task::Erase).end,
                1 => die.sense(0, now, READ, &suspends(held)).end,
                2..6 => die.queue(at, READ * 3, Task::Program).end,
                _ => {
                    let read = die.fetch(at, READ);
                    if kind % 2 == 0 {
                        die.lengthen(read, read.end + held);
                    }
                    read.end
                }
            }
        });
        assert_eq!(ends[0], ends[1]);
        assert_eq!(spans(&die), spans(&from_start));
        assert_eq!(die.queue_end(), from_start.queue_end());
    }
    assert!(known > 10_000, "known {known} times");
}
