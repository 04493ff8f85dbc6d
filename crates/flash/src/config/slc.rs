//! `Slc`: the section `[slc]` of a profile.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;
use crate::nand::{Geometry, SlcTiming};

/// Where the superblocks of the cache come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcMode {
    /// It has its own, in addition to the spare; they are used for nothing else.
    Static,
    /// It borrows free superblocks, so that the cache of a full drive is small.
    Dynamic,
}

/// When the cache is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// In idle time; while the host writes only as far as collection needs room.
    Idle,
    /// Also while the host writes: it writes to the cache only, as fast as folding makes room.
    WhileWriting,
}

/// An SLC cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slc {
    /// Where its superblocks come from.
    pub mode: SlcMode,
    /// Its largest size in bytes.
    pub size: u64,
    /// Bits per cell of the other flash: a superblock holds that many times less in the cache.
    pub bits_per_cell: u32,
    /// When it is folded.
    pub folding: Folding,
}

impl Slc {
    pub(super) const KEYS: &[&str] = &[
        // Largest size of the cache; left out: the drive has no cache.
        "size",
        // static: the cache has its own superblocks; dynamic: it borrows free ones.
        "mode",
        // Of the other flash: a superblock holds that many times less in the cache.
        "bits_per_cell",
        // idle: in idle time; while writing (dynamic only): also to keep writing to the cache.
        "folding",
        // tPROG at one bit per cell.
        "program",
        // tR at one bit per cell; left out: the fastest of flash.read.
        "read",
    ];

    /// Reads the section `[slc]`; `None` if it is absent.
    pub(super) fn read(mut section: Section) -> Result<Option<(Self, SlcTiming)>, ConfigError> {
        let size = section.size("size")?;
        let mode = match section.word("mode", &["static", "dynamic"])?.unwrap_or("static") {
            "dynamic" => SlcMode::Dynamic,
            _ => SlcMode::Static,
        };
        let folding = Self::read_folding(&mut section, mode)?;
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
        Ok(Some((Self { mode, size, bits_per_cell, folding }, timing)))
    }

    fn read_folding(section: &mut Section, mode: SlcMode) -> Result<Folding, ConfigError> {
        match section.word("folding", &["idle", "while writing"])?.unwrap_or("idle") {
            "while writing" if mode == SlcMode::Static => {
                let allowed = "\"idle\", unless slc.mode is \"dynamic\"".to_owned();
                Err(ConfigError::new("slc.folding", "\"while writing\"".to_owned(), allowed))
            }
            "while writing" => Ok(Folding::WhileWriting),
            _ => Ok(Folding::Idle),
        }
    }

    /// Mapping units in a superblock of the cache: whole pages, whole chunks.
    pub fn superblock_units(&self, geometry: &Geometry) -> u32 {
        let chunk_pages = (geometry.chunk_units / geometry.multi_page_units()).max(1);
        let pages = geometry.pages_per_block / self.bits_per_cell / chunk_pages * chunk_pages;
        geometry.dies() * geometry.multi_page_units() * pages
    }

    /// The most superblocks that it has.
    pub fn superblocks(&self, geometry: &Geometry) -> u32 {
        let bytes = u64::from(self.superblock_units(geometry)) * geometry.unit_bytes();
        u32::try_from(self.size.div_ceil(bytes)).unwrap_or(u32::MAX)
    }

    /// Bytes in the most superblocks that it has.
    pub fn bytes(&self, geometry: &Geometry) -> u64 {
        let units = u64::from(self.superblock_units(geometry));
        u64::from(self.superblocks(geometry)) * units * geometry.unit_bytes()
    }

    /// Superblocks of its own.
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
