//! Statistics of a trace, from one pass over it without the interpreter's lock.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_device::Op;
use ssdlab_workload::trace::{Replay, Statistics};

use crate::columns::set_fields;
use crate::errors::NativeError;

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
    set_fields!(dict, found => footprint_bytes written_footprint_bytes unit_writes);
    set_fields!(dict, found => hottest_fifth aligned);
    dict.set_item("continuing", found.sequential)?;
    dict.set_item("span_ns", found.span.get())?;
    dict.set_item("early", found.out_of_order)?;
    dict.set_item("empty", found.empty)?;
    Ok(dict)
}
