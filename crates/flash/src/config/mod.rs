//! `Profile`: the description of a drive in TOML, parsed strictly; errors name the key.

mod error;
mod link;
mod media;
mod policy;
mod power;
mod reader;
mod scale;
mod slc;
mod thermal;
mod units;

use ssdlab_time::Nanos;
use toml::{Table, Value};

pub use error::ConfigError;
pub use link::{Interface, Link, ReadsBack, Trim};
use media::Media;
pub use policy::{Collection, Pacing, PlacementRule, Relocation, VictimPolicy, WearLevelling};
pub use power::PowerState;
use reader::{Section, nearest};
pub use slc::{Folding, Slc, SlcMode};
pub use thermal::{Thermal, ThrottleStep};

use crate::nand::{Geometry, SlcTiming, Timing};

/// The controller's memory for writes on their way to flash.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the profile")]
pub struct Buffer {
    /// Size in bytes.
    pub size: u64,
    /// Capacitors save it at a power cut, so that a flush does not wait for programs.
    pub power_loss_protection: bool,
    /// If false, a flush completes at once although the buffer is volatile.
    pub honours_flush: bool,
    /// Latency of a flush in addition to a command's overhead and the programs that it waits for:
    /// the drive saves changes to its map, and a SATA drive drains its queue.
    pub flush_overhead: Nanos,
    /// A unit of zeros is recorded in the map only, and not written to flash.
    pub elides_zeros: bool,
    /// Writes in order that each cover a part of a unit become one write of it.
    pub merges_writes: bool,
}

/// How the controller divides long reads into portions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portions {
    /// Size of a portion in bytes; 0: the whole command.
    pub bytes: u64,
    /// The most portions with scattered units that are worked on at the same time.
    pub limit: u32,
}

/// The number of P/E cycles after which blocks fail: normally distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// The mean.
    pub cycles: u32,
    /// The standard deviation as a share of the mean.
    pub spread: f64,
}

/// The complete, validated description of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name on the label.
    pub model: String,
    /// Bytes that the host sees, a multiple of the mapping unit.
    pub capacity: u64,
    /// The link to the host.
    pub link: Link,
    /// The flash, and how addresses are striped over it.
    pub geometry: Geometry,
    /// Durations of flash operations and channel transfers.
    pub timing: Timing,
    /// Rated P/E cycles of a block; `None`: not given.
    pub endurance: Option<u32>,
    /// When blocks fail; `None`: never.
    pub failure: Option<Failure>,
    /// Where host units are written.
    pub placement: PlacementRule,
    /// How space is reclaimed.
    pub collection: Collection,
    /// The write buffer.
    pub buffer: Buffer,
    /// The SLC cache, if there is one.
    pub slc: Option<Slc>,
    /// Trims.
    pub trim: Trim,
    /// Memory for the map, in bytes; 0: the whole map is in memory.
    pub map_cache: u64,
    /// How far the controller reads ahead of a sequential reader, in bytes; 0: not at all.
    pub read_ahead: u64,
    /// How the controller divides long reads.
    pub portions: Portions,
    /// The power states that it enters when idle, in order of their idle times.
    pub power_states: Vec<PowerState>,
    /// How it warms up and throttles; `None`: not modelled.
    pub thermal: Option<Thermal>,
}

