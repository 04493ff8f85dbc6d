//! What spare and history do to a full-size drive, and what simulating it costs.
//!
//! A Samsung 840 Pro of 512 GB, 125 million mapped units, with time. Parts, all by default:
//! `cargo bench -p ssdlab-workload --bench provisioning -- [spare-6.85] [spare-27.24] [sizes]
//! [large]`. Takes about ten minutes of one core and 1.3 GB of memory, `large` 10 GB. What came out
//! stands in `docs/models/provisioning.md` and `docs/models/speed.md`.

mod drive;
mod process;
mod show;

use drive::{AREA, Drive, profile};
use show::Row;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Visible with the spare that the maker chose, and with a partition left out of use.
const SOLD: u64 = 1_000_215_216 * 512;
const PROVISIONED: u64 = 400_000_000_000;

/// A part's name, and what it does.
type Part = (&'static str, fn());

fn main() {
    println!("{}", Row::HEADER);
    // Cargo adds `--bench`.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|each| each != "--bench").collect();
    let parts: [Part; 4] = [
        ("spare-6.85", || state("6.85 %", SOLD)),
        ("spare-27.24", || state("27.24 %", PROVISIONED)),
        ("sizes", sizes),
        ("large", large),
    ];
    for (name, part) in parts {
        if chosen.is_empty() || chosen.iter().any(|each| each == name) {
            part();
        }
    }
}

/// A drive's life in one state: filled, a small area written, all of it written, and both again.
fn state(spare: &str, capacity: u64) {
    let name = |what: &str| format!("{spare}, {what}");
    let mut drive = Drive::new(&profile(capacity));
    drive.in_order(capacity).print(&name("fill in order"));
    // What was measured in 1800 s; the last tenth is in steady state.
    let area = drive.at_random(AREA, 441_000_000_000);
    let last = drive.at_random(AREA, 49_000_000_000);
    (area + last).print(&name("490 GB at random in 40 GB, fresh"));
    last.print(&name("the last tenth of that"));
    drive.at_random(capacity, 490_000_000_000).print(&name("490 GB at random all over"));
    drive.until_steady().print(&name("at random all over, steady"));
    drive.in_order(4_000_000_000).print(&name("4 GB in order after that"));
    drive.at_random(capacity, 40_000_000_000);
    drive.at_random(AREA, 80_000_000_000);
    drive.at_random(AREA, 40_000_000_000).print(&name("at random in 40 GB, aged"));
    drive.memory(&name("memory"));
}

/// What a host write costs where the maps of ever larger drives fit into no cache.
fn sizes() {
    for capacity in [8 * GIB, 64 * GIB, 512_110_190_592] {
        let mut drive = Drive::new(&profile(SOLD).scaled_to(capacity).unwrap());
        let name = format!("{} GiB visible", capacity / GIB);
        drive.in_order(capacity).print(&format!("{name}, fill in order"));
        drive.until_steady();
        let writes = 16_000_000;
        let row: Row = drive.at_random(capacity, writes * 4096);
        row.print(&format!("{name}, at random, steady"));
        drive.memory(&name);
    }
}

/// 4 TiB, 1 Gi units: all of it filled, then random writes all over.
fn large() {
    let mut drive = Drive::new(&profile(SOLD).scaled_to(4 * TIB).unwrap());
    drive.in_order(4 * TIB).print("4 TiB, filled in order");
    drive.at_random(4 * TIB, 40_000_000_000).print("4 TiB, 40 GB at random all over");
    drive.memory("4 TiB");
}
