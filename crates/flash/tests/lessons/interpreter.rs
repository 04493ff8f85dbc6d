//! `Interpreter`: runs the commands of a lesson on a twin.

use ssdlab_device::{Device, Hint, Lba, Op, Request, Wait};
use ssdlab_flash::{LostUnit, Profile, Ssd};
use ssdlab_time::{Nanos, Random};
use toml::{Table, Value};

use crate::show;

/// A drive small enough to print completely, with round times.
///
/// Two dies, each on its own channel; a superblock is 4 pages x 2 dies x 4 units = 32 units, and
/// there are 12, for 192 visible units. A sense takes 50 us, a unit 10 us on its channel and 4 us
/// on the link.
const TINY: &str = r#"
[drive]
model = "tiny"
capacity = "768 KiB"
interface = "nvme"
[link]
bandwidth = "1024 MB/s"
read_overhead = "10 us"
write_overhead = "5 us"
max_transfer = "128 KiB"
[flash]
channels = 2
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = 4
blocks_per_plane = 12
read = "50 us"
program = "600 us"
erase = "3 ms"
channel_bandwidth = "409.6 MB/s"
[ftl]
mapping_unit = "4 KiB"
[buffer]
size = "64 KiB"
"#;
const UNIT_SECTORS: u64 = 8;

/// The output of a command, or an error.
pub type Output = Result<Vec<String>, String>;

/// A range of mapping units; the end is exclusive.
type Units = std::ops::Range<u64>;

/// The drive that the lesson created last.
#[derive(Debug, Default)]
pub struct Interpreter {
    drive: Option<(Ssd, Profile)>,
}

impl Interpreter {
    pub fn run(&mut self, line: &str) -> Output {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        if verb == "drive" {
            self.drive = Some(create(rest)?);
            return Ok(Vec::new());
        }
        let (drive, profile) = self.drive.as_mut().ok_or("no drive yet: begin with `drive`")?;
        let units = profile.logical_units();
        let output = match verb {
            "write" => {
                let (ranges, hint) = hint(rest, units)?;
                write(drive, &list(ranges, units)?, hint)
            }
            "overwrite" => overwrite(drive, rest, units)?,
            "read" => read(drive, rest, units)?,
            "trim" => trim(drive, range(rest, units)?),
            "flush" if rest.is_empty() => {
                vec![format!("flushed in {}", show::time(run(drive, Op::Flush, 0..0)))]
            }
            "rest" => pause(drive, rest)?,
            "cut" if rest == "power" => cut_power(drive),
            "show" if rest == "drive" => vec![show::geometry(profile)],
            "show" => show_part(drive, rest, units)?,
            _ => return Err("no such command".to_owned()),
        };
        drive.assert_consistent();
        Ok(output)
    }
}

/// A new twin of the tiny profile, with keys replaced by `key = value, ...`. A key is written
/// `table.name`, except `seed`, the seed of random choices.
fn create(overrides: &str) -> Result<(Ssd, Profile), String> {
    let mut table: Table = TINY.parse().expect("the tiny profile is TOML");
    let mut seed = 1;
    for each in overrides.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (key, value) = each.split_once(" = ").ok_or("give key = value, ...")?;
        if key == "seed" {
            seed = number(value)?;
            continue;
        }
        let (section, name) = key.split_once('.').ok_or("give a key as table.name")?;
        if matches!(section, "slc" | "trim") {
            table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        }
        let section = table.get_mut(section).and_then(Value::as_table_mut);
        section.ok_or(format!("no table for {key}"))?.insert(name.to_owned(), toml_value(value));
    }
    let profile = Profile::from_toml(&table.to_string()).map_err(|error| error.to_string())?;
    Ok((Ssd::new(&profile, seed), profile))
}

/// An integer, a boolean or a string.
fn toml_value(value: &str) -> Value {
    let number = value.parse().map(Value::Integer).ok();
    let flag = || value.parse().map(Value::Boolean).ok();
    number.or_else(flag).unwrap_or_else(|| Value::String(value.to_owned()))
}

/// Splits the hint off the end of a line: ` for stream N`, ` after UNIT`, ` in place`.
fn hint(rest: &str, units: u64) -> Result<(&str, Hint), String> {
    if let Some((ranges, stream)) = rest.split_once(" for stream ") {
        let number = u8::try_from(number(stream)?).map_err(|_| "a stream is 0 to 255")?;
        return Ok((ranges, Hint::Stream(number)));
    }
    if let Some((ranges, unit)) = rest.split_once(" after ") {
        let last = range(unit, units)?.end * UNIT_SECTORS - 1;
        return Ok((ranges, Hint::AppendAfter(Lba::new(last))));
    }
    let overwrites = rest.strip_suffix(" in place").map(|ranges| (ranges, Hint::Overwrite));
    Ok(overwrites.unwrap_or((rest, Hint::None)))
}

fn write(drive: &mut Ssd, ranges: &[Units], hint: Hint) -> Vec<String> {
    let units: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let time = ranges.iter().map(|range| run_with(drive, Op::Write, range.clone(), hint)).sum();
    vec![format!("{} written in {}", show::counted(units, "unit"), show::time(time))]
}

