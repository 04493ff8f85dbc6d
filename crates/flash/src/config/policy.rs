//! `PlacementRule` and `Collection`: where a profile has units written, and how it reclaims space.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;
use crate::nand::Geometry;

/// How the superblock to collect is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// The one with the fewest valid units.
    Greedy,
    /// The one that was closed first.
    Fifo,
    /// A random one.
    Random,
    /// The emptiest of this many picked at random.
    DChoices(u32),
    /// The one with the best ratio of benefit to cost, which prefers old ones.
    CostBenefit,
}

/// Where host units are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementRule {
    /// Along the stripe, one superblock after the other.
    Striped,
    /// Each of this many streams to superblocks of its own.
    Streams(u32),
    /// To the die that follows from the hint of an append or an overwrite.
    Hinted,
    /// As hinted; for writes without a hint, the drive guesses from the units' numbers.
    Inferred,
    /// As inferred; pieces of a file that are smaller than a page are gathered on one.
    Packed,
}

impl PlacementRule {
    /// The most streams of a drive: the limit of `NVMe` for reclaim unit handles.
    const STREAMS_MAX: u32 = 128;

    const WORDS: [&str; 5] = ["striped", "streams", "hinted", "inferred", "packed"];

    /// Superblocks that the host fills at the same time.
    pub fn superblocks_open(self) -> u32 {
        match self {
            Self::Striped | Self::Hinted | Self::Inferred => 1,
            Self::Packed => 2,
            Self::Streams(count) => count,
        }
    }

    /// The most host units in partly filled pages.
    pub fn units_open(self, geometry: &Geometry) -> u64 {
        match self {
            Self::Striped => geometry.open_units(),
            Self::Streams(count) => geometry.open_units() * u64::from(count),
            Self::Hinted | Self::Inferred => {
                u64::from(geometry.dies() * geometry.multi_page_units())
            }
            Self::Packed => 2 * u64::from(geometry.dies() * geometry.multi_page_units()),
        }
    }

    pub(super) fn read(section: &mut Section) -> Result<Self, ConfigError> {
        let word = section.word("placement", &Self::WORDS)?.unwrap_or("striped");
        let streams = section.count("streams")?;
        if streams.is_some() && word != "streams" {
            let allowed = "left out, unless ftl.placement is \"streams\"".to_owned();
            return Err(ConfigError::new("ftl.streams", "given".to_owned(), allowed));
        }
        match streams {
            _ if word == "striped" => Ok(Self::Striped),
            _ if word == "hinted" => Ok(Self::Hinted),
            _ if word == "inferred" => Ok(Self::Inferred),
            _ if word == "packed" => Ok(Self::Packed),
            None => Err(ConfigError::missing("ftl.streams")),
            Some(count) if count > Self::STREAMS_MAX => {
                let allowed = format!("1 to {}", Self::STREAMS_MAX);
                Err(ConfigError::new("ftl.streams", count.to_string(), allowed))
            }
            Some(count) => Ok(Self::Streams(count)),
        }
    }
}

/// Where collection writes relocated units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relocation {
    /// To a frontier of its own, separate from new data.
    Separate,
    /// To the host's frontier; with streams, to that of the unit's stream.
    Mixed,
}

/// When the units of a victim are relocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// A few with each page that the host fills, so that host and collection end together.
    Unit,
    /// All at once, as soon as free superblocks are down to the reserve.
    Victim,
}

/// How erases are levelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WearLevelling {
    /// Free superblocks are used in the order in which they became free.
    None,
    /// The free superblock erased least often is used next.
    Dynamic,
    /// As dynamic; in addition, a superblock with too few erases is collected early.
    Static {
        /// The difference to the highest erase count at which it is collected.
        spread: u32,
    },
}

/// The rules of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// How the superblock is chosen.
    pub victim: VictimPolicy,
    /// Where its units go.
    pub relocation: Relocation,
    /// When its units are relocated.
    pub pacing: Pacing,
    /// Collection starts when at most this many superblocks are free.
    pub reserve: u32,
    /// Collection continues in idle time until this many are free; 0: it does not.
    pub idle_reserve: u32,
    /// Idle time before collection in idle time starts.
    pub idle_after: Nanos,
    /// How erases are levelled.
    pub wear: WearLevelling,
}

impl Collection {
    /// Superblocks that are never full of data: its own frontier, and the reserve.
    pub fn superblocks_held(&self) -> u32 {
        self.reserve + u32::from(self.relocation == Relocation::Separate)
    }

    pub(super) fn read(section: &mut Section) -> Result<Self, ConfigError> {
        const POLICIES: [&str; 5] = ["greedy", "fifo", "random", "d-choices", "cost-benefit"];
        let policy = section.word("victim", &POLICIES)?.unwrap_or("greedy");
        let choices = section.count("choices")?;
        let victim = match policy {
            "greedy" => VictimPolicy::Greedy,
            "fifo" => VictimPolicy::Fifo,
            "random" => VictimPolicy::Random,
            "d-choices" => VictimPolicy::DChoices(choices.unwrap_or(10).min(1000)),
            _ => VictimPolicy::CostBenefit,
        };
        if choices.is_some() && policy != "d-choices" {
            let allowed = "left out, unless ftl.victim is \"d-choices\"".to_owned();
            return Err(ConfigError::new("ftl.choices", "given".to_owned(), allowed));
        }
        let relocation =
            match section.word("relocation", &["separate", "mixed"])?.unwrap_or("separate") {
                "mixed" => Relocation::Mixed,
                _ => Relocation::Separate,
            };
        let pacing = match section.word("pacing", &["unit", "victim"])?.unwrap_or("unit") {
            "victim" => Pacing::Victim,
            _ => Pacing::Unit,
        };
        let reserve = section.count("reserve")?.unwrap_or(2);
        if !(2..=1 << 20).contains(&reserve) {
            let allowed = "2 to 1048576: one superblock for the host, one to move to".to_owned();
            return Err(ConfigError::new("ftl.reserve", reserve.to_string(), allowed));
        }
        let idle_reserve = section.count("idle_reserve")?.unwrap_or(0);
        let idle_after = section.time("idle_after")?.unwrap_or(Nanos::ZERO);
        let wear = Self::read_wear(section)?;
        Ok(Self { victim, relocation, pacing, reserve, idle_reserve, idle_after, wear })
    }

    fn read_wear(section: &mut Section) -> Result<WearLevelling, ConfigError> {
        let words = ["none", "dynamic", "static"];
        let word = section.word("wear_levelling", &words)?.unwrap_or("dynamic");
        let spread = section.count("wear_spread")?;
        if spread.is_some() && word != "static" {
            let allowed = "left out, unless ftl.wear_levelling is \"static\"".to_owned();
            return Err(ConfigError::new("ftl.wear_spread", "given".to_owned(), allowed));
        }
        Ok(match word {
            "none" => WearLevelling::None,
            "static" => WearLevelling::Static { spread: spread.unwrap_or(32) },
            _ => WearLevelling::Dynamic,
        })
    }
}
