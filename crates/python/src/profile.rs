//! Profiles: parses their text and describes their twins.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_flash::{Interface, Profile};

use crate::errors::NativeError;

/// Parses a profile, and scales it if a capacity is given.
pub fn load(text: &str, capacity_bytes: Option<u64>) -> Result<Profile, NativeError> {
    let profile = Profile::from_toml(text)?;
    match capacity_bytes {
        None => Ok(profile),
        Some(bytes) => Ok(profile.scaled_to(bytes)?),
    }
}

/// The dimensions of a profile's twin as a dict of numbers and names. Raises if the profile is
/// invalid.
#[pyfunction]
#[pyo3(signature = (profile, capacity_bytes=None))]
pub fn describe_profile<'py>(
    py: Python<'py>,
    profile: &str,
    capacity_bytes: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let profile = load(profile, capacity_bytes)?;
    let geometry = &profile.geometry;
    let dict = PyDict::new(py);
    let nvme = profile.link.interface == Interface::Nvme;
    dict.set_item("model", &profile.model)?;
    dict.set_item("interface", if nvme { "nvme" } else { "sata" })?;
    dict.set_item("capacity_bytes", profile.capacity)?;
    dict.set_item("flash_bytes", geometry.bytes())?;
    dict.set_item("spare", profile.spare())?;
    dict.set_item("channels", geometry.channels)?;
    dict.set_item("dies", geometry.dies())?;
    dict.set_item("planes", geometry.planes)?;
    dict.set_item("page_bytes", u64::from(geometry.page_units) * geometry.unit_bytes())?;
    dict.set_item("chunk_bytes", u64::from(geometry.chunk_units) * geometry.unit_bytes())?;
    dict.set_item("stripe_bytes", u64::from(geometry.stripe_units()) * geometry.unit_bytes())?;
    dict.set_item("superblock_bytes", geometry.superblock_bytes())?;
    dict.set_item("superblocks", geometry.blocks_per_plane)?;
    dict.set_item("buffer_bytes", profile.buffer.size)?;
    dict.set_item("power_loss_protection", profile.buffer.power_loss_protection)?;
    Ok(dict)
}
