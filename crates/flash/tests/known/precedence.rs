//! Host reads against programs: suspends with and without a limit, and planes that read
//! independently.

use ssdlab_device::{Completion, Device, Op};
use ssdlab_flash::Profile;
use ssdlab_time::{Nanos, Random};

use crate::host::{Host, profile, request};

const READ: Nanos = Nanos::from_micros(50);
const PROGRAM: Nanos = Nanos::from_micros(700);

/// One die of four planes; a multi-plane page of 64 KiB takes 20 us on the channel; the buffer
/// holds four of them.
fn one_die(flash: &str) -> Profile {
    let flash = format!(
        "channels = 1\ndies_per_channel = 1\nplanes = 4\npage = \"16 KiB\"\npages_per_block = 64\n\
         channel_bandwidth = \"3200 MiB/s\"\n{flash}"
    );
    profile("64 MiB", &flash, "spare = 0.5", "size = \"256 KiB\"")
}

/// A drive that was written in order, with nothing in flight.
fn filled(flash: &str) -> Host {
    let mut host = Host::new(&one_die(flash));
    (0..host.units()).step_by(16).for_each(|unit| host.submit(request(Op::Write, unit, 16), 4));
    host.drain();
    host.flush();
    host.done.clear();
    host
}

/// The mean latency of reads and the longest of writes, if one request of 32 is a write.
fn latencies(flash: &str, depth: usize) -> [Nanos; 2] {
    let mut host = filled(flash);
    let (units, first, erases) = (host.units(), host.submitted, host.drive.counters().erases);
    let mut random = Random::new(3, "mix");
    for index in 0..64_000 {
        let op = if index % 32 == 0 { Op::Write } else { Op::Read };
        host.submit(request(op, random.below(units), 1), depth);
    }
    host.drain();
    assert_eq!(host.drive.counters().erases, erases, "no write waits for an erase");
    let (writes, reads): (Vec<&Completion>, Vec<&Completion>) =
        host.done.iter().partition(|done| (done.id - first) % 32 == 0);
    let latency = |done: &Completion| done.completed - done.submitted;
    let total: Nanos = reads.iter().map(|done| latency(done)).sum();
    let mean = Nanos::new(total.get() / reads.len() as u64);
    [mean, writes.iter().map(|done| latency(done)).max().unwrap()]
}

#[test]
fn a_limit_bounds_how_long_suspends_delay_writes() {
    let limited = "suspend = \"20 us\"\ndelay_limit = \"1 ms\"";
    let [_, unlimited] = latencies("suspend = \"20 us\"", 64);
    let [_, longest] = latencies(limited, 64);
    // A write waits at most until the buffer's four pages and one before them are programmed, each
    // delayed by the limit and one read in progress.
    let bound = (PROGRAM + Nanos::from_millis(1) + READ) * 5;
    assert!(longest < bound, "the longest write took {longest}, by hand at most {bound}");
    assert!(unlimited > bound, "without a limit {unlimited}");
    let [[suspends, _], [waits, _]] = [limited, ""].map(|flash| latencies(flash, 1));
    assert!(suspends < waits, "a read takes {suspends} with suspends, {waits} without");
}

/// Reads per second of single units at depth 64.
fn read_rate(host: &mut Host, unit_of: impl Fn(u64) -> u64) -> f64 {
    let start = host.drive.now();
    (0..20_000).for_each(|index| host.submit(request(Op::Read, unit_of(index), 1), 64));
    host.drain();
    20_000.0 / (host.drive.now() - start).as_secs_f64()
}

fn assert_close(label: &str, by_hand: f64, model: f64) {
    assert!((model / by_hand - 1.0).abs() < 0.01, "{label}: by hand {by_hand}, model {model}");
}

#[test]
fn planes_that_read_independently_multiply_the_reads_of_a_die() {
    let independent = "independent_plane_reads = true";
    // Every fourth unit is on the next plane; units 0, 16, 32 are on plane 0.
    let turns = |index: u64| index % 4 * 4 + index / 4 % 256 * 16;
    let one_plane = |index: u64| index % 256 * 16;
    let senses = 1.0 / READ.as_secs_f64();
    assert_close("together", senses, read_rate(&mut filled(""), turns));
    assert_close("in turn", 4.0 * senses, read_rate(&mut filled(independent), turns));
    assert_close("one plane", senses, read_rate(&mut filled(independent), one_plane));
}

#[test]
fn a_read_of_all_planes_takes_one_tr_also_if_they_read_independently() {
    let latency = |flash: &str| {
        let mut host = filled(flash);
        host.run(request(Op::Read, 0, 16));
        host.done[0].completed - host.done[0].submitted
    };
    let (together, apart) = (latency(""), latency("independent_plane_reads = true"));
    assert_close("latency", together.as_secs_f64(), apart.as_secs_f64());
}

#[test]
fn a_page_stays_in_the_register_of_its_own_plane() {
    // Units of two planes in turn: without registers of their own, each needs a sense.
    let senses = |flash: &str| {
        let mut host = filled(&format!("keeps_page = true\n{flash}"));
        let before = host.drive.now();
        (0..100).for_each(|index| host.run(request(Op::Read, index % 2 * 20, 1)));
        (host.drive.now() - before).as_secs_f64() / READ.as_secs_f64()
    };
    let (one, own) = (senses(""), senses("independent_plane_reads = true"));
    assert!(one > 100.0, "one register a die: {one} senses");
    assert!(own < 60.0, "a register for each plane: {own} senses");
}
