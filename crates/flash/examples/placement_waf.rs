//! Write amplification, wear and displaced writes of each placement, without timing.
//!
//! `placement_waf 20 10`: number of seeds, and drive writes per seed. The drive is 1 GiB of the
//! published one (8 dies, superblocks of 7.5 MiB). It is filled, then overwritten in units of 4 KiB
//! at random addresses. With "one die", every second write has the same block as its predecessor.

use ssdlab_device::{Hint, Lba};
use ssdlab_flash::{Profile, Study};
use ssdlab_time::Random;

fn profile(placement: &str, spare: f64) -> Profile {
    let text = format!(
        "[drive]\nmodel = \"Lives\"\ncapacity = \"1 GiB\"\ninterface = \"nvme\"\n\
         [link]\nbandwidth = \"3000 MB/s\"\n[flash]\nchannels = 4\ndies_per_channel = 2\n\
         page = \"32 KiB\"\npages_per_block = 30\nread = \"36 us\"\nprogram = \"185 us\"\n\
         erase = \"3.5 ms\"\nchannel_bandwidth = \"800 MB/s\"\n[ftl]\nspare = {spare}\n\
         placement = \"{placement}\"\n[buffer]\nsize = \"4 MiB\"\n"
    );
    Profile::from_toml(&text).expect("the profile is valid")
}

fn simulate(placement: &str, spare: f64, (seed, drive_writes): (u64, u64), one_die: bool) {
    let mut study = Study::new(&profile(placement, spare), seed);
    let units = study.logical_units();
    (0..units).for_each(|unit| study.write(unit));
    let before = *study.counters();
    let mut random = Random::new(seed, "lives");
    let hinted = matches!(placement, "hinted" | "packed");
    for number in 0..u64::from(units) * drive_writes {
        let unit = random.below(u64::from(units)) as u32;
        let hint = match (hinted, one_die && number % 2 == 0) {
            (false, _) => Hint::None,
            (true, false) => Hint::Overwrite,
            (true, true) => Hint::AppendAfter(Lba::new(0)),
        };
        study.write_hinted(unit, hint);
    }
    study.assert_consistent();
    let (after, wear) = (study.counters(), study.wear());
    let host = (after.host_writes - before.host_writes) as f64;
    let flash = (after.nand_writes() - before.nand_writes()) as f64;
    let displaced = (after.displaced_writes - before.displaced_writes) as f64 / host;
    let hints = if one_die { "one die" } else { "random" };
    println!(
        "| {hints} | {spare} | {placement} | {seed} | {:.3} | {} | {} | {:.4} |",
        flash / host,
        wear.erases_least,
        wear.erases_most,
        displaced
    );
}

fn main() {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|argument| argument.parse().unwrap()).collect();
    let [seeds, drive_writes] = arguments[..] else {
        panic!("usage: placement_waf SEEDS DRIVE_WRITES")
    };
    for seed in 0..seeds {
        for spare in [0.07, 0.28] {
            for placement in ["striped", "hinted", "inferred", "packed"] {
                simulate(placement, spare, (seed, drive_writes), false);
            }
            if seed == 0 {
                simulate("hinted", spare, (seed, drive_writes), true);
            }
        }
    }
}
