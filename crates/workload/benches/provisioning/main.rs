//! The effect of spare area and history on a full-size drive, and the cost of simulating it.
//!
//! A Samsung 840 Pro of 512 GB, 125 million mapped units, with time. Parts, all by default: `cargo
//! bench -p ssdlab-workload --bench provisioning -- [spare-6.85] [spare-27.24] [sizes] [large]`.
//! Takes about ten minutes of one core and 1.3 GB of memory, `large` 10 GB. Results are in
//! `docs/models/provisioning.md` and `docs/models/speed.md`.

mod drive;
mod process;

use drive::{AREA, Drive, Row, profile};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Visible capacity with the maker's spare area, and with a part left unused.
const SOLD: u64 = 1_000_215_216 * 512;
const PROVISIONED: u64 = 400_000_000_000;

/// Name and function of a part.
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

/// One drive: filled, then random writes to a small area, to the whole drive, and both again.
fn state(spare: &str, capacity: u64) {
    let name = |what: &str| format!("{spare}, {what}");
    let mut drive = Drive::new(&profile(capacity));
    drive.in_order(capacity).print(&name("fill in order"));
    // The published test, 1800 s; the last tenth is in steady state.
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

/// CPU time of a host write on drives of increasing size, whose maps exceed the caches.
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

/// 4 TiB, 1 Gi units: filled, then random writes over the whole drive.
fn large() {
    let mut drive = Drive::new(&profile(SOLD).scaled_to(4 * TIB).unwrap());
    drive.in_order(4 * TIB).print("4 TiB, filled in order");
    drive.at_random(4 * TIB, 40_000_000_000).print("4 TiB, 40 GB at random all over");
    drive.memory("4 TiB");
}
