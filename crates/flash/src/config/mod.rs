//! `Profile`: a drive as its TOML describes it, read strictly; `error` names the key that is wrong.

mod error;
mod policy;
mod reader;
mod scale;
mod slc;
mod trim;
mod units;

use ssdlab_time::Nanos;
use toml::{Table, Value};

pub use error::ConfigError;
pub use policy::{Collection, Relocation, VictimPolicy, WearLevelling};
use reader::{Section, nearest};
pub use slc::{Slc, SlcMode};
pub use trim::{ReadsBack, Trim};

use crate::nand::{Geometry, SlcTiming, Timing};

/// Whether both directions of the link move data at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// PCI Express: full duplex.
    Nvme,
    /// SATA: half duplex.
    Sata,
}

/// The way between host and controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Full or half duplex.
    pub interface: Interface,
    /// Bytes per second.
    pub bandwidth: u64,
    /// Time that a read command spends outside flash, channel and link.
    pub read_overhead: Nanos,
    /// The same for a write, a trim or a flush.
    pub write_overhead: Nanos,
    /// The longest command in bytes; the host splits longer requests.
    pub max_transfer: u64,
}

/// The controller's memory for writes on their way to flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its size in bytes.
    pub size: u64,
    /// Capacitors keep it over a power cut, so that a flush has nothing to wait for.
    pub power_loss_protection: bool,
    /// A drive that lies answers a flush at once although its buffer is volatile.
    pub honours_flush: bool,
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
}

/// The tables of a profile and their keys.
const SECTIONS: [(&str, &[&str]); 7] = [
    ("drive", &["model", "capacity", "interface"]),
    ("link", &["bandwidth", "read_overhead", "write_overhead", "max_transfer"]),
    ("flash", Media::KEYS),
    ("ftl", Ftl::KEYS),
    ("buffer", &["size", "power_loss_protection", "honours_flush"]),
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
        let link = read_link(next(), drive.interface)?;
        let media = Media::read(next())?;
        let ftl = Ftl::read(next())?;
        let buffer = read_buffer(next())?;
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
        self.collection.superblocks_held() + u32::from(self.slc.as_ref().is_some_and(dynamic))
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
    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let model = section.text("model")?.ok_or(ConfigError::missing("drive.model"))?;
        let capacity = section.size("capacity")?;
        let interface = match section.word("interface", &["nvme", "sata"])? {
            Some("nvme") => Interface::Nvme,
            Some(_) => Interface::Sata,
            None => return Err(ConfigError::missing("drive.interface")),
        };
        Ok(Self { model, capacity, interface })
    }
}

fn read_link(mut section: Section, interface: Interface) -> Result<Link, ConfigError> {
    let link = Link {
        interface,
        bandwidth: section.rate("bandwidth")?.ok_or(ConfigError::missing("link.bandwidth"))?,
        read_overhead: section.time("read_overhead")?.unwrap_or(Nanos::ZERO),
        write_overhead: section.time("write_overhead")?.unwrap_or(Nanos::ZERO),
        max_transfer: section.size("max_transfer")?.unwrap_or(128 << 10),
    };
    Ok(link)
}

fn read_buffer(mut section: Section) -> Result<Buffer, ConfigError> {
    let buffer = Buffer {
        size: section.size("size")?.ok_or(ConfigError::missing("buffer.size"))?,
        power_loss_protection: section.flag("power_loss_protection")?.unwrap_or(false),
        honours_flush: section.flag("honours_flush")?.unwrap_or(true),
    };
    Ok(buffer)
}

struct Media {
    channels: u32,
    dies_per_channel: u32,
    planes: u32,
    page: u64,
    pages_per_block: u32,
    blocks_per_plane: Option<u32>,
    endurance: Option<u32>,
    failure: Option<Failure>,
    timing: Timing,
}

impl Media {
    const KEYS: &[&str] = &[
        "channels",
        "dies_per_channel",
        "planes",
        "page",
        "pages_per_block",
        "blocks_per_plane",
        "endurance",
        "failure_cycles",
        "failure_spread",
        "read",
        "program",
        "erase",
        "suspend",
        "channel_bandwidth",
    ];

    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let missing = ConfigError::missing;
        let media = Self {
            channels: section.count("channels")?.ok_or(missing("flash.channels"))?,
            dies_per_channel: section
                .count("dies_per_channel")?
                .ok_or(missing("flash.dies_per_channel"))?,
            planes: section.count("planes")?.unwrap_or(1),
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
                slc: None,
                channel_bandwidth: section
                    .rate("channel_bandwidth")?
                    .ok_or(missing("flash.channel_bandwidth"))?,
            },
        };
        Ok(media)
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

struct Ftl {
    mapping_unit: u64,
    chunk: Option<u64>,
    spare: Option<f64>,
    read_ahead: u64,
    map_cache: u64,
    collection: Collection,
}

impl Ftl {
    const KEYS: &[&str] = &[
        "mapping_unit",
        "chunk",
        "spare",
        "placement",
        "read_ahead",
        "map_cache",
        "victim",
        "choices",
        "relocation",
        "reserve",
        "idle_reserve",
        "idle_after",
        "wear_levelling",
        "wear_spread",
    ];

    fn read(mut section: Section) -> Result<Self, ConfigError> {
        let ftl = Self {
            mapping_unit: section.size("mapping_unit")?.unwrap_or(4096),
            chunk: section.size("chunk")?,
            spare: section.share("spare")?,
            read_ahead: section.size("read_ahead")?.unwrap_or(0),
            map_cache: section.size("map_cache")?.unwrap_or(0),
            collection: Collection::read(&mut section)?,
        };
        section.word("placement", &["striped"])?;
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
    let shape = scale::Shape::check(&media, ftl, slc.as_ref())?;
    let (capacity, geometry) =
        shape.size(drive.capacity, ftl.spare, media.blocks_per_plane, slc.as_ref())?;
    scale::check_buffer(buffer.size, &geometry)?;
    if !link.max_transfer.is_multiple_of(geometry.unit_bytes()) {
        let allowed = format!("a multiple of ftl.mapping_unit, {} bytes", geometry.unit_bytes());
        let given = format!("{} bytes", link.max_transfer);
        return Err(ConfigError::new("link.max_transfer", given, allowed));
    }
    let profile = Profile {
        model: drive.model,
        capacity,
        link,
        geometry,
        timing: media.timing,
        endurance: media.endurance,
        failure: media.failure,
        collection: ftl.collection,
        buffer,
        slc,
        trim,
        map_cache: ftl.map_cache,
        read_ahead: ftl.read_ahead,
    };
    scale::check_room(&profile)?;
    Ok(profile)
}
