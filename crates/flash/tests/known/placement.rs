//! The drive of a published study of placement: read speed of contiguous and fragmented files.
//!
//! The calculation by hand, and where the two models differ: `docs/models/reading.md`.

use ssdlab_device::{Device, Hint, Lba, Op, Request};
use ssdlab_flash::Profile;
use ssdlab_time::Nanos;

use crate::host::Host;

const PROFILE: &str = include_str!("../drives/placement-study.toml");

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// Size of the file.
pub const FILE: u64 = 8 * MIB;

/// Processing time of the study's host between two reads of 1 MiB.
const HOST_TIME: Nanos = Nanos::new(59_800);

/// The same for the study's own model, where a die is busy until its data is out: fitted to all
/// five figures of the study so that the largest difference is smallest.
const HOST_TIME_FITTED: Nanos = Nanos::new(66_000);

/// A file as extents: first byte and length.
pub type Pieces = Vec<(u64, u64)>;

/// The study's drive and host.
pub struct StudyHost {
    pub host: Host,
    /// The address of the next append.
    pub next: u64,
    /// Processing time between two reads of 1 MiB.
    pause: Nanos,
}

impl StudyHost {
    fn new() -> Self {
        Self::with_profile(PROFILE, HOST_TIME)
    }

    fn with_profile(profile: &str, pause: Nanos) -> Self {
        Self { host: Host::new(&Profile::from_toml(profile).unwrap()), next: 0, pause }
    }

    /// The study's own model with a placement rule: a die is busy until its data is out.
    pub fn with_placement(placement: &str) -> Self {
        let text = PROFILE
            .replace("placement = \"striped\"", &format!("placement = \"{placement}\""))
            .replace("[ftl]", "cache_register = false\n[ftl]");
        Self::with_profile(&text, HOST_TIME_FITTED)
    }

    pub fn write(&mut self, piece: (u64, u64), hint: Hint) {
        self.host.run(Request { hint, ..request(Op::Write, piece) });
    }

    pub fn write_durably(&mut self, piece: (u64, u64), hint: Hint) {
        self.write(piece, hint);
        self.host.flush();
    }

    /// Submits requests together and waits for all of them.
    pub fn run_all(&mut self, op: Op, pieces: &[(u64, u64)]) {
        for piece in pieces {
            self.host.submit(request(op, *piece), usize::MAX);
        }
        self.host.drain();
    }

    /// Writes to the next free address and makes it durable; returns the extent.
    pub fn append(&mut self, bytes: u64) -> (u64, u64) {
        let piece = (self.next, bytes);
        self.next += bytes;
        self.write_durably(piece, Hint::None);
        piece
    }

    /// Reads a file with 8 requests of 1 MiB, one after the other; returns MiB/s.
    ///
    /// The extents of 1 MiB are submitted together, as a file system does.
    pub fn read(&mut self, file: &Pieces) -> f64 {
        self.host.rest(Nanos::from_millis(100));
        let start = self.host.drive.now();
        for part in 0..FILE / MIB {
            self.run_all(Op::Read, &within(file, part * MIB, MIB));
            self.host.rest(self.pause);
        }
        let seconds = (self.host.drive.now() - start).get() as f64 / 1e9;
        FILE as f64 / MIB as f64 / seconds
    }
}

fn request(op: Op, (first, bytes): (u64, u64)) -> Request {
    Request::new(0, op, Lba::new(first / 512), (bytes / 512) as u32)
}

/// The extents of `bytes` bytes of a file from offset `first`.
fn within(file: &Pieces, first: u64, bytes: u64) -> Pieces {
    let (mut extents, mut start) = (Vec::new(), 0);
    for (address, length) in file {
        let (from, to) = (first.max(start), (first + bytes).min(start + length));
        if from < to {
            extents.push((address + from - start, to - from));
        }
        start += length;
    }
    extents
}

/// The hint of the next append to a file.
pub fn append_hint(file: &Pieces) -> Hint {
    file.last()
        .map_or(Hint::None, |(first, bytes)| Hint::AppendAfter(Lba::new((first + bytes) / 512 - 1)))
}

/// Prints a row of the table in `docs/models/reading.md`, then compares model and publication.
fn compare(label: &str, published: f64, model: f64, tolerance: f64) {
    let off = model / published - 1.0;
    println!("placement: | {label} | {published:.1} | {model:.1} | {:+.1} % |", off * 100.0);
    assert!(off.abs() <= tolerance, "{label}: {published}, model {model:.1}");
}

