//! `Slc`: flash that holds one bit a cell for a while, as a profile describes it.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;
use crate::nand::{Geometry, SlcTiming};

/// Where the superblocks of the cache come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcMode {
    /// They are set apart: on top of the spare, and nothing else is ever written to them.
    Static,
    /// They are borrowed while superblocks are free, so that a full drive has little of it.
    Dynamic,
}

/// An SLC cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slc {
    /// Where its superblocks come from.
    pub mode: SlcMode,
    /// Bytes that it holds at most.
    pub size: u64,
    /// Bits a cell of the same flash otherwise: what one superblock of data costs in the cache.
    pub bits_per_cell: u32,
}

impl Slc {
    pub(super) const KEYS: &[&str] = &[
        // What the cache holds at most; without it there is none.
        "size",
        // static: its superblocks are set apart; dynamic: borrowed while superblocks are free.
        "mode",
        // Of the same flash otherwise: what a superblock costs in the cache.
        "bits_per_cell",
        // tPROG at one bit a cell.
        "program",
        // tR at one bit a cell; left out: the fastest of flash.read.
        "read",
    ];

    /// Reads the section `[slc]`; none where it has no size.
    pub(super) fn read(mut section: Section) -> Result<Option<(Self, SlcTiming)>, ConfigError> {
        let size = section.size("size")?;
        let mode = match section.word("mode", &["static", "dynamic"])?.unwrap_or("static") {
            "dynamic" => SlcMode::Dynamic,
            _ => SlcMode::Static,
        };
        let bits_per_cell = section.count("bits_per_cell")?.unwrap_or(3);
        let program = section.time("program")?;
        let read = section.time("read")?;
        let Some(size) = size else {
            let missing = ConfigError::missing("slc.size");
            return if section.is_absent() { Ok(None) } else { Err(missing) };
        };
        if !(2..=16).contains(&bits_per_cell) {
            let allowed = "2 to 16: flash of one bit a cell is SLC all over".to_owned();
            return Err(ConfigError::new("slc.bits_per_cell", bits_per_cell.to_string(), allowed));
        }
        let program = program.ok_or(ConfigError::missing("slc.program"))?;
        let timing = SlcTiming { program, read: read.unwrap_or(Nanos::ZERO) };
        Ok(Some((Self { mode, size, bits_per_cell }, timing)))
    }

    /// Mapping units that a superblock holds in the cache: whole pages, whole chunks.
    pub fn superblock_units(&self, geometry: &Geometry) -> u32 {
        let chunk_pages = (geometry.chunk_units / geometry.multi_page_units()).max(1);
        let pages = geometry.pages_per_block / self.bits_per_cell / chunk_pages * chunk_pages;
        geometry.dies() * geometry.multi_page_units() * pages
    }

    /// Superblocks that it takes for its size, at most.
    pub fn superblocks(&self, geometry: &Geometry) -> u32 {
        let bytes = u64::from(self.superblock_units(geometry)) * geometry.unit_bytes();
        u32::try_from(self.size.div_ceil(bytes)).unwrap_or(u32::MAX)
    }

    /// Superblocks that are set apart for it.
    pub fn superblocks_apart(&self, geometry: &Geometry) -> u32 {
        if self.mode == SlcMode::Static { self.superblocks(geometry) } else { 0 }
    }

    pub(super) fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        if self.superblock_units(geometry) > 0 {
            return Ok(());
        }
        let allowed = "so few that a block keeps a page (and a chunk) at one bit a cell".to_owned();
        Err(ConfigError::new("slc.bits_per_cell", self.bits_per_cell.to_string(), allowed))
    }
}
