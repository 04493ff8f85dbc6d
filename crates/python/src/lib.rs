//! The native module: configuration text in, NumPy columns out. Long calls release the
//! interpreter's lock.

mod columns;
mod drive;
mod errors;
mod functions;
mod server;
mod watch;

use pyo3::prelude::*;

/// Drives, jobs and servers. Only `ssdlab.device` imports this.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<drive::Drive>()?;
    module.add_class::<server::Server>()?;
    module.add_function(wrap_pyfunction!(functions::describe_profile, module)?)?;
    module.add_function(wrap_pyfunction!(functions::nop_rate, module)?)?;
    module.add_function(wrap_pyfunction!(functions::verify, module)?)?;
    module.add_function(wrap_pyfunction!(functions::trace_statistics, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__commit__", env!("SSDLAB_COMMIT"))?;
    module.add("__target__", env!("SSDLAB_TARGET"))?;
    module.add("__profile__", if cfg!(debug_assertions) { "debug" } else { "release" })
}
