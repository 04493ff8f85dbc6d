//! `Drive`: a twin or a real file or block device, as Python holds it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_device::{Device, DeviceError};
use ssdlab_flash::{Interface, Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_uring::{OpenOptions, UringDevice};
use ssdlab_workload::{Job, Outcome, rest, run};

use crate::columns;
use crate::errors::NativeError;
use crate::watch::PyWatch;

enum Kind {
    Twin(Box<Ssd>),
    Real(Box<UringDevice>),
}

/// An open drive. One job at a time: a second thread waits.
#[pyclass(frozen, module = "ssdlab._native")]
pub struct Drive {
    kind: Mutex<Kind>,
    #[pyo3(get)]
    is_virtual: bool,
    #[pyo3(get)]
    capacity_bytes: u64,
    #[pyo3(get)]
    sector_bytes: u64,
    #[pyo3(get)]
    queue_depth: usize,
}

#[pymethods]
impl Drive {
    /// A new twin of a profile's text, scaled to `capacity_bytes` where given.
    #[staticmethod]
    #[pyo3(signature = (profile, capacity_bytes=None, *, seed=0))]
    fn twin(profile: &str, capacity_bytes: Option<u64>, seed: u64) -> PyResult<Self> {
        let profile = load(profile, capacity_bytes)?;
        Ok(Self::new(Kind::Twin(Box::new(Ssd::new(&profile, seed)))))
    }

    /// An existing file or block device, by `io_uring` and direct I/O, for reading and writing.
    ///
    /// A block device is opened exclusively. `request_bytes_max` bounds a job's block size.
    #[staticmethod]
    #[pyo3(signature = (path, *, queue_depth=32, request_bytes_max=1 << 20, seed=0, writable=true))]
    fn real(
        path: PathBuf,
        queue_depth: usize,
        request_bytes_max: usize,
        seed: u64,
        writable: bool,
    ) -> PyResult<Self> {
        let options = OpenOptions {
            direct: true,
            writable,
            exclusive: true,
            queue_depth,
            request_bytes_max,
            seed,
            ..OpenOptions::default()
        };
        let device = UringDevice::open(path, &options).map_err(NativeError::from)?;
        Ok(Self::new(Kind::Real(Box::new(device))))
    }

    /// Runs a job (JSON text) and returns its outcome as scalars and columns.
    ///
    /// `watch(done, total, now_ns)` is called a few times a second. Ctrl-C ends the job early:
    /// the outcome then says `stopped`.
    #[pyo3(signature = (job, watch=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        job: &str,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let job: Job = serde_json::from_str(job).map_err(NativeError::from)?;
        let mut watch = PyWatch::new(watch, self.is_virtual);
        let outcome = py.detach(|| self.run_detached(&job, &mut watch))?;
        watch.finish()?;
        columns::outcome(py, &outcome)
    }

    /// Leaves the drive alone for some seconds of its own clock; false where Ctrl-C ended it.
    #[pyo3(signature = (seconds, watch=None))]
    fn rest(&self, py: Python<'_>, seconds: f64, watch: Option<Py<PyAny>>) -> PyResult<bool> {
        let duration = Nanos::new((seconds * 1e9) as u64);
        let mut watch = PyWatch::new(watch, self.is_virtual);
        let rested = py.detach(|| match &mut *self.lock() {
            Kind::Twin(ssd) => rest(&mut **ssd, duration, &mut |p| watch.look(p)),
            Kind::Real(file) => rest(&mut **file, duration, &mut |p| watch.look(p)),
        });
        watch.finish()?;
        Ok(rested.map_err(NativeError::from)?)
    }

    /// The drive's clock in nanoseconds since it was opened.
    fn now_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| match &*self.lock() {
            Kind::Twin(ssd) => ssd.now().get(),
            Kind::Real(file) => file.now().get(),
        })
    }

    /// What a twin has counted, by name; `None` for a real drive.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let counters = py.detach(|| match &*self.lock() {
            Kind::Twin(ssd) => Some((*ssd.counters(), ssd.wear(), ssd.service())),
            Kind::Real(_) => None,
        });
        let Some((counters, wear, service)) = counters else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("host_writes", counters.host_writes)?;
        dict.set_item("host_reads", counters.host_reads)?;
        dict.set_item("host_trims", counters.host_trims)?;
        dict.set_item("collection_moves", counters.collection_moves)?;
        dict.set_item("nand_host_writes", counters.nand_host_writes)?;
        dict.set_item("nand_collection_writes", counters.nand_collection_writes)?;
        dict.set_item("wear_moves", counters.wear_moves)?;
        dict.set_item("nand_wear_writes", counters.nand_wear_writes)?;
        dict.set_item("folding_moves", counters.folding_moves)?;
        dict.set_item("nand_folding_writes", counters.nand_folding_writes)?;
        dict.set_item("host_write_bytes", counters.host_write_bytes)?;
        dict.set_item("nand_mapping_writes", counters.nand_mapping_writes)?;
        dict.set_item("mapping_senses", counters.mapping_senses)?;
        dict.set_item("nand_padding_writes", counters.nand_padding_writes)?;
        dict.set_item("host_senses", counters.host_senses)?;
        dict.set_item("collection_senses", counters.collection_senses)?;
        dict.set_item("erases", counters.erases)?;
        dict.set_item("waf", counters.waf())?;
        dict.set_item("erases_least", wear.erases_least)?;
        dict.set_item("erases_mean", wear.erases_mean)?;
        dict.set_item("erases_most", wear.erases_most)?;
        dict.set_item("percentage_used", wear.percentage_used)?;
        dict.set_item("available_spare_percent", service.spare_percent())?;
        dict.set_item("read_only", service.read_only)?;
        Ok(Some(dict))
    }
}

impl Drive {
    fn new(kind: Kind) -> Self {
        let device: &dyn Device = match &kind {
            Kind::Twin(ssd) => &**ssd,
            Kind::Real(file) => &**file,
        };
        let (capacity_bytes, sector_bytes) = (device.capacity_bytes(), device.sector_bytes());
        let queue_depth = device.queue_depth();
        let is_virtual = matches!(kind, Kind::Twin(_));
        Self { kind: Mutex::new(kind), is_virtual, capacity_bytes, sector_bytes, queue_depth }
    }

    fn lock(&self) -> MutexGuard<'_, Kind> {
        self.kind.lock().expect("a job that panicked leaves no drive to go on with")
    }

    fn run_detached(&self, job: &Job, watch: &mut PyWatch) -> Result<Outcome, NativeError> {
        let mut look = |progress| watch.look(progress);
        let outcome: Result<Outcome, DeviceError> = match &mut *self.lock() {
            Kind::Twin(ssd) => {
                job.check(&**ssd)?;
                run(&mut **ssd, job, &mut look)
            }
            Kind::Real(file) => {
                job.check(&**file)?;
                run(&mut **file, job, &mut look)
            }
        };
        Ok(outcome?)
    }
}

fn load(text: &str, capacity_bytes: Option<u64>) -> Result<Profile, NativeError> {
    let profile = Profile::from_toml(text)?;
    match capacity_bytes {
        None => Ok(profile),
        Some(bytes) => Ok(profile.scaled_to(bytes)?),
    }
}

/// What a profile's twin is made of, as a dict of numbers and names; refuses a wrong profile.
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