/// The tables of a profile and their keys.
///
/// The comment above a key in its list is its documentation: `tools/pages/profile_keys.py` builds
/// the reference of profiles from these comments and from how each key is read.
const SECTIONS: [(&str, &[&str]); 9] = [
    ("drive", Drive::KEYS),
    ("link", Link::KEYS),
    ("flash", Media::KEYS),
    ("ftl", Ftl::KEYS),
    ("buffer", Buffer::KEYS),
    ("slc", Slc::KEYS),
    ("trim", Trim::KEYS),
    ("power", PowerState::KEYS),
    ("thermal", Thermal::KEYS),
];

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// The first key that is unknown, missing, of the wrong type, out of range, or inconsistent
    /// with others, and its allowed values.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let mut table: Table = text.parse().map_err(|e| ConfigError::syntax(text, &e))?;
        let sections: Result<Vec<Section>, ConfigError> =
            SECTIONS.iter().map(|(name, keys)| Section::take(&mut table, name, keys)).collect();
        let mut sections = sections?.into_iter();
        if let Some(key) = table.keys().next() {
            return Err(unknown_section(key, table.get(key)));
        }
        let mut next = || sections.next().expect("a section for each name");
        let drive = Drive::read(next())?;
        let link = Link::read(next(), drive.interface)?;
        let media = Media::read(next())?;
        let ftl = Ftl::read(next())?;
        let buffer = Buffer::read(next())?;
        let slc = Slc::read(next())?;
        let trim = Trim::read(next())?;
        let power_states = PowerState::read(next())?;
        let thermal = Thermal::read(next())?;
        let profile = assemble(drive, link, media, &ftl, (buffer, slc, trim))?;
        Ok(Self { power_states, thermal, ..profile })
    }

    /// Mapping units that the host sees.
    pub fn logical_units(&self) -> u64 {
        self.capacity / self.geometry.unit_bytes()
    }

    /// Hidden flash / ALL flash, computed from the geometry; without the superblocks of a static
    /// SLC cache.
    pub fn spare(&self) -> f64 {
        let superblocks = self.geometry.blocks_per_plane - self.superblocks_apart();
        let flash = u64::from(superblocks) * self.geometry.superblock_bytes();
        1.0 - self.capacity as f64 / flash as f64
    }

    /// The dimensions of the twin by name; units, pages and superblocks are counts, or have bytes.
    pub fn dimensions(&self) -> [(&'static str, u64); 15] {
        let geometry = &self.geometry;
        let unit = geometry.unit_bytes();
        [
            ("capacity_bytes", self.capacity),
            ("flash_bytes", geometry.bytes()),
            ("channels", u64::from(geometry.channels)),
            ("dies", u64::from(geometry.dies())),
            ("planes", u64::from(geometry.planes)),
            ("page_bytes", u64::from(geometry.page_units) * unit),
            ("chunk_bytes", u64::from(geometry.chunk_units) * unit),
            ("stripe_bytes", u64::from(geometry.stripe_units()) * unit),
            ("superblock_bytes", geometry.superblock_bytes()),
            ("superblocks", u64::from(geometry.blocks_per_plane)),
            ("buffer_bytes", self.buffer.size),
            ("slc_bytes", self.slc.as_ref().map_or(0, |slc| slc.bytes(geometry))),
            ("unit_bytes", unit),
            ("superblock_units", u64::from(geometry.superblock_units())),
            ("pages_per_block", u64::from(geometry.pages_per_block)),
        ]
    }

    /// Superblocks of a static SLC cache.
    pub fn superblocks_apart(&self) -> u32 {
        self.slc.as_ref().map_or(0, |slc| slc.superblocks_apart(&self.geometry))
    }

    /// Superblocks that are never full of data: frontiers, and collection's reserve.
    pub fn superblocks_held(&self) -> u32 {
        let dynamic = |slc: &Slc| slc.mode == SlcMode::Dynamic;
        self.placement.superblocks_open()
            + self.collection.superblocks_held()
            + u32::from(self.slc.as_ref().is_some_and(dynamic))
    }
}

fn unknown_section(key: &str, value: Option<&Value>) -> ConfigError {
    let kind = if value.is_some_and(Value::is_table) { "table" } else { "key" };
    let names = SECTIONS.map(|(name, _)| name);
    ConfigError::UnknownKey {
        key: format!("{key} (a {kind} at the top)"),
        near: nearest(key, &names),
        known: names.map(|name| format!("[{name}]")).join(", "),
    }
}

struct Drive {
    model: String,
    capacity: Option<u64>,
    interface: Interface,
}

impl Drive {
    const KEYS: &[&str] = &[
        // The name on the label.
        "model",
        // The size that the host sees; follows from spare and blocks if left out.
        "capacity",
        // nvme: both directions at once (PCI Express); sata: one at a time.
        "interface",
    ];

    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let model = section.text("model")?.ok_or(ConfigError::missing("drive.model"))?;
        let capacity = section.size("capacity")?;
        let interface = match section
            .word("interface", &["nvme", "sata"])?
            .ok_or(ConfigError::missing("drive.interface"))?
        {
            "nvme" => Interface::Nvme,
            _ => Interface::Sata,
        };
        Ok(Self { model, capacity, interface })
    }
}

impl Buffer {
    const KEYS: &[&str] = &[
        // Size of the controller's memory for writes on their way to flash.
        "size",
        // Capacitors save it at a power cut: a flush does not wait for programs.
        "power_loss_protection",
        // false: a flush completes at once although the buffer is volatile.
        "honours_flush",
        // Latency of a flush in addition to overhead and programs.
        "flush_overhead",
        // A unit of zeros is recorded in the map only.
        "elides_zeros",
        // Writes in order that each cover a part of a mapping unit become one write of the unit.
        "merges_writes",
    ];

    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let buffer = Self {
            size: section.size("size")?.ok_or(ConfigError::missing("buffer.size"))?,
            power_loss_protection: section.flag("power_loss_protection")?.unwrap_or(false),
            honours_flush: section.flag("honours_flush")?.unwrap_or(true),
            flush_overhead: section.time("flush_overhead")?.unwrap_or(Nanos::ZERO),
            elides_zeros: section.flag("elides_zeros")?.unwrap_or(false),
            merges_writes: section.flag("merges_writes")?.unwrap_or(false),
        };
        Ok(buffer)
    }
}

