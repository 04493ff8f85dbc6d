//! The drive of a published study of placement: how fast it reads a file, whole and in pieces.
//!
//! The arithmetic by hand, and where the two models differ: `docs/models/reading.md`.

use ssdlab_device::{Device, Hint, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;

const PROFILE: &str = include_str!("../drives/placement-study.toml");

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
const FILE: u64 = 8 * MIB;

/// The study's host between two reads of 1 MiB.
const HOST_TIME: Nanos = Nanos::new(59_800);

/// The same, fitted to all five figures of the study on the model with a die that is held until its
/// data is out: the largest difference is least.
const HOST_TIME_FITTED: Nanos = Nanos::new(66_000);

/// A file as pieces of the drive: first byte and length.
pub type Pieces = Vec<(u64, u64)>;

pub struct Host {
    pub drive: Ssd,
    /// Where the next file begins.
    pub next: u64,
    /// What it takes between two reads of 1 MiB.
    pause: Nanos,
}

impl Host {
    fn new() -> Self {
        Self::with(PROFILE, HOST_TIME)
    }

    fn with(profile: &str, pause: Nanos) -> Self {
        Self { drive: Ssd::new(&Profile::from_toml(profile).unwrap(), 1), next: 0, pause }
    }

    /// The study's own drive: a die is held until its data is out; hints are heeded, or not.
    pub fn of_study(placement: &str) -> Self {
        let text = PROFILE
            .replace("placement = \"striped\"", &format!("placement = \"{placement}\""))
            .replace("[ftl]", "cache_register = false\n[ftl]");
        Self::with(&text, HOST_TIME_FITTED)
    }

    /// Writes with a hint.
    pub fn submit(&mut self, (first, bytes): (u64, u64), hint: Hint) {
        let blocks = (bytes / 512) as u32;
        let write = Request { hint, ..Request::new(0, Op::Write, Lba::new(first / 512), blocks) };
        self.drive.submit(write).unwrap();
        self.drive.reap(Wait::One, &mut Vec::new()).unwrap();
    }

    /// Writes with a hint and makes it durable.
    pub fn write(&mut self, piece: (u64, u64), hint: Hint) {
        self.submit(piece, hint);
        self.all(Op::Flush, &[(0, 0)]);
    }

    /// Submits requests at once and waits for all of them.
    pub fn all(&mut self, op: Op, pieces: &[(u64, u64)]) {
        for (id, (first, bytes)) in pieces.iter().enumerate() {
            let lba = Lba::new(first / 512);
            let (id, blocks) = (id as u64, (bytes / 512) as u32);
            let request = Request::new(id, op, lba, blocks);
            self.drive.submit(request).unwrap();
        }
        let mut done = Vec::new();
        while done.len() < pieces.len() {
            self.drive.reap(Wait::One, &mut done).unwrap();
        }
    }

    /// Appends to the drive and makes it durable; returns where it lies.
    pub fn append(&mut self, bytes: u64) -> (u64, u64) {
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
    pub fn read(&mut self, file: &Pieces) -> f64 {
        self.rest(Nanos::from_millis(100));
        let start = self.drive.now();
        for part in 0..FILE / MIB {
            let pieces: Pieces = within(file, part * MIB, MIB);
            self.all(Op::Read, &pieces);
            self.rest(self.pause);
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

/// A file of which each piece of 32 KiB was appended to the last, and then another file written.
fn appended(host: &mut Host) -> Pieces {
    let mut file: Pieces = Vec::new();
    for _ in 0..FILE / (32 * KIB) {
        let hint = file.last().map_or(Hint::None, |(first, bytes)| {
            Hint::AppendAfter(Lba::new((first + bytes) / 512 - 1))
        });
        let piece = (host.next, 32 * KIB);
        host.next += 32 * KIB;
        host.write(piece, hint);
        file.push(piece);
        host.append(224 * KIB);
    }
    file
}

/// A file in order of which each 32 KiB was written again in its place, and then another file.
fn overwritten(host: &mut Host) -> Pieces {
    let file: Pieces = (0..8).map(|_| host.append(MIB)).collect();
    for piece in (0..FILE).step_by(32 * KIB as usize) {
        host.write((piece, 32 * KIB), Hint::Overwrite);
        host.append(224 * KIB);
    }
    file
}

#[test]
fn all_figures_of_the_study_follow_from_one_time_of_its_host() {
    type Work = fn(&mut Host) -> Pieces;
    let contiguous: Work = |host| (0..8).map(|_| host.append(MIB)).collect();
    for (what, work, [off, on]) in [
        ("contiguous", contiguous, [2174.5, 2174.5]),
        ("append worst", appended, [397.3, 2126.5]),
        ("overwrite worst", overwritten, [398.8, 2057.9]),
    ] {
        for (placement, published) in [("striped", off), ("hinted", on)] {
            let mut host = Host::of_study(placement);
            let file = work(&mut host);
            let row = format!("{what}, {placement}");
            compare(&row, published, host.read(&file), 0.04);
            assert_eq!(host.drive.counters().displaced_writes, 0, "every die has room");
        }
    }
}

/// A file in a place set apart for it, written in pieces of 32 KiB with other files between.
fn appended_in_its_place(host: &mut Host) -> Pieces {
    host.next = 64 * MIB;
    let pieces = (0..FILE).step_by(32 * KIB as usize);
    for first in pieces {
        host.write((first, 32 * KIB), Hint::None);
        host.append(224 * KIB);
    }
    vec![(0, FILE)]
}

#[test]
fn a_drive_that_guesses_needs_no_hints_where_pieces_are_neighbours() {
    let read = |placement, work: fn(&mut Host) -> Pieces| {
        let mut host = Host::of_study(placement);
        let file = work(&mut host);
        host.read(&file)
    };
    compare("append worst, guessed", 2126.5, read("inferred", appended_in_its_place), 0.04);
    compare("append worst, on one die", 397.3, read("striped", appended_in_its_place), 0.04);
    // What is written in place of something needs no neighbours: the test's hints say no more.
    let overwritten_silently: fn(&mut Host) -> Pieces = |host| {
        let file: Pieces = (0..8).map(|_| host.append(MIB)).collect();
        for piece in (0..FILE).step_by(32 * KIB as usize) {
            host.write((piece, 32 * KIB), Hint::None);
            host.append(224 * KIB);
        }
        file
    };
    compare("overwrite worst, guessed", 2057.9, read("inferred", overwritten_silently), 0.04);
}