/// `COUNT at random seed S in A..B`, with an optional hint.
fn overwrite(drive: &mut Ssd, rest: &str, units: u64) -> Output {
    let form = "usage: overwrite COUNT at random seed S in A..B";
    let (rest, hint) = hint(rest, units)?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [count, "at", "random", "seed", seed, "in", among] = words[..] else {
        return Err(form.to_owned());
    };
    let (count, seed) = (number(count)?, number(seed)?);
    let among = range(among, units)?;
    let mut random = Random::new(seed, "lesson");
    let starts = (0..count).map(|_| among.start + random.below(among.end - among.start));
    let ranges: Vec<Units> = starts.map(|unit| unit..unit + 1).collect();
    Ok(write(drive, &ranges, hint))
}

/// `A..B`, or `A..B by N`: one request after the other, each of N units.
fn read(drive: &mut Ssd, rest: &str, units: u64) -> Output {
    let (all, step) = rest.split_once(" by ").unwrap_or((rest, ""));
    let all = range(all, units)?;
    let step = if step.is_empty() { all.end - all.start } else { number(step)?.max(1) };
    let before = drive.counters().host_senses;
    let starts = all.clone().step_by(step as usize);
    let time = starts.map(|start| run(drive, Op::Read, start..all.end.min(start + step))).sum();
    let senses = drive.counters().host_senses - before;
    let read = show::counted(all.end - all.start, "unit");
    Ok(vec![format!("{read} read with {} in {}", show::counted(senses, "sense"), show::time(time))])
}

fn trim(drive: &mut Ssd, units: Units) -> Vec<String> {
    let trimmed = show::counted(units.end - units.start, "unit");
    vec![format!("{trimmed} trimmed in {}", show::time(run(drive, Op::Trim, units)))]
}

/// An idle time, such as `10 ms`.
fn pause(drive: &mut Ssd, rest: &str) -> Output {
    let form = "usage: rest 10 ms";
    let (count, unit) = rest.split_once(' ').ok_or(form)?;
    let nanos = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(form.to_owned()),
    };
    let until = drive.now() + Nanos::new(number(count)? * nanos);
    drive.reap(Wait::Until(until), &mut Vec::new()).map_err(|error| error.to_string())?;
    Ok(Vec::new())
}

fn cut_power(drive: &mut Ssd) -> Vec<String> {
    let lost = drive.power_cut(drive.now()).lost;
    let content = |has_older| if has_older { "has older content again" } else { "is empty again" };
    let row = |each: &LostUnit| {
        let writes = if each.writes == 1 { "its last write" } else { "its last writes" };
        format!("unit {} lost {writes} and {}", each.unit, content(each.has_older))
    };
    if lost.is_empty() {
        return vec!["nothing lost".to_owned()];
    }
    lost.iter().map(row).collect()
}

fn show_part(drive: &Ssd, rest: &str, units: u64) -> Output {
    match rest.split_once(' ').unwrap_or((rest, "")) {
        ("map", shown) => Ok(show::map(drive, range(shown, units)?)),
        ("superblocks", "") => Ok(show::superblocks(drive)),
        ("counters", "") => Ok(show::counters(drive.counters())),
        _ => Err("show drive, map A..B, superblocks or counters".to_owned()),
    }
}

/// Runs one request at depth 1; returns its latency.
fn run(drive: &mut Ssd, op: Op, units: Units) -> Nanos {
    run_with(drive, op, units, Hint::None)
}

fn run_with(drive: &mut Ssd, op: Op, units: Units, hint: Hint) -> Nanos {
    let lba = Lba::new(units.start * UNIT_SECTORS);
    let blocks = ((units.end - units.start) * UNIT_SECTORS) as u32;
    drive
        .submit(Request { hint, ..Request::new(0, op, lba, blocks) })
        .expect("the units are in the drive");
    let mut done = Vec::new();
    drive.reap(Wait::One, &mut done).expect("a twin has no device errors");
    done[0].completed - done[0].submitted
}

/// Units and ranges of units, separated by blanks.
fn list(text: &str, units: u64) -> Result<Vec<Units>, String> {
    text.split(' ').map(|each| range(each, units)).collect()
}

/// `A..B`, not empty, or one unit.
fn range(text: &str, units: u64) -> Result<Units, String> {
    let (start, end) = match text.split_once("..") {
        Some((start, end)) => (number(start)?, number(end)?),
        None => (number(text)?, number(text)? + 1),
    };
    if start < end && end <= units {
        return Ok(start..end);
    }
    Err(format!("{text} is not in 0..{units}, or empty"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number"))
}

#[cfg(test)]
mod tests {
    use super::Interpreter;

    #[test]
    fn an_invalid_command_is_rejected_with_its_usage() {
        for (line, words) in [
            ("wipe 3", "no such command"),
            ("write 3..3", "3..3 is not in 0..192, or empty"),
            ("write 192", "192 is not in 0..192"),
            ("write", "is not a whole number"),
            ("read 0..4 by", "not a whole number"),
            ("rest 10", "rest 10 ms"),
            ("write 3 for stream 256", "a stream is 0 to 255"),
            ("write 3 after 192", "192 is not in 0..192"),
            ("write 3 in its place", "is not a whole number"),
            ("overwrite 3 in 0..9", "overwrite COUNT at random seed S in A..B"),
            ("show maps", "show drive, map A..B, superblocks or counters"),
            ("drive ftl.victm = fifo", "did you mean victim?"),
            ("drive victim = fifo", "table.name"),
        ] {
            let mut interpreter = Interpreter::default();
            interpreter.run("drive").unwrap();
            let error = interpreter.run(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
        assert!(Interpreter::default().run("flush").unwrap_err().contains("begin with `drive`"));
    }
}
