//! The hints of a job's writes.

use ssdlab_device::{Hint, Lba, Op, Request};
use ssdlab_uring::NullDevice;
use ssdlab_workload::{HintKind, Job, ListedHint, ListedRequest, PatternKind, Sync};

use crate::recorded;

/// The requests of a job of 12 requests of 8 KiB.
fn requests_of(hint: HintKind, job: Job) -> Vec<Request> {
    let job = Job {
        hint,
        length_bytes: 1 << 20,
        block_bytes: 8192,
        amount_bytes: 12 * 8192,
        queue_depth: 4,
        ..job
    };
    let (_, requests) = recorded(&mut NullDevice::new(32), &job);
    assert_eq!(requests.len(), 12);
    requests
}

#[test]
fn writes_and_only_writes_carry_the_hint_of_the_job() {
    for (kind, hint) in [
        (HintKind::None, Hint::None),
        (HintKind::Overwrite, Hint::Overwrite),
        (HintKind::Stream { number: 7 }, Hint::Stream(7)),
    ] {
        let mixed = Job { read_share: 0.3, trim_share: 0.2, seed: 3, ..Job::new(Op::Write) };
        let requests = requests_of(kind, mixed);
        assert!(requests.iter().any(|request| request.op != Op::Write));
        for request in requests {
            let expected = if request.op == Op::Write { hint } else { Hint::None };
            assert_eq!(request.hint, expected, "{request:?}");
        }
    }
}

fn listed(offset_bytes: u64, length_bytes: u64, hint: ListedHint) -> ListedRequest {
    ListedRequest { offset_bytes, length_bytes, hint }
}

#[test]
fn listed_requests_are_submitted_in_order_with_their_lengths_and_hints() {
    let list = vec![
        listed(65536, 4096, ListedHint::None),
        listed(0, 8192, ListedHint::AppendAfter(69631)),
        listed(131_072, 512, ListedHint::Overwrite),
        listed(4096, 4096, ListedHint::Stream(3)),
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
        let (_, requests) = recorded(&mut NullDevice::new(32), &job(op));
        let expected_hint = |hint| if op == Op::Write { hint } else { Hint::None };
        let requests = requests.iter().map(|each| (each.lba.get(), each.blocks, each.hint));
        let wanted = expected.map(|(lba, blocks, hint)| (lba, blocks, expected_hint(hint)));
        assert_eq!(requests.collect::<Vec<_>>(), wanted, "the list repeats up to the amount");
    }
    let long = Job { block_bytes: 4096, ..job(Op::Write) };
    assert!(long.check(&NullDevice::new(32)).unwrap_err().to_string().contains("[0, 8192]"));
}

#[test]
fn a_listed_read_among_writes_is_a_read_and_not_durable() {
    let list = vec![
        listed(65536, 4096, ListedHint::None),
        listed(0, 4096, ListedHint::Read),
        listed(8192, 4096, ListedHint::Read),
    ];
    let job = Job {
        pattern: PatternKind::Listed { list },
        length_bytes: 1 << 20,
        block_bytes: 4096,
        amount_bytes: 4 * 4096,
        sync: Sync::Durable,
        ..Job::new(Op::Write)
    };
    let (_, requests) = recorded(&mut NullDevice::new(32), &job);
    let requests = requests.iter().map(|each| (each.op, each.lba.get(), each.durable));
    let expected = [
        (Op::Write, 128, true),
        (Op::Read, 0, false),
        (Op::Read, 16, false),
        (Op::Write, 128, true),
    ];
    assert_eq!(requests.collect::<Vec<_>>(), expected);
}

#[test]
fn an_append_names_the_last_block_of_the_previous_write_anywhere() {
    let pattern = PatternKind::Extents {
        list: vec![(65536, 16384), (0, 8192), (131_072, 65536)],
        random: false,
    };
    let requests = requests_of(HintKind::Append, Job { pattern, ..Job::new(Op::Write) });
    assert_eq!(requests[0].hint, Hint::None, "the first write has no previous one");
    let bytes: Vec<u64> = requests.iter().map(|request| request.lba.bytes()).collect();
    assert_eq!(bytes[..4], [65536, 73728, 0, 131_072]);
    for pair in requests.windows(2) {
        let last = Lba::new(pair[0].lba.get() + 15);
        assert_eq!(pair[1].hint, Hint::AppendAfter(last));
    }
}

#[test]
fn reads_between_appends_are_ignored() {
    let mixed = Job { read_share: 0.5, seed: 1, ..Job::new(Op::Write) };
    let requests = requests_of(HintKind::Append, mixed);
    let reads = requests.iter().filter(|request| request.op == Op::Read).count();
    assert!((2..10).contains(&reads), "{reads} reads");
    let writes: Vec<&Request> = requests.iter().filter(|each| each.op == Op::Write).collect();
    for pair in writes.windows(2) {
        assert_eq!(pair[1].hint, Hint::AppendAfter(pair[0].lba.plus(15)));
    }
}
