//! `Collection`: how a profile says that space is reclaimed.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;

/// Which superblock is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// The one with the fewest valid units.
    Greedy,
    /// The one that was filled first.
    Fifo,
    /// Any.
    Random,
    /// The emptiest of so many picked at random.
    DChoices(u32),
    /// The one that gains most for its cost, an old one rather than a young one.
    CostBenefit,
}

/// Where collection writes what it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relocation {
    /// To a frontier of its own: what survived once is kept apart from what is new.
    Separate,
    /// To the host's frontier.
    Mixed,
}

/// How erases are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WearLevelling {
    /// Free superblocks are used in the order in which they became free.
    None,
    /// The free superblock erased least often is used next.
    Dynamic,
    /// That, and a superblock that lags so many erases behind is collected before its turn.
    Static {
        /// Erases behind the most worn superblock.
        spread: u32,
    },
}

/// When, which and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Which superblock.
    pub victim: VictimPolicy,
    /// Where to.
    pub relocation: Relocation,
    /// Collection starts when no more superblocks than this are free.
    pub reserve: u32,
    /// While the drive is idle, collection goes on until so many are free; 0: it does not.
    pub idle_reserve: u32,
    /// How long the drive must have been idle before it uses the time.
    pub idle_after: Nanos,
    /// How erases are spread.
    pub wear: WearLevelling,
}

impl Collection {
    /// Superblocks that never hold all the data they could: frontiers, and the reserve.
    pub fn superblocks_held(&self) -> u32 {
        self.reserve + if self.relocation == Relocation::Separate { 2 } else { 1 }
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
        let relocation = match section.word("relocation", &["separate", "mixed"])? {
            Some("mixed") => Relocation::Mixed,
            _ => Relocation::Separate,
        };
        let reserve = section.count("reserve")?.unwrap_or(2);
        if !(2..=1 << 20).contains(&reserve) {
            let allowed = "2 to 1048576: one superblock for the host, one to move to".to_owned();
            return Err(ConfigError::new("ftl.reserve", reserve.to_string(), allowed));
        }
        let idle_reserve = section.count("idle_reserve")?.unwrap_or(0);
        let idle_after = section.time("idle_after")?.unwrap_or(Nanos::ZERO);
        let wear = Self::read_wear(section)?;
        Ok(Self { victim, relocation, reserve, idle_reserve, idle_after, wear })
    }

    fn read_wear(section: &mut Section) -> Result<WearLevelling, ConfigError> {
        let word = section.word("wear_levelling", &["none", "dynamic", "static"])?;
        let spread = section.count("wear_spread")?;
        if spread.is_some() && word != Some("static") {
            let allowed = "left out, unless ftl.wear_levelling is \"static\"".to_owned();
            return Err(ConfigError::new("ftl.wear_spread", "given".to_owned(), allowed));
        }
        Ok(match word {
            Some("none") => WearLevelling::None,
            Some("static") => WearLevelling::Static { spread: spread.unwrap_or(32) },
            _ => WearLevelling::Dynamic,
        })
    }
}
