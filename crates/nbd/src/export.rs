//! `Export`: a served drive, and the metadata contexts of its blocks.

use ssdlab_engine::BlockStatusFn;
use ssdlab_wire::Tls;

/// Status flags of `base:allocation`.
const NBD_STATE_HOLE: u32 = 1;
const NBD_STATE_ZERO: u32 = 1 << 1;
/// Status of `x-ssdlab:wear` where a unit is not in flash.
const NOT_IN_FLASH: u32 = u32::MAX;

/// A metadata context: what `NBD_CMD_BLOCK_STATUS` reports of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaContext {
    /// The protocol's own: whether it is a hole, and reads as zeros.
    Allocation,
    /// Whether the drive maps it: 1 or 0.
    Valid,
    /// The erase count of the block that holds it.
    Wear,
}

impl MetaContext {
    pub const ALL: [Self; 3] = [Self::Allocation, Self::Valid, Self::Wear];

    pub fn name(self) -> &'static str {
        match self {
            Self::Allocation => "base:allocation",
            Self::Valid => "x-ssdlab:valid",
            Self::Wear => "x-ssdlab:wear",
        }
    }

    /// The status of a unit. `zeros`: unmapped units read as zeros.
    pub fn status_fn(self, zeros: bool) -> BlockStatusFn {
        match self {
            Self::Allocation if zeros => |drive, unit| {
                if drive.is_mapped(unit) { 0 } else { NBD_STATE_HOLE | NBD_STATE_ZERO }
            },
            Self::Allocation => |_, _| 0,
            Self::Valid => |drive, unit| u32::from(drive.is_mapped(unit)),
            Self::Wear => |drive, unit| drive.erase_count_of(unit).unwrap_or(NOT_IN_FLASH),
        }
    }

    /// Whether it matches a query; when listing, `x-ssdlab:` matches all of that namespace.
    pub fn matches(self, query: &[u8], listing: bool) -> bool {
        let name = self.name().as_bytes();
        let in_namespace = listing && query.last() == Some(&b':') && name.starts_with(query);
        query == name || in_namespace
    }
}

/// A served drive, as clients see it.
#[derive(Clone, Debug)]
pub struct Export {
    pub(crate) name: String,
    /// The drive's description.
    pub description: String,
    pub(crate) capacity: u64,
    /// The preferred block size.
    pub(crate) preferred_bytes: u32,
    /// If set, clients must use TLS.
    pub(crate) tls: Option<Tls>,
}

impl Export {
    /// An export; `unit_bytes` is the drive's mapping unit.
    pub fn new(name: &str, description: &str, capacity: u64, unit_bytes: u64) -> Self {
        let preferred_bytes = unit_bytes.max(4096) as u32;
        let (name, description) = (name.into(), description.into());
        Self { name, description, capacity, preferred_bytes, tls: None }
    }

    /// The same export, for clients that use TLS only.
    #[must_use]
    pub fn encrypted(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Whether it has this name; it is also the default export, with the empty name.
    pub(crate) fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}
