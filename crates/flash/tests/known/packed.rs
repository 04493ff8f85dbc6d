//! Packed placement: read speed of files that grow by less than a page, and its cost.

use ssdlab_device::{Hint, Op};
use ssdlab_flash::Counters;
use ssdlab_time::Random;

use crate::placement::{FILE, KIB, MIB, Pieces, StudyHost, append_hint, contiguous};

/// A file that grows by `bytes` at a time, with 1 to 32 times 32 KiB of other files in between.
/// Without hints, it has an address range of its own, since the drive has only the addresses then.
fn appended(host: &mut StudyHost, bytes: u64, hints: bool) -> Pieces {
    let mut random = Random::new(1, "gaps");
    let mut file: Pieces = Vec::new();
    host.next = 64 * MIB;
    for piece in 0..FILE / bytes {
        let first = if hints { host.next } else { piece * bytes };
        host.next += if hints { bytes } else { 0 };
        let hint = if hints { append_hint(&file) } else { Hint::None };
        host.write_durably((first, bytes), hint);
        file.push((first, bytes));
        host.append((1 + random.below(32)) * 32 * KIB);
    }
    file
}

/// Writes a file with `write`; returns its read speed in MiB/s, and the counters before the read.
fn measure(placement: &str, write: impl Fn(&mut StudyHost) -> Pieces) -> (f64, Counters) {
    let mut host = StudyHost::with_placement(placement);
    let file = write(&mut host);
    host.host.flush();
    let counters = *host.host.drive.counters();
    host.host.drive.assert_consistent();
    (host.read(&file), counters)
}

#[test]
fn a_packed_file_that_grew_by_less_than_a_page_reads_nearly_as_fast_as_a_contiguous_one() {
    let (whole, _) = measure("packed", contiguous);
    println!("packed: | contiguous | | {whole:.1} | |");
    for bytes in [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB] {
        let shares = ["striped", "hinted", "packed"].map(|placement| {
            let (speed, counters) = measure(placement, |host| appended(host, bytes, true));
            let waf = counters.waf().expect("host writes");
            let (kib, share) = (bytes / KIB, speed / whole);
            println!("packed: | {kib} KiB | {placement} | {speed:.1} | {share:.2} | {waf:.3} |");
            share
        });
        let label = format!("appends of {bytes} bytes: {shares:?} of the contiguous speed");
        assert!(shares[2] >= 0.85, "{label}");
        assert!(bytes > 16 * KIB || shares[1] < 0.8, "{label}");
    }
}

#[test]
fn without_hints_appends_to_consecutive_addresses_are_packed() {
    let (whole, _) = measure("packed", contiguous);
    for bytes in [4 * KIB, 16 * KIB] {
        let (speed, _) = measure("packed", |host| appended(host, bytes, false));
        assert!(speed >= 0.85 * whole, "appends of {bytes} bytes: {speed} of {whole} MiB/s");
    }
}

#[test]
fn packing_moves_are_counted_and_contiguous_data_is_not_packed() {
    let pages = FILE / (32 * KIB);
    for (bytes, again) in [(4 * KIB, 7), (16 * KIB, 4), (32 * KIB, 0), (128 * KIB, 0)] {
        // All units of a page except those of the append that fills it; the first has no hint.
        let (_, counters) = measure("packed", |host| appended(host, bytes, true));
        let moves = counters.packing_moves;
        assert!((again * (pages - 1)..=again * pages).contains(&moves), "{bytes} bytes: {moves}");
        assert_eq!(counters.nand_packing_writes, moves, "appends of {bytes} bytes");
    }
    let in_order = |host: &mut StudyHost| {
        let pieces: Pieces =
            (0..FILE / (4 * KIB)).map(|piece| (piece * 4 * KIB, 4 * KIB)).collect();
        for piece in &pieces {
            host.run_all(Op::Write, &[*piece]);
        }
        pieces
    };
    let (_, counters) = measure("packed", in_order);
    assert_eq!(counters.packing_moves, 0, "uninterrupted appends are contiguous already");
}

#[test]
fn files_that_grow_in_turn_are_packed_separately() {
    let grow = |host: &mut StudyHost| {
        let mut files: Vec<Pieces> = vec![Vec::new(); 8];
        for _ in 0..FILE / (4 * KIB) {
            for file in &mut files {
                let piece = (host.next, 4 * KIB);
                host.next += 4 * KIB;
                host.write(piece, append_hint(file));
                file.push(piece);
            }
        }
        files.swap_remove(3)
    };
    let [hinted, packed] = ["hinted", "packed"].map(|placement| measure(placement, grow).0);
    assert!(packed > 2.0 * hinted, "packed {packed}, hinted {hinted} MiB/s");
}
