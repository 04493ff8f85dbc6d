//! `Export`: what clients see of a served drive.

use ssdlab_engine::BlockStatusFn;
use ssdlab_wire::Tls;

const HOLE_AND_ZERO: u32 = 0b11;
/// In place of erases: the unit lies in no block.
const NOT_IN_FLASH: u32 = u32::MAX;

/// What block status can tell of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaContext {
    /// The protocol's own: whether it is a hole that reads as zeros.
    Allocation,
    /// Whether the drive's map has it: 1 or 0.
    Valid,
    /// How often the block was erased that holds it.
    Wear,
}

impl MetaContext {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Allocation, Self::Valid, Self::Wear];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocation => "base:allocation",
            Self::Valid => "x-ssdlab:valid",
            Self::Wear => "x-ssdlab:wear",
        }
    }

    /// What it tells of a unit; `zeros` where all that is not mapped reads as zeros.
    pub fn told(self, zeros: bool) -> BlockStatusFn {
        match self {
            Self::Allocation if zeros => |drive, unit| {
                if drive.is_mapped(unit) { 0 } else { HOLE_AND_ZERO }
            },
            Self::Allocation => |_, _| 0,
            Self::Valid => |drive, unit| u32::from(drive.is_mapped(unit)),
            Self::Wear => |drive, unit| drive.erase_count_of(unit).unwrap_or(NOT_IN_FLASH),
        }
    }

    /// Whether a query means it; in a listing `x-ssdlab:` means all of that namespace.
    pub fn is_asked(self, query: &[u8], listing: bool) -> bool {
        let name = self.name().as_bytes();
        let in_namespace = listing && query.last() == Some(&b':') && name.starts_with(query);
        query == name || in_namespace
    }
}

/// A served drive's name, size and words.
#[derive(Clone, Debug)]
pub struct Export {
    name: String,
    description: String,
    capacity: u64,
    preferred_bytes: u32,
    tls: Option<Tls>,
}

impl Export {
    /// An export; `unit_bytes` is what the drive likes best.
    pub fn new(name: &str, description: &str, capacity: u64, unit_bytes: u64) -> Self {
        let preferred_bytes = unit_bytes.max(4096) as u32;
        let (name, description) = (name.into(), description.into());
        Self { name, description, capacity, preferred_bytes, tls: None }
    }

    /// The same for clients that encrypt, and for no others.
    #[must_use]
    pub fn encrypted(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// How clients have to encrypt; none where they need not.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its size in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Requests of this many bytes suit it best.
    pub fn preferred_bytes(&self) -> u32 {
        self.preferred_bytes
    }

    /// Whether a client means it: by its name, or by none.
    pub fn is_named(&self, asked: &[u8]) -> bool {
        asked.is_empty() || asked == self.name.as_bytes()
    }
}
