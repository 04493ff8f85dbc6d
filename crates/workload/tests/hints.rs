//! What the writes of a job let a drive know: the requests of each kind of hint.

use std::ops::ControlFlow;

use ssdlab_device::{Completion, Device, DeviceError, Hint, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;
use ssdlab_workload::{HintKind, Job, Listed, PatternKind, Said, run};

/// A drive that does everything at once and keeps what it was asked.
#[derive(Default)]
struct Listener {
    asked: Vec<Request>,
    answered: usize,
}

impl Device for Listener {
    fn capacity_bytes(&self) -> u64 {
        1 << 20
    }

    fn sector_bytes(&self) -> u64 {
        512
    }

    fn queue_depth(&self) -> usize {
        32
    }

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.asked.push(request);
        Ok(())
    }

    fn reap(&mut self, _wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (submitted, completed) = (Nanos::ZERO, Nanos::ZERO);
        let news = self.asked[self.answered..].iter();
        done.extend(news.map(|each| Completion {
            id: each.id,
            submitted,
            completed,
            outcome: Ok(()),
        }));
        self.answered = self.asked.len();
        Ok(())
    }
}

/// What a job of 12 requests of 8 KiB asks for.
fn requests(hint: HintKind, job: Job) -> Vec<Request> {
    let job = Job {
        hint,
        length_bytes: 1 << 20,
        block_bytes: 8192,
        amount_bytes: 12 * 8192,
        queue_depth: 4,
        ..job
    };
    let mut listener = Listener::default();
    job.check(&listener).unwrap();
    run(&mut listener, &job, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(listener.asked.len(), 12);
    listener.asked
}

#[test]
fn each_write_carries_the_hint_of_its_job_and_no_other_request_does() {
    for (kind, hint) in [
        (HintKind::None, Hint::None),
        (HintKind::Overwrite, Hint::Overwrite),
        (HintKind::Stream { number: 7 }, Hint::Stream(7)),
    ] {
        let mixed = Job { read_share: 0.3, trim_share: 0.2, seed: 3, ..Job::new(Op::Write) };
        let asked = requests(kind, mixed);
        assert!(asked.iter().any(|request| request.op != Op::Write));
        for request in asked {
            let expected = if request.op == Op::Write { hint } else { Hint::None };
            assert_eq!(request.hint, expected, "{request:?}");
        }
    }
}

#[test]
fn what_a_list_names_is_asked_for_in_its_order_with_its_lengths_and_words() {
    let list = vec![
        Listed(65536, 4096, Said::Nothing),
        Listed(0, 8192, Said::After(69631)),
        Listed(131_072, 512, Said::Overwrite),
        Listed(4096, 4096, Said::Stream(3)),
    ];
    let expected = [
        (128, 8, Hint::None),
        (0, 16, Hint::AppendAfter(Lba::new(135))),
        (256, 1, Hint::Overwrite),
        (8, 8, Hint::Stream(3)),
        (128, 8, Hint::None),
    ];
    let job = |op| Job {
        pattern: PatternKind::Listed { list: list.clone() },
        length_bytes: 1 << 20,
        block_bytes: 8192,
        amount_bytes: 4096 + 8192 + 512 + 4096 + 1,
        ..Job::new(op)
    };
    for op in [Op::Write, Op::Read] {
        let mut listener = Listener::default();
        job(op).check(&listener).unwrap();
        run(&mut listener, &job(op), &mut |_| ControlFlow::Continue(())).unwrap();
        let hint = |said| if op == Op::Write { said } else { Hint::None };
        let asked = listener.asked.iter().map(|each| (each.lba.get(), each.blocks, each.hint));
        let wanted = expected.map(|(lba, blocks, said)| (lba, blocks, hint(said)));
        assert_eq!(asked.collect::<Vec<_>>(), wanted, "round and round up to the amount");
    }
    let long = Job { block_bytes: 4096, ..job(Op::Write) };
    assert!(long.check(&Listener::default()).unwrap_err().to_string().contains("[0, 8192]"));
}

#[test]
fn an_append_names_the_last_block_of_the_write_before_it_wherever_that_lies() {
    let pattern = PatternKind::Extents {
        list: vec![(65536, 16384), (0, 8192), (131_072, 65536)],
        random: false,
    };
    let asked = requests(HintKind::Append, Job { pattern, ..Job::new(Op::Write) });
    assert_eq!(asked[0].hint, Hint::None, "the first has nothing before it");
    let bytes: Vec<u64> = asked.iter().map(|request| request.lba.bytes()).collect();
    assert_eq!(bytes[..4], [65536, 73728, 0, 131_072]);
    for pair in asked.windows(2) {
        let last = Lba::new(pair[0].lba.get() + 15);
        assert_eq!(pair[1].hint, Hint::AppendAfter(last));
    }
}

#[test]
fn a_read_between_two_appends_is_not_what_the_second_follows() {
    let mixed = Job { read_share: 0.5, seed: 1, ..Job::new(Op::Write) };
    let asked = requests(HintKind::Append, mixed);
    let reads = asked.iter().filter(|request| request.op == Op::Read).count();
    assert!((2..10).contains(&reads), "{reads} reads");
    let writes: Vec<&Request> = asked.iter().filter(|each| each.op == Op::Write).collect();
    for pair in writes.windows(2) {
        assert_eq!(pair[1].hint, Hint::AppendAfter(pair[0].lba.plus(15)));
    }
}
