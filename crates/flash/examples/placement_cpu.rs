//! Random overwrites, to measure the CPU cost of a placement with callgrind.
//!
//! `valgrind --tool=callgrind target/release/examples/placement_cpu hinted 1024 500000`: placement,
//! MiB, writes. Subtract a run with 0 writes, which only fills the drive.

use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Random;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, placement, mib, writes] = arguments.as_slice() else {
        panic!("usage: placement_cpu PLACEMENT MIB WRITES");
    };
    let writes: u64 = writes.parse().expect("a number of writes");
    let text = format!(
        "[drive]\nmodel = \"Cost\"\ncapacity = \"{mib} MiB\"\ninterface = \"nvme\"\n\
         [link]\nbandwidth = \"3000 MB/s\"\nread_overhead = \"20 us\"\n\
         write_overhead = \"5 us\"\nmax_transfer = \"256 KiB\"\n\
         [flash]\nchannels = 4\ndies_per_channel = 2\nplanes = 2\npage = \"16 KiB\"\n\
         pages_per_block = 32\nread = \"50 us\"\nprogram = \"700 us\"\nerase = \"3 ms\"\n\
         channel_bandwidth = \"800 MB/s\"\n[ftl]\nspare = 0.1\nplacement = \"{placement}\"\n\
         [buffer]\nsize = \"4 MiB\"\n"
    );
    let mut drive = Ssd::new(&Profile::from_toml(&text).expect("the profile is valid"), 1);
    let units = drive.capacity_bytes() / 4096;
    let mut random = Random::new(1, "placing");
    let mut done = Vec::new();
    let mut write = |unit: u64, units: u32| {
        drive
            .submit(Request::new(0, Op::Write, Lba::new(unit * 8), units * 8))
            .expect("the write is accepted");
        drive.reap(Wait::One, &mut done).expect("a twin has no device errors");
        done.clear();
    };
    for unit in (0..units / 64 * 64).step_by(64) {
        write(unit, 64);
    }
    for _ in 0..writes {
        write(random.below(units), 1);
    }
}
