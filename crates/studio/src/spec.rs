//! `Spec`: the profile, changes and seed of a twin, as JSON text.

use std::collections::BTreeMap;

use serde::Deserialize;
use ssdlab_flash::Profile;
use toml::{Table, Value};

/// Maximum memory of a twin. A 32-bit module has 4 GiB for all twins, and each snapshot needs as
/// much as its twin.
const MEMORY_MAX: u64 = 512 << 20;

/// Changes of a profile: new values by table and key; `None` removes the key, or the table.
pub type Overrides = BTreeMap<String, Option<BTreeMap<String, Option<Value>>>>;

/// A twin to be made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The profile's text (TOML).
    pub profile: String,
    /// Changes of it, made before it is scaled.
    #[serde(default)]
    pub overrides: Overrides,
    /// The size that the host sees; `None`: the profile's.
    #[serde(default)]
    pub capacity_bytes: Option<u64>,
    /// The seed of the model's random choices.
    #[serde(default)]
    pub seed: u64,
    /// Memory for snapshots, in bytes.
    #[serde(default = "snapshot_bytes")]
    pub snapshot_bytes: u64,
    /// Ticks between two snapshots at first; `None`: enough to take little of the time.
    #[serde(default)]
    pub snapshot_ticks: Option<u64>,
}

fn snapshot_bytes() -> u64 {
    64 << 20
}

impl Spec {
    /// Parses the JSON text of a specification.
    ///
    /// # Errors
    /// The text is not of that form.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the specification: {error}"))
    }

    /// The profile with its changes, scaled.
    pub fn profile(&self) -> Result<Profile, String> {
        let text = edit(&self.profile, &self.overrides)?;
        let mut profile = Profile::from_toml(&text).map_err(|error| error.to_string())?;
        if let Some(bytes) = self.capacity_bytes {
            profile = profile.scaled_to(bytes).map_err(|error| error.to_string())?;
        }
        let bytes = memory_bytes(&profile);
        if bytes > MEMORY_MAX {
            return Err(format!(
                "a twin of {} bytes takes {} MiB of memory; at most {} MiB are allowed: give a \
                 smaller capacity_bytes",
                profile.capacity,
                bytes >> 20,
                MEMORY_MAX >> 20,
            ));
        }
        Ok(profile)
    }
}

/// A profile's text with changes.
fn edit(profile: &str, overrides: &Overrides) -> Result<String, String> {
    if overrides.is_empty() {
        return Ok(profile.to_owned());
    }
    let mut tables: Table = profile.parse().map_err(|error| format!("the profile: {error}"))?;
    for (name, changes) in overrides {
        let Some(changes) = changes else {
            tables.remove(name);
            continue;
        };
        let table = tables.entry(name).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(table) = table else {
            return Err(format!("overrides: {name} is not a table of the profile"));
        };
        for (key, value) in changes {
            match value {
                None => table.remove(key),
                Some(value) => table.insert(key.clone(), value.clone()),
            };
        }
    }
    Ok(tables.to_string())
}

/// About how much memory a twin takes: its maps, the undo logs of four open superblocks, and its
/// table of superblocks.
pub fn memory_bytes(profile: &Profile) -> u64 {
    let geometry = &profile.geometry;
    let maps = 4 * profile.logical_units() + 4 * geometry.units() + geometry.units() / 8;
    let of_superblock = u64::from(geometry.superblock_units()) * (4 * 8 + 4);
    let calendars = u64::from(geometry.dies() + geometry.channels) * 1200;
    maps + of_superblock + u64::from(geometry.blocks_per_plane) * 80 + calendars + 4096
}
