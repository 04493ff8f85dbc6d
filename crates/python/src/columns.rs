//! An outcome as columns: what Python stores and analyses.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_time::Nanos;
use ssdlab_workload::Outcome;

/// A dict of scalars, and of two groups of `uint64` columns:
/// `intervals` (`start_ns`, requests, bytes, `latency_ns_max`) and `latency` (`latency_ns`, count).
pub fn outcome<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let record = &outcome.record;
    let dict = PyDict::new(py);
    dict.set_item("start_ns", record.start.get())?;
    dict.set_item("end_ns", record.end.get())?;
    dict.set_item("requests", record.requests)?;
    dict.set_item("bytes", record.bytes)?;
    dict.set_item("errors", record.errors)?;
    dict.set_item("first_errno", record.first_errno)?;
    dict.set_item("stopped", outcome.stopped)?;
    dict.set_item("intervals", intervals(py, outcome)?)?;
    dict.set_item("latency", latency(py, outcome)?)?;
    Ok(dict)
}

fn intervals<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let rows = &outcome.record.intervals;
    let columns = PyDict::new(py);
    let nanos = |pick: fn(&ssdlab_device::Interval) -> Nanos| {
        PyArray1::from_iter(py, rows.iter().map(|row| pick(row).get()))
    };
    columns.set_item("start_ns", nanos(|row| row.start))?;
    columns.set_item("requests", PyArray1::from_iter(py, rows.iter().map(|row| row.requests)))?;
    columns.set_item("bytes", PyArray1::from_iter(py, rows.iter().map(|row| row.bytes)))?;
    columns.set_item("latency_ns_max", nanos(|row| row.latency_max))?;
    Ok(columns)
}

fn latency<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let (values, counts): (Vec<u64>, Vec<u64>) = outcome
        .latency
        .iter_recorded()
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
        .unzip();
    let columns = PyDict::new(py);
    columns.set_item("latency_ns", PyArray1::from_vec(py, values))?;
    columns.set_item("count", PyArray1::from_vec(py, counts))?;
    Ok(columns)
}
