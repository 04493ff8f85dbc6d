//! `Profile`: a drive as its TOML describes it, read strictly; `error` names the key that is wrong.

mod error;
mod link;
mod media;
mod policy;
mod reader;
mod scale;
mod slc;
mod trim;
mod units;

use ssdlab_time::Nanos;
use toml::{Table, Value};

pub use error::ConfigError;
pub use link::{Interface, Link};
use media::Media;
pub use policy::{Collection, PlacementRule, Relocation, VictimPolicy, WearLevelling};
use reader::{Section, nearest};
pub use slc::{Slc, SlcMode};
pub use trim::{ReadsBack, Trim};

use crate::nand::{Geometry, SlcTiming, Timing};

/// The controller's memory for writes on their way to flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its size in bytes.
    pub size: u64,
    /// Capacitors keep it over a power cut, so that a flush has nothing to wait for.
    pub power_loss_protection: bool,
    /// A drive that lies answers a flush at once although its buffer is volatile.
    pub honours_flush: bool,
    /// What a flush takes beyond a command's overhead and the programs that it waits for: the
    /// drive writes down what changed in its map, and a SATA drive's queue comes to rest.
    pub flush_overhead: Nanos,
    /// A unit of nothing but zeros goes no farther: the map knows of it, the flash does not.
    pub elides_zeros: bool,
}

/// How the controller divides long reads into portions that it works on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portions {
    /// A portion's size in bytes; 0: all of a command.
    pub bytes: u64,
    /// The most portions with scattered units that are worked on at the same time.
    pub limit: u32,
}

/// How many P/E cycles blocks survive: normally distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// On average.
    pub cycles: u32,
    /// Standard deviation, as a share of that.
    pub spread: f64,
}

/// One drive, complete and checked: everything that a twin is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// As on its label.
    pub model: String,
    /// Bytes that the host sees: whole mapping units.
    pub capacity: u64,
    /// The way to the host.
    pub link: Link,
    /// The flash and how addresses spread over it.
    pub geometry: Geometry,
    /// What flash operations and channel transfers cost.
    pub timing: Timing,
    /// P/E cycles that a block is sold for; `None`: not said.
    pub endurance: Option<u32>,
    /// When blocks fail; `None`: never.
    pub failure: Option<Failure>,
    /// Where the host's units go.
    pub placement: PlacementRule,
    /// How space is reclaimed.
    pub collection: Collection,
    /// The write buffer.
    pub buffer: Buffer,
    /// The SLC cache, if there is one.
    pub slc: Option<Slc>,
    /// How it trims.
    pub trim: Trim,
    /// Memory for the map, in bytes; 0: all of it is in memory.
    pub map_cache: u64,
    /// How far the controller reads ahead of a sequential reader, in bytes; 0: not at all.
    pub read_ahead: u64,
    /// How the controller divides long reads.
    pub portions: Portions,
}

/// The tables of a profile and their keys.
///
/// The comment above a key in its list says what it means: the reference of profiles is made of
/// these comments, and of what each key is read as (`tools/pages/profile_keys.py`).
const SECTIONS: [(&str, &[&str]); 7] = [
    ("drive", Drive::KEYS),
    ("link", Link::KEYS),
    ("flash", Media::KEYS),
    ("ftl", Ftl::KEYS),
    ("buffer", Buffer::KEYS),
    ("slc", Slc::KEYS),
    ("trim", Trim::KEYS),
];

impl Profile {
    /// Reads a profile's text.
    ///
    /// # Errors
    /// The first key that is unknown, missing, of the wrong kind, out of range, or at odds with
    /// the others, with what it may be.
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
        assemble(drive, link, media, &ftl, (buffer, slc, trim))
    }

    /// Mapping units that the host sees.
    pub fn logical_units(&self) -> u64 {
        self.capacity / self.geometry.unit_bytes()
    }

    /// Hidden flash as a share of ALL flash, by the geometry as built; without what is set apart
    /// for a static SLC cache.
    pub fn spare(&self) -> f64 {
        let superblocks = self.geometry.blocks_per_plane - self.superblocks_apart();
        let flash = u64::from(superblocks) * self.geometry.superblock_bytes();
        1.0 - self.capacity as f64 / flash as f64
    }

    /// Superblocks that are set apart for a static SLC cache.
    pub fn superblocks_apart(&self) -> u32 {
        self.slc.as_ref().map_or(0, |slc| slc.superblocks_apart(&self.geometry))
    }

    /// Superblocks that never hold all the data they could: frontiers, and collection's reserve.
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
        // As on its label.
        "model",
        // What the host sees; follows from spare and blocks if left out.
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
        // The controller's memory for writes on their way to flash.
        "size",
        // Capacitors keep it over a power cut: a flush has nothing to wait for.
        "power_loss_protection",
        // false: a drive that lies answers a flush at once, its buffer being volatile.
        "honours_flush",
        // What a flush takes beyond overhead and programs.
        "flush_overhead",
        // A unit of nothing but zeros is kept in the map alone.
        "elides_zeros",
    ];

    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let buffer = Self {
            size: section.size("size")?.ok_or(ConfigError::missing("buffer.size"))?,
            power_loss_protection: section.flag("power_loss_protection")?.unwrap_or(false),
            honours_flush: section.flag("honours_flush")?.unwrap_or(true),
            flush_overhead: section.time("flush_overhead")?.unwrap_or(Nanos::ZERO),
            elides_zeros: section.flag("elides_zeros")?.unwrap_or(false),
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
        // What the map knows as one.
        "mapping_unit",
        // Consecutive bytes on one die; left out: a multi-plane page.
        "chunk",
        // Hidden flash / ALL flash; follows from capacity and blocks if left out.
        "spare",
        // Where the units of the host go (docs/models/placement.md).
        "placement",
        // Streams with superblocks of their own, up to 128; required by "streams".
        "streams",
        // How far the controller reads ahead of a sequential reader; left out: not at all.
        "read_ahead",
        // The portions that a long read is divided into; left out: all of a command.
        "read_portion",
        // So many portions that do not lie in order are worked on at the same time.
        "read_portions",
        // Memory for the map; left out: all of it is in memory.
        "map_cache",
        // Which superblock is collected (docs/models/collection.md).
        "victim",
        // Superblocks that "d-choices" picks at random, 1000 at most.
        "choices",
        // Moved units go to superblocks of their own, or where the host writes.
        "relocation",
        // Collection starts when no more superblocks than this are free.
        "reserve",
        // While the drive is idle it goes on until so many are free; left out: it does not.
        "idle_reserve",
        // How long the drive must have been idle for that.
        "idle_after",
        // none: free superblocks in turn; dynamic: least erased first; static: cold data moves too.
        "wear_levelling",
        // Erases behind the most worn superblock at which "static" collects one.
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
    };
    scale::check_room(&profile)?;
    Ok(profile)
}

fn check_whole_units(key: &str, bytes: u64, geometry: &Geometry) -> Result<(), ConfigError> {
    if bytes.is_multiple_of(geometry.unit_bytes()) {
        return Ok(());
    }
    let allowed = format!("a multiple of ftl.mapping_unit, {} bytes", geometry.unit_bytes());
    Err(ConfigError::new(key, format!("{bytes} bytes"), allowed))
}
