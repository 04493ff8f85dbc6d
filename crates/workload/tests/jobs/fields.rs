//! Jobs as JSON, and the errors of invalid ones.

use ssdlab_device::{Device, Op};
use ssdlab_workload::{Arrival, HintKind, Job, ListedHint, ListedRequest, PatternKind, Sync};

use crate::twin;

fn valid() -> Job {
    Job { length_bytes: 1 << 20, block_bytes: 4096, amount_bytes: 1 << 20, ..Job::new(Op::Write) }
}

/// The error of a job on a drive with a queue of 32.
fn refusal(job: &Job) -> String {
    let twin = twin(&[("\"nvme\"", "\"sata\"")]);
    assert_eq!((twin.queue_depth(), twin.sector_bytes()), (32, 512));
    job.check(&twin).unwrap_err().to_string()
}

#[test]
fn the_default_is_a_closed_loop_at_depth_1() {
    let job: Job = serde_json::from_str(r#"{"op": "read"}"#).unwrap();
    assert_eq!(job, Job::new(Op::Read));
}

#[test]
fn every_field_can_be_given_as_json() {
    let job: Job = serde_json::from_str(
        r#"{"op": "write", "read_share": 0.5, "trim_share": 0.1,
            "pattern": {"zipf": {"theta": 1.1}}, "offset_bytes": 4096, "length_bytes": 65536,
            "block_mix": [[4096, 1], [8192, 0.5]], "seconds": 2,
            "arrival": {"rate": {"per_s": 100, "poisson": true}}, "queue_depth": 4,
            "sync": {"flush": {"every": 3}}, "hint": {"stream": {"number": 3}},
            "threads": 2, "seed": 9, "interval_us": 10000}"#,
    )
    .unwrap();
    let expected = Job {
        read_share: 0.5,
        trim_share: 0.1,
        pattern: PatternKind::Zipf { theta: 1.1 },
        offset_bytes: 4096,
        length_bytes: 65536,
        block_mix: vec![(4096, 1.0), (8192, 0.5)],
        seconds: Some(2.0),
        arrival: Arrival::Rate { per_s: 100.0, poisson: true },
        queue_depth: 4,
        sync: Sync::Flush { every: 3 },
        hint: HintKind::Stream { number: 3 },
        threads: 2,
        seed: 9,
        interval_us: 10_000,
        ..Job::new(Op::Write)
    };
    assert_eq!(job, expected);
}

