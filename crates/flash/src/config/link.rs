//! `Link`: the link between host and controller, and the latency of commands.

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
    /// Bytes per second.
    pub bandwidth: u64,
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
        // Of each direction.
        "bandwidth",
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
        let link = Self {
            interface,
            bandwidth: section.rate("bandwidth")?.ok_or(missing)?,
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
    if part <= whole {
        return Ok(());
    }
    let allowed = format!("at most the overhead that it is a part of, {} ns", whole.get());
    Err(ConfigError::new(key, format!("{} ns", part.get()), allowed))
}