struct Ftl {
    mapping_unit: u64,
    chunk: Option<u64>,
    spare: Option<f64>,
    read_ahead: u64,
    portions: Portions,
    map_cache: u64,
    placement: PlacementRule,
    collection: Collection,
}

impl Ftl {
    const KEYS: &[&str] = &[
        // The smallest amount of data that the map translates.
        "mapping_unit",
        // Consecutive bytes on one die; left out: a multi-plane page.
        "chunk",
        // Hidden flash / ALL flash; follows from capacity and blocks if left out.
        "spare",
        // Where host units are written (docs/models/placement.md).
        "placement",
        // Number of streams with superblocks of their own, up to 128; required by "streams".
        "streams",
        // How far the controller reads ahead of a sequential reader; left out: not at all.
        "read_ahead",
        // Size of the portions that a long read is divided into; left out: the whole command.
        "read_portion",
        // The most portions with scattered units that are worked on at the same time.
        "read_portions",
        // Memory for the map; left out: the whole map is in memory.
        "map_cache",
        // The superblock to collect (docs/models/collection.md).
        "victim",
        // Superblocks that "d-choices" picks at random, 1000 at most.
        "choices",
        // Relocated units go to superblocks of their own, or where the host writes.
        "relocation",
        // unit: relocations keep pace with the host; victim: a victim is emptied at once.
        "pacing",
        // Collection starts when at most this many superblocks are free.
        "reserve",
        // Collection continues in idle time until this many are free; left out: it does not.
        "idle_reserve",
        // Idle time before collection in idle time starts.
        "idle_after",
        // none: free superblocks in turn; dynamic: least erased first; static: cold data moves too.
        "wear_levelling",
        // Difference to the highest erase count at which "static" collects a superblock.
        "wear_spread",
    ];

    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let ftl = Self {
            mapping_unit: section.size("mapping_unit")?.unwrap_or(4096),
            chunk: section.size("chunk")?,
            spare: section.share("spare")?,
            read_ahead: section.size("read_ahead")?.unwrap_or(0),
            portions: Portions {
                bytes: section.size("read_portion")?.unwrap_or(0),
                limit: section.count("read_portions")?.unwrap_or(1),
            },
            map_cache: section.size("map_cache")?.unwrap_or(0),
            placement: PlacementRule::read(&mut section)?,
            collection: Collection::read(&mut section)?,
        };
        Ok(ftl)
    }
}

type Memories = (Buffer, Option<(Slc, SlcTiming)>, Trim);

fn assemble(
    drive: Drive,
    link: Link,
    mut media: Media,
    ftl: &Ftl,
    (buffer, slc, trim): Memories,
) -> Result<Profile, ConfigError> {
    let (slc, slc_timing) = slc.unzip();
    let fastest = media.timing.read.iter().min().copied().unwrap_or_default();
    media.timing.slc = slc_timing.map(|slc| SlcTiming {
        read: if slc.read == Nanos::ZERO { fastest } else { slc.read },
        ..slc
    });
    media.timing.keeps_page |= ftl.placement == PlacementRule::Packed;
    let shape = scale::Shape::check(&media, ftl, slc.as_ref())?;
    let (capacity, geometry) =
        shape.size(drive.capacity, ftl.spare, media.blocks_per_plane, slc.as_ref())?;
    scale::check_buffer(buffer.size, &geometry, ftl.placement)?;
    check_whole_units("link.max_transfer", link.max_transfer, &geometry)?;
    check_whole_units("ftl.read_portion", ftl.portions.bytes, &geometry)?;
    let profile = Profile {
        model: drive.model,
        capacity,
        link,
        geometry,
        timing: media.timing,
        endurance: media.endurance,
        failure: media.failure,
        placement: ftl.placement,
        collection: ftl.collection,
        buffer,
        slc,
        trim,
        map_cache: ftl.map_cache,
        read_ahead: ftl.read_ahead,
        portions: ftl.portions,
        power_states: Vec::new(),
        thermal: None,
    };
    scale::check_room(&profile)?;
    Ok(profile)
}

fn check_whole_units(key: &str, bytes: u64, geometry: &Geometry) -> Result<(), ConfigError> {
    let unit = geometry.unit_bytes();
    let allowed = format!("a multiple of ftl.mapping_unit, {unit} bytes");
    ConfigError::unless(bytes.is_multiple_of(unit), key, format!("{bytes} bytes"), allowed)
}