#[test]
fn listed_requests_are_arrays_of_offset_length_and_hint() {
    let list = r#"[[0, 4096, "nothing"], [8192, 512, {"after": 4095}], [0, 512, {"stream": 3}]]"#;
    let text = format!(r#"{{"op": "write", "pattern": {{"listed": {{"list": {list}}}}}}}"#);
    let job: Job = serde_json::from_str(&text).unwrap();
    let listed =
        |offset_bytes, length_bytes, hint| ListedRequest { offset_bytes, length_bytes, hint };
    let list = vec![
        listed(0, 4096, ListedHint::None),
        listed(8192, 512, ListedHint::AppendAfter(4095)),
        listed(0, 512, ListedHint::Stream(3)),
    ];
    assert_eq!(job.pattern, PatternKind::Listed { list });
}

#[test]
fn an_unknown_field_or_value_is_refused_at_every_level() {
    for text in [
        r#"{"op": "read", "depth": 1}"#,
        r#"{"op": "read", "pattern": "chaotic"}"#,
        r#"{"op": "read", "pattern": {"zipf": {"theta": 1, "seed": 2}}}"#,
        r#"{"op": "read", "arrival": {"rate": {"per_s": 1, "burst": 2}}}"#,
        r#"{"op": "read", "sync": {"flush": {"every": 1, "kind": 2}}}"#,
        r#"{"op": "write", "hint": "appends"}"#,
        r#"{"op": "write", "hint": {"stream": {"number": 1, "of": 2}}}"#,
    ] {
        let error = serde_json::from_str::<Job>(text).unwrap_err().to_string();
        assert!(error.contains("unknown"), "{text}: {error}");
    }
}

#[test]
fn an_invalid_field_is_named_with_its_allowed_values() {
    use PatternKind::{Aligned, Extents, RandomOnce, Strided, Zipf};
    let rate = |per_s| Arrival::Rate { per_s, poisson: false };
    let pattern = |pattern| Job { pattern, ..valid() };
    let extents = |list| pattern(Extents { list, random: false });
    let mixed = |mix: &[(u64, f64)]| Job { block_bytes: 0, block_mix: mix.to_vec(), ..valid() };
    let sync = Sync::Flush { every: 1 };
    let (overwrite, stream) = (HintKind::Overwrite, HintKind::Stream { number: 256 });
    for (job, message) in [
        (Job { queue_depth: 0, ..valid() }, "queue_depth is 0; may be 1 to 1024"),
        (Job { interval_us: 0, ..valid() }, "interval_us is 0; may be 1 or more"),
        (Job { seconds: Some(0.0), ..valid() }, "seconds is 0; may be above 0"),
        (Job { seconds: Some(f64::NAN), ..valid() }, "seconds is NaN; may be"),
        (Job { arrival: rate(0.0), ..valid() }, "arrival.rate.per_s is 0; may be above 0"),
        (Job { sync: Sync::Flush { every: 0 }, ..valid() }, "sync.flush.every is 0; may be 1"),
        (Job { sync, queue_depth: 33, ..valid() }, "queue_depth is 33; may be 1 to 32"),
        (Job { read_share: 1.5, ..valid() }, "read_share is 1.5; may be 0 to 1"),
        (Job { read_share: 0.5, trim_share: 0.75, ..valid() }, "trim_share is 0.75; may be 0 to"),
        (Job { read_share: 0.5, ..Job::new(Op::Flush) }, "op is flush; may be read, write or trim"),
        (Job { threads: 2, ..Job::new(Op::Flush) }, "threads is 2; may be 1"),
        (Job { block_bytes: 1000, ..valid() }, "block_bytes is 1000; may be a multiple of"),
        (Job { block_bytes: 1 << 50, ..valid() }, "block_bytes is 1125899906842624; may be"),
        (Job { block_mix: vec![(4096, 1.0)], ..valid() }, "block_bytes is 4096; may be 0 if"),
        (mixed(&[(1000, 1.0)]), "block_mix length is 1000; may be"),
        (mixed(&[(4096, -1.0)]), "block_mix weight is -1; may be above 0"),
        (Job { pattern: RandomOnce, ..mixed(&[(4096, 1.0)]) }, "block_mix is given; may be left"),
        (Job { offset_bytes: 77, ..valid() }, "offset_bytes is 77; may be a multiple of"),
        (Job { length_bytes: 1 << 50, ..valid() }, "length_bytes is 1125899906842624; may be"),
        (Job { offset_bytes: 1 << 50, ..valid() }, "length_bytes is 1048576; may be from one"),
        (pattern(Zipf { theta: 0.0 }), "pattern.zipf.theta is 0; may be above 0"),
        (pattern(Strided { stride_bytes: 0, alignment_bytes: 0 }), "pattern.strided.stride_bytes"),
        (pattern(Strided { stride_bytes: 512, alignment_bytes: 1 }), "pattern.strided.alignment_b"),
        (pattern(Aligned { alignment_bytes: 0 }), "pattern.aligned.alignment_bytes is 0; may be"),
        (extents(vec![]), "pattern.extents.list is empty; may be one extent or more"),
        (extents(vec![(0, 512)]), "pattern.extents.list is [0, 512]; may be"),
        (extents(vec![(1 << 20, 4096)]), "pattern.extents.list is [1048576, 4096]; may be"),
        (Job { hint: stream, ..valid() }, "hint.stream.number is 256; may be 0 to 255"),
        (Job { hint: overwrite, ..Job::new(Op::Read) }, "hint is given; may be none unless op is"),
        (Job { threads: 0, ..valid() }, "threads is 0; may be 1 to 256"),
        (Job { threads: 200, length_bytes: 1 << 16, ..valid() }, "threads is 200; may be 1 to 16"),
        (Job { amount_bytes: 0, ..valid() }, "amount_bytes is 0; may be one block or more"),
    ] {
        let refused = refusal(&job);
        assert!(refused.starts_with(message), "{refused:?} does not start with {message:?}");
        assert!(!refused.contains('\n'));
    }
}

#[test]
fn parts_of_a_job_share_its_amount_rate_and_region() {
    let job = Job {
        threads: 4,
        seed: 3,
        arrival: Arrival::Rate { per_s: 100.0, poisson: true },
        ..valid()
    };
    let parts: Vec<Job> = (0..4).map(|number| job.part(number)).collect();
    assert!(parts.iter().all(|part| part.amount_bytes == 1 << 18 && part.threads == 1));
    assert!(parts.iter().all(|part| part.length_bytes == 1 << 18));
    assert_eq!(parts[3].offset_bytes, 3 << 18);
    assert_eq!(parts[2].arrival, Arrival::Rate { per_s: 25.0, poisson: true });
    assert_eq!(parts[0].seed, 3);
    assert_ne!(parts[1].seed, parts[2].seed);
    let random = Job { pattern: PatternKind::Random, ..job };
    assert_eq!((random.part(3).offset_bytes, random.part(3).length_bytes), (0, 1 << 20));
}
