//! `Link`: the link between host and controller, and the latency of commands; `Trim`: of trims.

use ssdlab_time::Nanos;

use super::ConfigError;
use super::reader::Section;

/// Whether the link transfers in both directions at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// PCI Express: full duplex.
    Nvme,
    /// SATA: half duplex.
    Sata,
}

/// The link between host and controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Full or half duplex.
    pub interface: Interface,
    /// Bytes per second to the host.
    pub bandwidth: u64,
    /// Bytes per second from the host.
    pub write_bandwidth: u64,
    /// Latency of a read command outside flash, channel and link.
    pub read_overhead: Nanos,
    /// The same for a write, a trim or a flush.
    pub write_overhead: Nanos,
    /// The part of the overhead that occupies the controller's processor: the next command waits.
    pub read_command: Nanos,
    /// The same for a write.
    pub write_command: Nanos,
    /// The longest command in bytes; the host splits longer requests.
    pub max_transfer: u64,
}

impl Link {
    pub(super) const KEYS: &[&str] = &[
        // Of each direction, with what the controller does with the data on its way.
        "bandwidth",
        // From the host, if it differs.
        "write_bandwidth",
        // Latency of a read command outside flash, channel and link.
        "read_overhead",
        // The same for a write, a trim or a flush.
        "write_overhead",
        // The part of it that occupies the controller's single processor: the next command waits.
        "read_command",
        // The same for a write.
        "write_command",
        // The longest command; the host splits longer requests.
        "max_transfer",
    ];

    pub(super) fn read(mut section: Section, interface: Interface) -> Result<Self, ConfigError> {
        let missing = ConfigError::missing("link.bandwidth");
        let bandwidth = section.rate("bandwidth")?.ok_or(missing)?;
        let link = Self {
            interface,
            bandwidth,
            write_bandwidth: section.rate("write_bandwidth")?.unwrap_or(bandwidth),
            read_overhead: section.time("read_overhead")?.unwrap_or(Nanos::ZERO),
            write_overhead: section.time("write_overhead")?.unwrap_or(Nanos::ZERO),
            read_command: section.time("read_command")?.unwrap_or(Nanos::ZERO),
            write_command: section.time("write_command")?.unwrap_or(Nanos::ZERO),
            max_transfer: section.size("max_transfer")?.unwrap_or(128 << 10),
        };
        check_part("link.read_command", link.read_command, link.read_overhead)?;
        check_part("link.write_command", link.write_command, link.write_overhead)?;
        Ok(link)
    }
}

/// Checks that the processor time is a part of the overhead.
fn check_part(key: &str, part: Nanos, whole: Nanos) -> Result<(), ConfigError> {
    let allowed = format!("at most the overhead that it is a part of, {} ns", whole.get());
    ConfigError::unless(part <= whole, key, format!("{} ns", part.get()), allowed)
}

/// What reads of trimmed addresses return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsBack {
    /// Zeros, as most drives guarantee.
    Zeros,
    /// The old data: the drive need not keep it, but has not removed it.
    OldData,
}

/// The trims of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Latency of each trim in addition to the command's overhead.
    pub time: Nanos,
    /// Additional latency per GiB that it covers, for the map.
    pub time_per_gib: Nanos,
    /// What reads return. The twin stores no data, so the server must implement this.
    pub reads_back: ReadsBack,
}

impl Trim {
    pub(super) const KEYS: &[&str] = &[
        // Latency of each trim in addition to the command's overhead.
        "time",
        // Additional latency for each GiB that it covers.
        "time_per_gib",
        // What reads of trimmed addresses return.
        "reads_back",
    ];

    pub(super) fn read(mut section: Section) -> Result<Self, ConfigError> {
        Ok(Self {
            time: section.time("time")?.unwrap_or(Nanos::ZERO),
            time_per_gib: section.time("time_per_gib")?.unwrap_or(Nanos::ZERO),
            reads_back: match section.word("reads_back", &["zeros", "old data"])?.unwrap_or("zeros")
            {
                "old data" => ReadsBack::OldData,
                _ => ReadsBack::Zeros,
            },
        })
    }

    /// The latency of a trim of `bytes` bytes.
    pub fn time_of(&self, bytes: u64) -> Nanos {
        let per_gib = (u128::from(self.time_per_gib.get()) * u128::from(bytes)) >> 30;
        self.time + Nanos::new(per_gib as u64)
    }
}
