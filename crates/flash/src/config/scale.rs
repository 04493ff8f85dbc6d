//! How capacity, spare and blocks determine each other, and the geometry that collection needs.

use super::{ConfigError, Ftl, Media, PlacementRule, Profile, Slc};
use crate::nand::Geometry;

/// With fewer superblocks than this, a scaled twin gets smaller blocks instead: with so few
/// victims to choose from, collection would differ from that of the full drive.
const SUPERBLOCKS_SCALED_MIN: u64 = 128;

/// A geometry whose number of blocks is not known yet.
pub(super) struct Shape(Geometry);

impl Shape {
    /// Checks that units, pages, chunks and blocks are multiples of each other.
    pub(super) fn check(media: &Media, ftl: &Ftl, slc: Option<&Slc>) -> Result<Self, ConfigError> {
        let unit = ftl.mapping_unit;
        if !unit.is_power_of_two() || unit < 512 {
            let allowed = "a power of two from \"512 B\" on".to_owned();
            return Err(ConfigError::new("ftl.mapping_unit", format!("{unit} bytes"), allowed));
        }
        let (fits, given) = (media.page.is_multiple_of(unit), format!("{} bytes", media.page));
        let allowed = format!("a multiple of ftl.mapping_unit, {unit} bytes");
        ConfigError::unless(fits, "flash.page", given, allowed)?;
        let multi_page = media.page.saturating_mul(u64::from(media.planes));
        let chunk = ftl.chunk.unwrap_or(multi_page);
        let die_bytes = multi_page.saturating_mul(u64::from(media.pages_per_block));
        let nests = chunk.is_multiple_of(multi_page) || multi_page.is_multiple_of(chunk);
        if !chunk.is_multiple_of(unit) || !nests || !die_bytes.is_multiple_of(chunk) {
            let allowed = format!(
                "a multiple of ftl.mapping_unit that divides flash.page x flash.planes \
                 ({multi_page} bytes), or a multiple of that which divides a block of all planes"
            );
            return Err(ConfigError::new("ftl.chunk", format!("{chunk} bytes"), allowed));
        }
        let geometry = Geometry {
            channels: media.channels,
            dies_per_channel: media.dies_per_channel,
            planes: media.planes,
            independent_plane_reads: media.independent_plane_reads,
            page_units: small(media.page / unit, "flash.page")?,
            pages_per_block: media.pages_per_block,
            blocks_per_plane: 1,
            unit_bytes: unit as u32,
            chunk_units: small(chunk / unit, "ftl.chunk")?,
        };
        check_pages(&geometry)?;
        check_superblock(&geometry)?;
        slc.map_or(Ok(()), |slc| slc.check(&geometry))?;
        Ok(Self(geometry))
    }

    /// Computes which of capacity, spare and blocks is left out; if all are given, they must agree.
    ///
    /// The superblocks of a static SLC cache count as blocks but not as spare. Returns the capacity
    /// in bytes, rounded down to whole mapping units, and the geometry.
    pub(super) fn size(
        &self,
        capacity: Option<u64>,
        spare: Option<f64>,
        blocks: Option<u32>,
        slc: Option<&Slc>,
    ) -> Result<(u64, Geometry), ConfigError> {
        let apart = slc.map_or(0, |slc| slc.superblocks_apart(&self.0));
        if blocks.is_some_and(|blocks| blocks <= apart) {
            let allowed = format!("more than the {apart} superblocks that slc.size sets apart");
            let given = blocks.unwrap_or_default().to_string();
            return Err(ConfigError::new("flash.blocks_per_plane", given, allowed));
        }
        let blocks = blocks.map(|blocks| blocks - apart);
        let superblock = self.0.superblock_bytes() as f64;
        let blocks_for = |capacity: u64, spare: f64| {
            (capacity as f64 / (1.0 - spare) / superblock).ceil().max(1.0)
        };
        let (capacity, blocks) = match (capacity, spare, blocks) {
            (Some(capacity), _, Some(blocks)) => (capacity, f64::from(blocks)),
            (Some(capacity), Some(spare), None) => (capacity, blocks_for(capacity, spare)),
            (None, Some(spare), Some(blocks)) => {
                let flash = f64::from(blocks) * superblock;
                ((flash * (1.0 - spare)).floor() as u64, f64::from(blocks))
            }
            (None, _, None) => return Err(ConfigError::missing("drive.capacity")),
            (_, None, _) => return Err(ConfigError::missing("ftl.spare")),
        };
        let blocks = if blocks <= f64::from(u32::MAX) { blocks as u32 } else { u32::MAX };
        let geometry = Geometry { blocks_per_plane: blocks, ..self.0.clone() };
        check_addresses(&geometry)?;
        if let Some(spare) = spare {
            check_agreement(capacity, spare, &geometry)?;
        }
        let geometry = Geometry { blocks_per_plane: blocks.saturating_add(apart), ..geometry };
        check_addresses(&geometry)?;
        Ok((capacity / geometry.unit_bytes() * geometry.unit_bytes(), geometry))
    }
}

