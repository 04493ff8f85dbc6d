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
    /// An invalid profile.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file or block device that cannot be opened, or not with these options.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A device that failed while it was used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A job that does not fit the device.
    #[error("job: {0}")]
    Job(#[from] JobError),
    /// The text of a job that is not valid JSON, or not a job.
    #[error("job: {0}")]
    JobText(#[from] serde_json::Error),
    /// Invalid options.
    #[error("options: {0}")]
    OptionsText(serde_json::Error),
    /// An invalid DH-HMAC-CHAP key.
    #[error("the secret of NVMe's hosts: {0}")]
    DhchapKey(#[from] DhchapKeyError),
    /// More connections than the limit of open files allows.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// An unknown I/O engine.
    #[error("engine is {given}; may be io_uring or sync")]
    Engine {
        /// The name that was given.
        given: String,
    },
    /// An exception that a watcher raised.
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