pub fn contiguous(host: &mut StudyHost) -> Pieces {
    (0..8).map(|_| host.append(MIB)).collect()
}

/// A file in extents of 32 KiB, with `between` bytes of other files after each.
fn fragmented(host: &mut StudyHost, between: u64) -> Pieces {
    let extent = |host: &mut StudyHost| {
        let piece = host.append(32 * KIB);
        host.append(between);
        piece
    };
    (0..FILE / (32 * KIB)).map(|_| extent(host)).collect()
}

#[test]
fn a_contiguous_file_has_the_read_speed_that_the_study_published() {
    let mut host = StudyHost::new();
    let file = contiguous(&mut host);
    compare("contiguous", 2174.5, host.read(&file), 0.03);
}

#[test]
fn extents_on_alternating_dies_read_as_fast_as_a_contiguous_file() {
    let mut host = StudyHost::new();
    // The next extent is a stripe and a chunk further: on the next die, as with the study's hints.
    let file = fragmented(&mut host, 256 * KIB);
    compare("append worst, with hints", 2126.5, host.read(&file), 0.03);
}

#[test]
fn extents_on_one_die_have_the_bandwidth_of_its_channel() {
    let mut host = StudyHost::new();
    let file = fragmented(&mut host, 224 * KIB);
    // 1 MiB: overhead, the first sense, 32 pages over one channel, the last unit over the link.
    // In the study's model a die is busy until its data is out, which gives 397.3.
    let micros = 30.49 + 30.013 + 32.0 * 39.0625 + 1.163 + 59.8;
    compare("append worst, by hand", 1e6 / micros, host.read(&file), 0.01);
}

/// A file that grows by 32 KiB at a time, with other files in between.
fn appended(host: &mut StudyHost) -> Pieces {
    let mut file: Pieces = Vec::new();
    for _ in 0..FILE / (32 * KIB) {
        let piece = (host.next, 32 * KIB);
        host.next += 32 * KIB;
        host.write_durably(piece, append_hint(&file));
        file.push(piece);
        host.append(224 * KIB);
    }
    file
}

/// Writes the first 8 MiB of the drive in pieces of 32 KiB, with other files in between.
fn write_in_pieces(host: &mut StudyHost, hint: Hint) {
    for first in (0..FILE).step_by(32 * KIB as usize) {
        host.write_durably((first, 32 * KIB), hint);
        host.append(224 * KIB);
    }
}

/// A contiguous file, overwritten in place.
fn overwritten(host: &mut StudyHost, hint: Hint) -> Pieces {
    let file = contiguous(host);
    write_in_pieces(host, hint);
    file
}

/// The read speed of a file, and the drive's displaced writes.
fn read_speed(placement: &str, write: fn(&mut StudyHost) -> Pieces) -> (f64, u64) {
    let mut host = StudyHost::with_placement(placement);
    let file = write(&mut host);
    (host.read(&file), host.host.drive.counters().displaced_writes)
}

#[test]
fn one_host_time_explains_all_figures_of_the_study() {
    type Write = fn(&mut StudyHost) -> Pieces;
    for (label, write, [striped, hinted]) in [
        ("contiguous", contiguous as Write, [2174.5, 2174.5]),
        ("append worst", appended, [397.3, 2126.5]),
        ("overwrite worst", |host| overwritten(host, Hint::Overwrite), [398.8, 2057.9]),
    ] {
        for (placement, published) in [("striped", striped), ("hinted", hinted)] {
            let (speed, displaced) = read_speed(placement, write);
            compare(&format!("{label}, {placement}"), published, speed, 0.04);
            assert_eq!(displaced, 0, "every die has free pages");
        }
    }
}

/// A file that grows in a preallocated address range, with other files in between.
fn appended_in_place(host: &mut StudyHost) -> Pieces {
    host.next = 64 * MIB;
    write_in_pieces(host, Hint::None);
    vec![(0, FILE)]
}

#[test]
fn inferred_placement_needs_no_hints_for_consecutive_addresses_and_overwrites() {
    compare("append worst, guessed", 2126.5, read_speed("inferred", appended_in_place).0, 0.04);
    compare("append worst, on one die", 397.3, read_speed("striped", appended_in_place).0, 0.04);
    let overwritten = |host: &mut StudyHost| overwritten(host, Hint::None);
    compare("overwrite worst, guessed", 2057.9, read_speed("inferred", overwritten).0, 0.04);
}