fn small(count: u64, key: &str) -> Result<u32, ConfigError> {
    u32::try_from(count).map_err(|_| {
        ConfigError::new(key, format!("{count} mapping units"), "below 2^32 of them".to_owned())
    })
}

fn check_pages(geometry: &Geometry) -> Result<(), ConfigError> {
    let fits = !geometry.independent_plane_reads || geometry.page_units.is_power_of_two();
    let given = format!("{} bytes", u64::from(geometry.page_units) * geometry.unit_bytes());
    let allowed = "a power of two if flash.independent_plane_reads is true".to_owned();
    ConfigError::unless(fits, "flash.page", given, allowed)
}

fn check_superblock(geometry: &Geometry) -> Result<(), ConfigError> {
    if geometry.superblock_units_checked().is_some() {
        return Ok(());
    }
    let allowed = "so large that one block of each plane of all dies has below 2^31 mapping units";
    let given = format!("{}", geometry.pages_per_block);
    Err(ConfigError::new("flash.pages_per_block", given, allowed.to_owned()))
}

fn check_addresses(geometry: &Geometry) -> Result<(), ConfigError> {
    let tebibytes = (Geometry::UNITS_MAX * geometry.unit_bytes()) >> 40;
    let allowed = format!(
        "at most {tebibytes} TiB of flash with this ftl.mapping_unit (addresses have 32 bits)"
    );
    let fits = geometry.units() <= Geometry::UNITS_MAX;
    let given = format!("{} bytes of flash", geometry.bytes());
    ConfigError::unless(fits, "drive.capacity", given, allowed)
}

fn check_agreement(capacity: u64, spare: f64, geometry: &Geometry) -> Result<(), ConfigError> {
    let built = 1.0 - capacity as f64 / geometry.bytes() as f64;
    // Blocks come in whole superblocks only; 0.01 allows for rounded numbers.
    let tolerance = 0.01 + geometry.superblock_bytes() as f64 / geometry.bytes() as f64;
    let allowed = format!(
        "left out, or {built:.4}, which drive.capacity and flash.blocks_per_plane imply \
         ({} bytes of flash)",
        geometry.bytes()
    );
    let fits = (built - spare).abs() <= tolerance;
    ConfigError::unless(fits, "ftl.spare", format!("{spare}"), allowed)
}

/// Checks that collection has free superblocks in addition to those that the host may fill.
pub(super) fn check_room(profile: &Profile) -> Result<(), ConfigError> {
    let Profile { capacity, geometry, .. } = profile;
    let held = u64::from(profile.superblocks_held());
    let superblocks = u64::from(geometry.blocks_per_plane - profile.superblocks_apart());
    let usable = superblocks.saturating_sub(held) * geometry.superblock_bytes();
    let superblock = geometry.superblock_bytes();
    let allowed = format!(
        "more: frontiers and collection hold {held} superblocks of {superblock} bytes of the \
         {superblocks} there are, so that {usable} bytes are left for a capacity of {capacity}"
    );
    let given = format!("{:.4}", profile.spare());
    ConfigError::unless(*capacity < usable, "ftl.spare", given, allowed)
}

