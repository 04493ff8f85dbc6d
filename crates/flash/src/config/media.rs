//! `Media`: the section `[flash]` of a profile.

use super::reader::Section;
use super::{ConfigError, Failure};
use crate::nand::Timing;

/// Geometry and times as given in the section, not checked yet.
pub(super) struct Media {
    pub(super) channels: u32,
    pub(super) dies_per_channel: u32,
    pub(super) planes: u32,
    pub(super) independent_plane_reads: bool,
    pub(super) page: u64,
    pub(super) pages_per_block: u32,
    pub(super) blocks_per_plane: Option<u32>,
    pub(super) endurance: Option<u32>,
    pub(super) failure: Option<Failure>,
    pub(super) timing: Timing,
}

impl Media {
    pub(super) const KEYS: &[&str] = &[
        // Buses to the controller, which transfer independently.
        "channels",
        // Dies on each, which work independently.
        "dies_per_channel",
        // Planes of a die, which program and erase together.
        "planes",
        // Each plane reads by itself (AIPR); otherwise the planes of a die sense together.
        "independent_plane_reads",
        // The size that one plane programs and senses at once.
        "page",
        // Pages of an erase block.
        "pages_per_block",
        // Follows from capacity and spare if left out; given all three, they must agree.
        "blocks_per_plane",
        // Rated P/E cycles of a block: wear is reported in percent of them.
        "endurance",
        // P/E cycles after which blocks fail, on average; left out: never.
        "failure_cycles",
        // Standard deviation of failure_cycles, as a share of it.
        "failure_spread",
        // tR, one for each page type in the order of the pages of a block.
        "read",
        // tPROG of a (multi-plane) page.
        "program",
        // tBERS of a (multi-plane) block.
        "erase",
        // Time to suspend a program or an erase for a read; left out: reads wait.
        "suspend",
        // The longest that host reads delay one operation of a die, by running first or by
        // suspending it; then it runs to its end; left out: any time.
        "delay_limit",
        // Bandwidth of one channel.
        "channel_bandwidth",
        // A die senses its next page while the data of the last one is transferred.
        "cache_register",
        // The page sensed last stays in its register: the next read of it needs no sense.
        "keeps_page",
    ];

    pub(super) fn read(mut section: Section) -> Result<Self, ConfigError> {
        let missing = ConfigError::missing;
        let media = Self {
            channels: section.count("channels")?.ok_or(missing("flash.channels"))?,
            dies_per_channel: section
                .count("dies_per_channel")?
                .ok_or(missing("flash.dies_per_channel"))?,
            planes: section.count("planes")?.unwrap_or(1),
            independent_plane_reads: section.flag("independent_plane_reads")?.unwrap_or(false),
            page: section.size("page")?.ok_or(missing("flash.page"))?,
            pages_per_block: section
                .count("pages_per_block")?
                .ok_or(missing("flash.pages_per_block"))?,
            blocks_per_plane: section.count("blocks_per_plane")?,
            endurance: section.count("endurance")?,
            failure: read_failure(&mut section)?,
            timing: Timing {
                read: section.times("read")?.ok_or(missing("flash.read"))?,
                program: section.time("program")?.ok_or(missing("flash.program"))?,
                erase: section.time("erase")?.ok_or(missing("flash.erase"))?,
                suspend: section.time("suspend")?,
                delay_limit: section.time("delay_limit")?,
                slc: None,
                channel_bandwidth: section
                    .rate("channel_bandwidth")?
                    .ok_or(missing("flash.channel_bandwidth"))?,
                cache_register: section.flag("cache_register")?.unwrap_or(true),
                keeps_page: section.flag("keeps_page")?.unwrap_or(false),
            },
        };
        media.check_planes()?;
        Ok(media)
    }

    /// Checks that planes can read independently, if they do.
    fn check_planes(&self) -> Result<(), ConfigError> {
        if !self.independent_plane_reads {
            return Ok(());
        }
        if !self.timing.cache_register {
            let allowed = "true if flash.independent_plane_reads is".to_owned();
            return Err(ConfigError::new("flash.cache_register", "false".to_owned(), allowed));
        }
        let allowed = "2 to 64 if flash.independent_plane_reads is true".to_owned();
        let fits = (2..=64).contains(&self.planes);
        ConfigError::unless(fits, "flash.planes", self.planes.to_string(), allowed)
    }
}

fn read_failure(section: &mut Section) -> Result<Option<Failure>, ConfigError> {
    let cycles = section.count("failure_cycles")?;
    let spread = section.share("failure_spread")?;
    match (cycles, spread) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(ConfigError::missing("flash.failure_cycles")),
        (Some(cycles), spread) => Ok(Some(Failure { cycles, spread: spread.unwrap_or(0.1) })),
    }
}
