//! Maps errors of the Rust crates to the exceptions of `ssdlab.errors`.

use pyo3::prelude::*;
use pyo3::types::PyType;
use ssdlab_device::DeviceError;
use ssdlab_flash::ConfigError;
use ssdlab_nvme_tcp::DhchapKeyError;
use ssdlab_uring::OpenError;
use ssdlab_wire::LimitError;
use ssdlab_workload::JobError;
use ssdlab_workload::trace::TraceError;

/// The errors that the native module raises.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("job: {0}")]
    Job(#[from] JobError),
    #[error("job: {0}")]
    JobText(#[from] serde_json::Error),
    #[error("options: {0}")]
    OptionsText(serde_json::Error),
    #[error("the secret of NVMe's hosts: {0}")]
    DhchapKey(#[from] DhchapKeyError),
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error("engine is {given}; may be io_uring or sync")]
    Engine { given: String },
    #[error(transparent)]
    Python(#[from] PyErr),
}

impl From<NativeError> for PyErr {
    fn from(error: NativeError) -> Self {
        let class = match &error {
            NativeError::Python(_) => {
                let NativeError::Python(raised) = error else { unreachable!() };
                return raised;
            }
            NativeError::Config(_) | NativeError::Open(_) => "TargetError",
            NativeError::Job(_)
            | NativeError::Trace(_)
            | NativeError::JobText(_)
            | NativeError::OptionsText(_)
            | NativeError::DhchapKey(_)
            | NativeError::Limit(_)
            | NativeError::Engine { .. } => "UsageError",
            NativeError::Device(_) => "DeviceFailure",
        };
        Python::attach(|py| raise(py, class, error.to_string()))
    }
}

fn raise(py: Python<'_>, class: &str, message: String) -> PyErr {
    let find = || -> PyResult<Bound<'_, PyType>> {
        Ok(py.import("ssdlab.errors")?.getattr(class)?.cast_into::<PyType>()?)
    };
    match find() {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}