/// Checks that the buffer holds every page that is being filled, and one more.
pub(super) fn check_buffer(
    size: u64,
    geometry: &Geometry,
    placement: PlacementRule,
) -> Result<(), ConfigError> {
    let units = placement.units_open(geometry) + geometry.open_units();
    let least = units * geometry.unit_bytes();
    let allowed = format!("at least {least} bytes: what the pages being filled hold, and more");
    ConfigError::unless(size >= least, "buffer.size", format!("{size} bytes"), allowed)
}

impl Profile {
    /// The same drive with another capacity, and the same spare, dies, pages and times.
    ///
    /// It has fewer blocks per plane, a smaller SLC cache and less memory for the map. If fewer
    /// than 128 superblocks would be left, blocks get smaller instead, and their erase time in
    /// proportion, so that the erase time per byte stays. Their pages are halved while that leaves
    /// no rest; with a rest only if collection would have too little flash otherwise.
    ///
    /// # Errors
    /// A capacity that leaves too little flash for collection, or needs more than 32-bit addresses.
    pub fn scaled_to(&self, capacity: u64) -> Result<Self, ConfigError> {
        let mut scaled = self.clone();
        let flash = capacity as f64 / (1.0 - self.spare());
        let superblocks = flash / self.geometry.superblock_bytes() as f64;
        while superblocks * f64::from(shrink(&scaled, self)) < SUPERBLOCKS_SCALED_MIN as f64
            && scaled.geometry.pages_per_block.is_multiple_of(2)
            && can_halve(&scaled)
        {
            halve_blocks(&mut scaled);
        }
        let mut resized = self.resized(&scaled, capacity);
        while resized.is_err() && can_halve(&scaled) {
            halve_blocks(&mut scaled);
            resized = self.resized(&scaled, capacity);
        }
        resized
    }

    /// A drive of this capacity with the blocks of `scaled`.
    fn resized(&self, scaled: &Self, capacity: u64) -> Result<Self, ConfigError> {
        let (mut scaled, spare) = (scaled.clone(), self.spare());
        let ratio = capacity as f64 / self.capacity as f64;
        if scaled.map_cache > 0 {
            scaled.map_cache = ((scaled.map_cache as f64 * ratio) as u64).max(1);
        }
        if let Some(slc) = &mut scaled.slc {
            slc.size = ((slc.size as f64 * ratio) as u64).max(1);
            slc.check(&scaled.geometry)?;
        }
        let shape = Shape(Geometry { blocks_per_plane: 1, ..scaled.geometry.clone() });
        let slc = scaled.slc.as_ref();
        (scaled.capacity, scaled.geometry) = shape.size(Some(capacity), Some(spare), None, slc)?;
        check_room(&scaled).map_err(|_| {
            let held = u64::from(scaled.superblocks_held() + 1);
            let least = held as f64 * scaled.geometry.superblock_bytes() as f64 / spare;
            let mib = (least / f64::from(1 << 20)) as u64 + 1;
            let allowed = format!("at least about {} bytes ({mib} MiB) for this drive", mib << 20);
            ConfigError::new("drive.capacity", format!("{capacity} bytes"), allowed)
        })?;
        Ok(scaled)
    }
}

fn halve_blocks(profile: &mut Profile) {
    let (pages, erase) = (&mut profile.geometry.pages_per_block, &mut profile.timing.erase);
    *erase = ssdlab_time::Nanos::new(erase.get() * u64::from(*pages / 2) / u64::from(*pages));
    *pages /= 2;
}

fn shrink(scaled: &Profile, full: &Profile) -> u32 {
    full.geometry.pages_per_block / scaled.geometry.pages_per_block
}

/// Whether blocks of half the size hold whole chunks, and a page at one bit per cell.
fn can_halve(profile: &Profile) -> bool {
    let geometry = &profile.geometry;
    let half = Geometry { pages_per_block: geometry.pages_per_block / 2, ..geometry.clone() };
    let die_units = half.multi_page_units() * half.pages_per_block;
    half.pages_per_block >= 2
        && die_units.is_multiple_of(geometry.chunk_units)
        && profile.slc.as_ref().is_none_or(|slc| slc.check(&half).is_ok())
}
