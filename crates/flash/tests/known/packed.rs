//! Packing: files that get pieces smaller than a page are read as fast as others; its cost.

use ssdlab_device::{Hint, Lba, Op};
use ssdlab_flash::Counters;
use ssdlab_time::Random;

use crate::placement::{Host, KIB, MIB, Pieces};

const FILE: u64 = 8 * MIB;

/// Whether the host says what it does.
#[derive(Clone, Copy, PartialEq)]
enum Says {
    All,
    Nothing,
}

/// A file that grew by so many bytes at a time, with 1 to 32 times 32 KiB of others between, in a
/// place of its own where the host says nothing: a drive has only the numbers then.
fn appended(host: &mut Host, bytes: u64, says: Says) -> Pieces {
    let mut random = Random::new(1, "gaps");
    let mut file: Pieces = Vec::new();
    host.next = 64 * MIB;
    for piece in 0..FILE / bytes {
        let first = if says == Says::All { host.next } else { piece * bytes };
        host.next += if says == Says::All { bytes } else { 0 };
        let hint = match file.last() {
            Some((first, bytes)) if says == Says::All => {
                Hint::AppendAfter(Lba::new((first + bytes) / 512 - 1))
            }
            _ => Hint::None,
        };
        host.write((first, bytes), hint);
        file.push((first, bytes));
        host.append((1 + random.below(32)) * 32 * KIB);
    }
    file
}

fn contiguous(host: &mut Host) -> Pieces {
    (0..8).map(|_| host.append(MIB)).collect()
}

/// What a drive reads of the file, in MiB/s, and what it counted while that was written.
fn read(placement: &str, work: impl Fn(&mut Host) -> Pieces) -> (f64, Counters) {
    let mut host = Host::of_study(placement);
    let file = work(&mut host);
    host.all(Op::Flush, &[(0, 0)]);
    let counted = *host.drive.counters();
    host.drive.assert_consistent();
    (host.read(&file), counted)
}

#[test]
fn a_file_that_grew_by_less_than_a_page_is_read_nearly_as_fast_as_one_in_order() {
    let (whole, _) = read("packed", contiguous);
    println!("packed: | contiguous | | {whole:.1} | |");
    for bytes in [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB] {
        let shares = ["striped", "hinted", "packed"].map(|placement| {
            let (speed, counters) = read(placement, |host| appended(host, bytes, Says::All));
            let waf = counters.waf().expect("it wrote");
            let (kib, share) = (bytes / KIB, speed / whole);
            println!("packed: | {kib} KiB | {placement} | {speed:.1} | {share:.2} | {waf:.3} |");
            share
        });
        assert!(shares[2] >= 0.85, "{bytes} bytes at a time, packed: {shares:?} of whole");
        assert!(
            bytes > 16 * KIB || shares[1] < 0.8,
            "{bytes} bytes at a time: {shares:?} of whole"
        );
    }
}

#[test]
fn guessing_packs_what_has_neighbours_by_number() {
    let (whole, _) = read("packed", contiguous);
    for bytes in [4 * KIB, 16 * KIB] {
        let (speed, _) = read("packed", |host| appended(host, bytes, Says::Nothing));
        assert!(speed >= 0.85 * whole, "{bytes} bytes at a time: {speed} of {whole} MiB/s");
    }
}

#[test]
fn what_is_packed_is_counted_and_what_lies_in_order_is_not_packed() {
    let pages = FILE / (32 * KIB);
    for (bytes, again) in [(4 * KIB, 7), (16 * KIB, 4), (32 * KIB, 0), (128 * KIB, 0)] {
        // All units of a page but those of the append that fills it; nothing is said of the first.
        let (_, counters) = read("packed", |host| appended(host, bytes, Says::All));
        let moves = counters.packing_moves;
        assert!((again * (pages - 1)..=again * pages).contains(&moves), "{bytes} bytes: {moves}");
        assert_eq!(counters.nand_packing_writes, moves, "{bytes} bytes at a time");
    }
    let in_order = |host: &mut Host| {
        let pieces: Pieces =
            (0..FILE / (4 * KIB)).map(|piece| (piece * 4 * KIB, 4 * KIB)).collect();
        for piece in &pieces {
            host.all(Op::Write, &[*piece]);
        }
        pieces
    };
    let (_, counters) = read("packed", in_order);
    assert_eq!(counters.packing_moves, 0, "pieces that nothing came between lie in order");
}

#[test]
fn files_that_grow_together_are_packed_each_by_itself() {
    let grow = |host: &mut Host| {
        let mut files: Vec<Pieces> = vec![Vec::new(); 8];
        for _ in 0..FILE / (4 * KIB) {
            for file in &mut files {
                let hint = file.last().map_or(Hint::None, |(first, bytes)| {
                    Hint::AppendAfter(Lba::new((first + bytes) / 512 - 1))
                });
                let piece = (host.next, 4 * KIB);
                host.next += 4 * KIB;
                host.submit(piece, hint);
                file.push(piece);
            }
        }
        files.swap_remove(3)
    };
    let [by_hints, packed] = ["hinted", "packed"].map(|placement| read(placement, grow).0);
    assert!(packed > 2.0 * by_hints, "packed {packed}, by hints alone {by_hints} MiB/s");
}
