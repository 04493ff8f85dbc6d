//! The data of writes: compression, deduplication and verification.

mod scratch;

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;

use scratch::{Scratch, request, run, writable};
use ssdlab_device::{Op, Region};
use ssdlab_uring::{Content, OpenOptions, Stamp, verify};

const BLOCK: usize = 4096;

/// A file of 2 MiB written with this content in requests of 64 KiB, and its bytes.
fn written(content: Content) -> Option<(Scratch, Vec<u8>)> {
    let file = Scratch::zeros(2 << 20)?;
    let mut device = file.open(&OpenOptions { content, ..writable(4) });
    for piece in 0..32 {
        assert_eq!(run(&mut device, request(0, Op::Write, piece << 16, 1 << 16)).outcome, Ok(()));
    }
    let bytes = file.bytes();
    Some((file, bytes))
}

/// The share of blocks that are unique.
fn unique(bytes: &[u8]) -> f64 {
    let blocks: BTreeSet<&[u8]> = bytes.chunks(BLOCK).collect();
    blocks.len() as f64 / (bytes.len() / BLOCK) as f64
}

fn zeros(bytes: &[u8]) -> f64 {
    bytes.iter().map(|byte| f64::from(u8::from(*byte == 0))).sum::<f64>() / bytes.len() as f64
}

#[test]
fn zeros_are_zeros() {
    let Some((_, bytes)) = written(Content::Zeros) else { return };
    assert!(bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn compressible_content_has_its_share_of_random_bytes_in_each_block() {
    let Some((_, bytes)) = written(Content::Compressible { to: 0.25 }) else { return };
    for block in bytes.chunks(BLOCK) {
        assert!(zeros(&block[..1024]) < 0.02);
        assert!(block[1024..].iter().all(|byte| *byte == 0));
    }
    let random = bytes.chunks(BLOCK).flat_map(|block| block[..1024].chunks(64));
    let parts: BTreeSet<&[u8]> = random.collect();
    assert_eq!(parts.len(), bytes.len() / BLOCK * 16, "64 bytes were written twice");
}

#[test]
fn dedupable_content_has_its_share_of_unique_blocks_and_is_incompressible() {
    let Some((_, bytes)) = written(Content::Dedupable { to: 0.5 }) else { return };
    let unique = unique(&bytes);
    assert!((0.4..0.6).contains(&unique), "{unique} of the blocks are unique");
    assert!(zeros(&bytes) < 0.01);
}

#[test]
fn stamped_content_can_be_verified_but_not_compressed_or_deduplicated() {
    let Some((file, bytes)) = written(Content::Stamped { run: 7 }) else { return };
    let whole = Region::from_bytes(0, 2 << 20);
    let look = |run| verify(&file.path, &OpenOptions::default(), whole, run).unwrap();
    assert_eq!((look(7).good_bytes, look(7).mismatch), (2 << 20, None));
    assert!((unique(&bytes) - 1.0).abs() < 1e-9);
    assert!(zeros(&bytes) < 0.07, "except for the stamps: {}", zeros(&bytes));
    let foreign = look(8).mismatch.unwrap();
    assert_eq!((foreign.offset, foreign.found.unwrap().run), (0, 7));
}

#[test]
fn verify_finds_the_first_difference() {
    let Some((file, bytes)) = written(Content::Stamped { run: 7 }) else { return };
    let whole = Region::from_bytes(0, 2 << 20);
    let handle = std::fs::File::options().write(true).open(&file.path).unwrap();
    let damaged = |at: usize, with: &[u8]| {
        handle.write_all_at(with, at as u64).unwrap();
        handle.sync_all().unwrap();
        let seen = verify(&file.path, &OpenOptions::default(), whole, 7).unwrap();
        handle.write_all_at(&bytes, 0).unwrap();
        handle.sync_all().unwrap();
        let mismatch = seen.mismatch.expect("damage is found");
        assert_eq!(seen.good_bytes, mismatch.offset);
        (mismatch.offset, mismatch.found)
    };
    let sound = Stamp { offset: 99_840, run: 7, count: 2 };
    assert_eq!(damaged(99_999, &[bytes[99_999] ^ 1]), (99_840, Some(sound)));
    assert_eq!(damaged(512, &[0; 512]), (512, None));
    // A write to the wrong offset has the stamp of the right one.
    let strayed = damaged(8192, &bytes[4096..8192]);
    assert_eq!(strayed, (8192, Some(Stamp { offset: 4096, run: 7, count: 1 })));
}

#[test]
fn a_share_outside_0_to_1_is_refused() {
    let Some(file) = Scratch::zeros(1 << 16) else { return };
    for to in [-0.1, 1.1, f64::NAN] {
        let content = Content::Compressible { to };
        let options = OpenOptions { content, ..writable(1) };
        let error = ssdlab_uring::UringDevice::open(&file.path, &options).unwrap_err().to_string();
        assert!(error.contains("`to` is"), "{error}");
    }
}
