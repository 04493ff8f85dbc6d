//! Checks of a measurement: the maximum rate of `io_uring`, and the written content.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_device::Region;
use ssdlab_uring::OpenOptions;

use crate::errors::NativeError;

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
