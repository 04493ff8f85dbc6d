//! The one map from Rust's errors to the exception tree of `ssdlab.errors`.

use pyo3::prelude::*;
use pyo3::types::PyType;
use ssdlab_device::DeviceError;
use ssdlab_flash::ConfigError;
use ssdlab_nvme_tcp::DhchapKeyError;
use ssdlab_uring::OpenError;
use ssdlab_wire::LimitError;
use ssdlab_workload::JobError;
use ssdlab_workload::trace::TraceError;

/// Whatever a drive can answer besides what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// A profile that no twin can be made of.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file or block device that cannot be measured.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A device that failed in operation.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A job that does not fit the device.
    #[error("job: {0}")]
    Job(#[from] JobError),
    /// A job's text that is not a job.
    #[error("job: {0}")]
    JobText(#[from] serde_json::Error),
    /// Options that are none.
    #[error("options: {0}")]
    OptionsText(serde_json::Error),
    /// A secret that is none.
    #[error("the secret of NVMe's hosts: {0}")]
    DhchapKey(#[from] DhchapKeyError),
    /// More connections than the system has descriptors for.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A way to a drive that there is not.
    #[error("engine is {given}; may be io_uring or sync")]
    Engine {
        /// What was asked for.
        given: String,
    },
    /// Python raised, from a watcher.
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
