//! The functions of the module: profiles and their twins, statistics of a trace, and checks of a
//! measurement (the maximum rate of `io_uring`, and the written content).

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_device::{Op, Region};
use ssdlab_flash::{Interface, Profile};
use ssdlab_uring::OpenOptions;
use ssdlab_workload::trace::{Replay, Statistics};

use crate::columns::set_items;
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
    dict.set_item("slc_bytes", profile.slc.as_ref().map_or(0, |slc| slc.bytes(geometry)))?;
    Ok(dict)
}

/// Reads a whole trace and returns its statistics. `replay` is JSON text with the fields of
/// `Replay`; those that matter only for the replay itself are ignored.
#[pyfunction]
pub fn trace_statistics<'py>(py: Python<'py>, replay: &str) -> PyResult<Bound<'py, PyDict>> {
    let replay: Replay = serde_json::from_str(replay).map_err(NativeError::from)?;
    let found = py.detach(|| Statistics::collect(&replay)).map_err(NativeError::from)?;
    let dict = PyDict::new(py);
    dict.set_item("format", found.format)?;
    for (op, name) in Op::ALL.into_iter().zip(["reads", "writes", "trims", "flushes"]) {
        dict.set_item(name, found.requests[op.index()])?;
    }
    for (op, name) in [(Op::Read, "read"), (Op::Write, "write"), (Op::Trim, "trim")] {
        dict.set_item(format!("{name}_bytes"), found.bytes[op.index()])?;
    }
    for (op, name) in [(Op::Read, "read"), (Op::Write, "write")] {
        let kind = op.index();
        dict.set_item(format!("{name}_sizes"), found.sizes[kind].iter().collect::<Vec<_>>())?;
        dict.set_item(format!("median_{name}_bytes"), found.median_bytes(kind))?;
    }
    dict.set_item("volumes", found.volume_ends.iter().collect::<Vec<_>>())?;
    set_items! { dict, found =>
        "footprint_bytes": footprint_bytes, "written_footprint_bytes": written_footprint_bytes,
        "unit_writes": unit_writes, "hottest_fifth": hottest_fifth, "aligned": aligned,
        "continuing": sequential, "early": out_of_order, "empty": empty,
    }
    dict.set_item("span_ns", found.span.get())?;
    Ok(dict)
}

/// Requests per second of `io_uring` on this core if each request does nothing.
#[pyfunction]
pub fn nop_rate(py: Python<'_>, requests: u64) -> PyResult<f64> {
    py.detach(|| ssdlab_uring::nop_rate(requests))
        .map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Reads back content that a run wrote with stamps. Returns `good_bytes`, and `offset` and `found`
/// of the first mismatch: the stamp found there (offset, run, count), or `None`. Both are `None` if
/// all content is as written.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes paths by value")]
#[pyo3(signature = (path, region, run, *, direct=true))]
pub fn verify(
    py: Python<'_>,
    path: PathBuf,
    region: (u64, u64),
    run: u64,
    direct: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let options = OpenOptions { direct, ..OpenOptions::default() };
    let region = Region::from_bytes(region.0, region.1);
    let verified = py
        .detach(|| ssdlab_uring::verify(&path, &options, region, run))
        .map_err(NativeError::from)?;
    let found = verified.mismatch.and_then(|mismatch| mismatch.found);
    let dict = PyDict::new(py);
    dict.set_item("good_bytes", verified.good_bytes)?;
    dict.set_item("offset", verified.mismatch.map(|mismatch| mismatch.offset))?;
    dict.set_item("found", found.map(|stamp| (stamp.offset, stamp.run, stamp.count)))?;
    Ok(dict)
}
