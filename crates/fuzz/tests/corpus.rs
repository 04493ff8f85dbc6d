//! Runs the stored corpus of each target, and mutations of it, with a stable toolchain.
//!
//! `cargo test --release -p ssdlab-fuzz -- --ignored mutated 2>/dev/null` runs 100,000 mutations of
//! each target. `SSDLAB_TEST_SEED=1` selects others, and `SSDLAB_TEST_SCALE=10` ten times as many.

use std::fs::File;
use std::io::Read;
use std::panic::{catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

use flate2::read::GzDecoder;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_fuzz::{LimitedAllocator, TARGETS, run};
use ssdlab_testing::{scaled, seed};
use ssdlab_time::Random;
use tar::Archive;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

/// Mutations of each target by default.
const MUTATIONS: u32 = 100_000;
/// Changes of an input, at most.
const CHANGES_MAX: u64 = 8;
/// Values at the limits of the formats' fields.
const EXTREMES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
/// An input that takes longer is a finding.
const TIMEOUT: Duration = Duration::from_secs(10);

fn fuzz_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The stored inputs of a target, with their names.
fn stored(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = fuzz_folder().join("corpus").join(format!("{target}.tar.gz"));
    let file = File::open(path).expect("the corpus of the target");
    let mut archive = Archive::new(GzDecoder::new(file));
    let entries = archive.entries().expect("a tar archive");
    let inputs: Vec<_> = entries
        .map(|entry| {
            let mut entry = entry.expect("a complete archive");
            let name = entry.path().expect("a name").display().to_string();
            let mut input = Vec::new();
            entry.read_to_end(&mut input).expect("a complete archive");
            (name, input)
        })
        .collect();
    assert!(inputs.len() > 10, "{target}: only {} inputs", inputs.len());
    inputs
}

fn replay(target: &str) {
    for (name, input) in stored(target) {
        // Names the input if the test fails.
        println!("{target}: {name}");
        run(target, &input);
    }
}

fn run_mutations(target: &str) {
    let count = u64::from(scaled(MUTATIONS));
    let corpus: Vec<Vec<u8>> = stored(target).into_iter().map(|(_, input)| input).collect();
    let start = wall_clock_now();
    let mut slowest = Duration::ZERO;
    for number in (0..count).map(|number| seed() * count + number) {
        let input = mutated(&corpus, &mut Random::new(number, target));
        let begin = wall_clock_now();
        if let Err(panic) = catch_unwind(|| run(target, &input)) {
            let folder = fuzz_folder().join("target/findings").join(target);
            std::fs::create_dir_all(&folder).expect("a folder for findings");
            let path = folder.join(format!("mutation-{number}"));
            std::fs::write(&path, &input).expect("the input is saved");
            println!("{target}: mutation {number} fails; it is saved in {}", path.display());
            resume_unwind(panic);
        }
        slowest = slowest.max(begin.elapsed());
        assert!(slowest < TIMEOUT, "{target}: mutation {number} takes {slowest:?}");
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{target}: {count} mutations in {seconds:.0} s; the slowest took {slowest:?}");
}

/// A stored input with a few random changes.
fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len() as u64) as usize].clone();
    for _ in 0..=random.below(CHANGES_MAX) {
        let at = random.below(input.len() as u64 + 1) as usize;
        let end = (at + 1 + random.below(16) as usize).min(input.len());
        match random.below(8) {
            0 if at < end => input[at] ^= 1 << random.below(8),
            1 if at < end => input[at] = random.next_u64() as u8,
            2 if at < end => input[at] = EXTREMES[random.below(6) as usize],
            3 if at < end => input[at] = input[at].wrapping_add(1 + random.below(254) as u8),
            4 => drop(input.drain(at..end)),
            5 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            6 => input.truncate(at.max(1)),
            _ => {
                let other = &corpus[random.below(corpus.len() as u64) as usize];
                let from = random.below(other.len() as u64 + 1) as usize;
                input.splice(at.., other[from..].iter().copied());
            }
        }
    }
    input
}

macro_rules! tests {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target));
        })*

        mod mutated {
            $(#[test]
            #[ignore = "takes minutes"]
            fn $target() {
                super::run_mutations(stringify!($target));
            })*
        }

        #[test]
        fn every_target_is_tested() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$(stringify!($target)),*]);
        }
    };
}

tests! { nbd_negotiation nbd_session nvme_pdu nvme_command control profile trace }
