//! The latency of durable writes on a twin, with and without power-loss protection.

use std::ops::ControlFlow;

use ssdlab_device::Op;
use ssdlab_flash::{Profile, Ssd};
use ssdlab_workload::{Job, Outcome, PatternKind, Sync, run};

const PROFILE: &str = r#"
[drive]
model = "Test"
capacity = "64 MiB"
interface = "nvme"
[link]
bandwidth = "2000 MB/s"
read_overhead = "10 us"
write_overhead = "5 us"
[flash]
channels = 2
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 16
read = ["40 us"]
program = "700 us"
erase = "3 ms"
channel_bandwidth = "800 MB/s"
[ftl]
spare = 0.28
[buffer]
size = "1 MiB"
"#;

/// Sixteen random writes of 4 KiB at depth 1; `buffer` is appended to the profile's `[buffer]`.
fn written(buffer: &str, sync: Sync) -> Outcome {
    let profile = Profile::from_toml(&format!("{PROFILE}{buffer}")).unwrap();
    let job = Job {
        sync,
        pattern: PatternKind::Random,
        length_bytes: 1 << 24,
        block_bytes: 4096,
        amount_bytes: 16 * 4096,
        ..Job::new(Op::Write)
    };
    run(&mut Ssd::new(&profile, 0), &job, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_durable_write_waits_for_its_program_unless_capacitors_protect_the_buffer() {
    let fast = |outcome: &Outcome| outcome.latency(Some(Op::Write)).max() < 20_000;
    assert!(fast(&written("", Sync::None)));
    let durable = written("", Sync::Durable).latency(Some(Op::Write));
    assert!(durable.quantile(0.0) >= 700_000, "{} ns", durable.quantile(0.0));
    assert!(fast(&written("power_loss_protection = true", Sync::Durable)));
    assert!(fast(&written("honours_flush = false", Sync::Durable)));
}

#[test]
fn a_flush_after_each_write_costs_the_same_and_is_counted_separately() {
    let flushed = written("", Sync::Flush { every: 1 });
    assert!(flushed.latency(Some(Op::Write)).max() < 20_000);
    let flush = flushed.latency(Some(Op::Flush));
    assert_eq!(flush.count(), 16);
    assert!(flush.quantile(0.0) >= 700_000);
    let durable = written("", Sync::Durable).record;
    let ratio = flushed.record.end.as_secs_f64() / durable.end.as_secs_f64();
    assert!((0.95..1.1).contains(&ratio), "{ratio}");
}
