//! The outcome of a job as columns, which Python stores and analyses.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_device::{Interval, Op};
use ssdlab_workload::{Bucket, Outcome};

/// Copies fields of a structure to a dict. The keys are literals, so that they stay if a field is
/// renamed: Python reads them.
macro_rules! set_items {
    ($dict:expr, $from:expr => $($key:literal: $field:ident),* $(,)?) => {
        $($dict.set_item($key, $from.$field)?;)*
    };
}
pub(crate) use set_items;

/// A dict of scalars, and of two groups of `uint64` columns:
/// `intervals`, and `latency` (interval: row in `intervals`, op: read 0, write 1, trim 2, flush 3,
/// `latency_ns`, count).
pub fn outcome<'py>(
    py: Python<'py>,
    outcome: &Outcome,
    engine: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let record = &outcome.record;
    let dict = PyDict::new(py);
    dict.set_item("start_ns", record.start.get())?;
    dict.set_item("end_ns", record.end.get())?;
    set_items! { dict, record =>
        "requests": requests, "bytes": bytes, "errors": errors, "first_errno": first_errno,
        "unserved": unserved,
    }
    dict.set_item("lag_ns_sum", outcome.lag.sum.get())?;
    dict.set_item("lag_ns_max", outcome.lag.max.get())?;
    dict.set_item("late", outcome.lag.late)?;
    dict.set_item("stopped", outcome.stopped)?;
    dict.set_item("failure", outcome.failure.as_ref().map(ToString::to_string))?;
    dict.set_item("engine", engine)?;
    dict.set_item("intervals", intervals(py, outcome)?)?;
    dict.set_item("latency", latency(py, outcome)?)?;
    Ok(dict)
}

fn intervals<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let rows = &outcome.record.intervals;
    let columns = PyDict::new(py);
    let column = |name: &str, pick: &dyn Fn(&Interval) -> u64| {
        columns.set_item(name, PyArray1::from_iter(py, rows.iter().map(pick)))
    };
    column("start_ns", &|row| row.start.get())?;
    column("requests", &|row| row.requests())?;
    column("bytes", &|row| row.bytes())?;
    column("latency_ns_max", &|row| row.latency_max.get())?;
    for (op, name) in Op::ALL.into_iter().zip(["reads", "writes", "trims", "flushes"]) {
        column(name, &|row| row.by_op[op.index()].requests)?;
    }
    column("read_bytes", &|row| row.by_op[Op::Read.index()].bytes)?;
    column("write_bytes", &|row| row.by_op[Op::Write.index()].bytes)?;
    column("errors", &|row| row.errors)?;
    if rows.iter().any(|row| row.flash_write_bytes.is_some()) {
        column("flash_write_bytes", &|row| row.flash_write_bytes.unwrap_or(0))?;
    }
    Ok(columns)
}

fn latency<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let rows = &outcome.buckets;
    let columns = PyDict::new(py);
    let column = |name: &str, pick: &dyn Fn(&Bucket) -> u64| {
        columns.set_item(name, PyArray1::from_iter(py, rows.iter().map(pick)))
    };
    column("interval", &|row| row.interval.into())?;
    column("op", &|row| row.op.index() as u64)?;
    column("latency_ns", &|row| row.latency_ns)?;
    column("count", &|row| row.count)?;
    Ok(columns)
}
