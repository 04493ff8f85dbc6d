//! The output of lessons: a drive's state as small tables, times, counts.

use ssdlab_flash::{Counters, Profile, Ssd, Superblock, SuperblockState, UnitLocation};
use ssdlab_time::Nanos;

/// Units per row of the map: two pages of the tiny drive.
const ROW: u64 = 8;

/// The geometry and the spare of a drive.
pub fn geometry(profile: &Profile) -> String {
    let geometry = &profile.geometry;
    format!(
        "{} dies, {} superblocks of {} units; \
         {} units visible, spare {:.2}, overprovisioning {:.2}",
        geometry.dies(),
        geometry.blocks_per_plane,
        geometry.superblock_units(),
        profile.logical_units(),
        profile.spare(),
        geometry.bytes() as f64 / profile.capacity as f64 - 1.0,
    )
}

/// A time in microseconds, or in milliseconds from 10 on.
pub fn time(time: Nanos) -> String {
    match time.get() {
        nanos if nanos < 10_000_000 => format!("{} us", decimal(nanos as f64 / 1e3)),
        nanos => format!("{} ms", decimal(nanos as f64 / 1e6)),
    }
}

fn decimal(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// `1 unit`, `2 units`.
pub fn counted(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// The location of each unit: die/block/page, `buffer`, or `-` if unmapped.
pub fn map(drive: &Ssd, units: std::ops::Range<u64>) -> Vec<String> {
    let cell = |unit| match drive.locate(unit) {
        UnitLocation::Unmapped => "-".to_owned(),
        UnitLocation::Buffer => "buffer".to_owned(),
        UnitLocation::Flash { die, block, page } => format!("{die}/{block}/{page}"),
    };
    let row = |start: u64| {
        let cells = (start..units.end.min(start + ROW)).map(|unit| format!(" {:>6}", cell(unit)));
        format!("unit {start:>3}: {}", cells.collect::<String>())
    };
    units.clone().step_by(ROW as usize).map(row).collect()
}

/// State, valid count and erase count of each superblock.
pub fn superblocks(drive: &Ssd) -> Vec<String> {
    let all = drive.superblocks();
    let state = |superblock: &Superblock| match superblock.state {
        SuperblockState::Free => "free",
        SuperblockState::Open => "open",
        SuperblockState::Closed => "closed",
        SuperblockState::Victim => "victim",
        SuperblockState::Empty => "empty",
        SuperblockState::Retired => "retired",
    };
    let row = |name: &str, cells: Vec<String>| {
        let cells = cells.iter().map(|cell| format!(" {cell:>6}"));
        format!("{name:<10} {}", cells.collect::<String>()).trim_end().to_owned()
    };
    let mut rows = vec![
        row("superblock", (0..all.len()).map(|number| number.to_string()).collect()),
        row("state", all.iter().map(|each| state(each).to_owned()).collect()),
        row("valid", all.iter().map(|each| each.valid.to_string()).collect()),
        row("erases", all.iter().map(|each| each.erases.to_string()).collect()),
    ];
    if all.iter().any(|each| each.slc) {
        let slc = |each: &Superblock| if each.slc { "slc" } else { "" };
        rows.push(row("cache", all.iter().map(|each| slc(each).to_owned()).collect()));
    }
    if all.iter().any(|each| each.stream > 0) {
        let stream = |each: &Superblock| match each.state {
            SuperblockState::Free | SuperblockState::Retired => String::new(),
            _ => each.stream.to_string(),
        };
        rows.push(row("stream", all.iter().map(stream).collect()));
    }
    rows
}

pub fn counters(counters: &Counters) -> Vec<String> {
    let causes = [
        (counters.nand_host_writes, "of the host"),
        (counters.nand_collection_writes, "collected"),
        (counters.nand_wear_writes, "levelled"),
        (counters.nand_folding_writes, "folded"),
        (counters.nand_mapping_writes, "of the map"),
        (counters.nand_padding_writes, "padding"),
    ];
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let sum: Vec<String> = causes.map(|(count, cause)| format!("{count} {cause}")).collect();
    let displaced = counters.displaced_writes + counters.displaced_moves;
    let waf = counters.waf().map_or("-".to_owned(), |waf| format!("{waf:.2}"));
    let mut lines = vec![
        format!(
            "host wrote {}, so write amplification is {waf}",
            counted(counters.host_writes, "unit")
        ),
        format!("programmed {} = {}", counters.nand_writes(), sum.join(" + ")),
        format!(
            "{} for the host, {} for collection, {} block erases",
            counted(counters.host_senses, "sense"),
            counted(counters.collection_senses, "sense"),
            counters.erases,
        ),
    ];
    if displaced > 0 {
        lines.push(format!("{} went to a different die", counted(displaced, "unit")));
    }
    lines
}
