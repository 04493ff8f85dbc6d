//! The drive of a published study of placement: how fast it reads a file, whole and in pieces.
//!
//! The arithmetic by hand, and where the two models differ: `docs/models/reading.md`.

use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;

const PROFILE: &str = include_str!("../drives/placement-study.toml");

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const FILE: u64 = 8 * MIB;

/// The study's host between two reads of 1 MiB.
const HOST_TIME: Nanos = Nanos::new(59_800);

/// A file as pieces of the drive: first byte and length.
type Pieces = Vec<(u64, u64)>;

struct Host {
    drive: Ssd,
    /// Where the next file begins.
    next: u64,
}

impl Host {
    fn new() -> Self {
        Self { drive: Ssd::new(&Profile::from_toml(PROFILE).unwrap(), 1), next: 0 }
    }

    /// Submits requests at once and waits for all of them.
    fn all(&mut self, op: Op, pieces: &[(u64, u64)]) {
        for (id, (first, bytes)) in pieces.iter().enumerate() {
            let lba = Lba::new(first / 512);
            let (id, blocks) = (id as u64, (bytes / 512) as u32);
            let request = Request { id, op, lba, blocks, durable: false };
            self.drive.submit(request).unwrap();
        }
        let mut done = Vec::new();
        while done.len() < pieces.len() {
            self.drive.reap(Wait::One, &mut done).unwrap();
        }
    }

    /// Appends to the drive and makes it durable; returns where it lies.
    fn append(&mut self, bytes: u64) -> (u64, u64) {
        let piece = (self.next, bytes);
        self.next += bytes;
        self.all(Op::Write, &[piece]);
        self.all(Op::Flush, &[(0, 0)]);
        piece
    }

    fn rest(&mut self, duration: Nanos) {
        let until = self.drive.now() + duration;
        self.drive.reap(Wait::Until(until), &mut Vec::new()).unwrap();
    }

    /// Reads a file with 8 requests of 1 MiB, one after the other; returns MiB/s.
    ///
    /// The pieces of 1 MiB are submitted together, as a file system does.
    fn read(&mut self, file: &Pieces) -> f64 {
        self.rest(Nanos::from_millis(100));
        let start = self.drive.now();
        for part in 0..FILE / MIB {
            let pieces: Pieces = within(file, part * MIB, MIB);
            self.all(Op::Read, &pieces);
            self.rest(HOST_TIME);
        }
        let seconds = (self.drive.now() - start).get() as f64 / 1e9;
        FILE as f64 / MIB as f64 / seconds
    }
}

/// The pieces of `bytes` of a file from `first` on.
fn within(file: &Pieces, first: u64, bytes: u64) -> Pieces {
    let (mut found, mut start) = (Vec::new(), 0);
    for (place, length) in file {
        let (from, to) = (first.max(start), (first + bytes).min(start + length));
        if from < to {
            found.push((place + from - start, to - from));
        }
        start += length;
    }
    found
}

/// Prints a row of the table in `docs/models/reading.md`, then holds model against figure.
fn compare(what: &str, published: f64, model: f64, tolerance: f64) {
    let off = model / published - 1.0;
    println!("placement: | {what} | {published:.1} | {model:.1} | {:+.1} % |", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: {published}, model {model:.1}");
}

/// A file of which each piece of 32 KiB was followed by another file of `between` bytes.
fn in_pieces(host: &mut Host, between: u64) -> Pieces {
    let one = |host: &mut Host| {
        let piece = host.append(32 * KIB);
        host.append(between);
        piece
    };
    (0..FILE / (32 * KIB)).map(|_| one(host)).collect()
}

#[test]
fn a_contiguous_file_is_read_as_fast_as_the_study_printed() {
    let mut host = Host::new();
    let file = (0..8).map(|_| host.append(MIB)).collect();
    compare("contiguous", 2174.5, host.read(&file), 0.03);
}

#[test]
fn pieces_that_lie_on_one_die_after_the_other_are_read_as_if_they_were_one() {
    let mut host = Host::new();
    // The next piece comes a stripe and a chunk later: on the next die, as the study's hints do.
    let file = in_pieces(&mut host, 256 * KIB);
    compare("append worst, with hints", 2126.5, host.read(&file), 0.03);
}

#[test]
fn pieces_that_share_a_die_are_read_at_the_pace_of_its_channel() {
    let mut host = Host::new();
    let file = in_pieces(&mut host, 224 * KIB);
    // 1 MiB: overhead, the first sense, 32 pages over one channel, the last unit over the link.
    // The study holds a die until its data is out, which makes it 397.3.
    let micros = 30.49 + 30.013 + 32.0 * 39.0625 + 1.163 + 59.8;
    compare("append worst, by hand", 1e6 / micros, host.read(&file), 0.01);
}
