//! `Drive`: a twin, a file or a block device, for Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab_device::Device;
use ssdlab_flash::{Mirror, Ssd};
use ssdlab_time::Nanos;
use ssdlab_uring::{NullDevice, OpenError, OpenOptions, SyncDevice, UringDevice};
use ssdlab_workload::{Job, JobError, Outcome, Watch, rest, run, run_queues, run_threads};

use crate::columns::{self, set_items};
use crate::errors::NativeError;
use crate::functions::load;
use crate::watch::PyWatch;

enum Kind {
    Twin(Box<Ssd>),
    Mirror(Box<Mirror>),
    Uring(Box<UringDevice>, OpenOptions),
    Sync(Box<SyncDevice>, OpenOptions),
    Null(Box<NullDevice>),
}

/// Evaluates the same expression for each kind of device.
macro_rules! each {
    ($kind:expr, $device:ident => $done:expr) => {
        match $kind {
            Kind::Twin($device) => $done,
            Kind::Mirror($device) => $done,
            Kind::Uring($device, _) => $done,
            Kind::Sync($device, _) => $done,
            Kind::Null($device) => $done,
        }
    };
}

/// An open drive. It runs one job at a time; other threads wait.
#[pyclass(frozen, module = "ssdlab._native")]
pub struct Drive {
    kind: Arc<Mutex<Kind>>,
    /// Twins only: whether writes by this handle have only zeros as data.
    writes_zeros: bool,
    /// The I/O engine and its options; part of every outcome.
    #[pyo3(get)]
    engine: String,
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
    /// A new twin of a profile's text, scaled to `capacity_bytes` if given.
    #[staticmethod]
    #[pyo3(signature = (profile, capacity_bytes=None, *, seed=0))]
    fn twin(profile: &str, capacity_bytes: Option<u64>, seed: u64) -> PyResult<Self> {
        let profile = load(profile, capacity_bytes)?;
        Ok(Self::new(Kind::Twin(Box::new(Ssd::new(&profile, seed)))))
    }

    /// Two new twins as RAID 1.
    #[staticmethod]
    #[pyo3(signature = (profile, capacity_bytes=None, *, seed=0))]
    fn mirror(profile: &str, capacity_bytes: Option<u64>, seed: u64) -> PyResult<Self> {
        let profile = load(profile, capacity_bytes)?;
        Ok(Self::new(Kind::Mirror(Box::new(Mirror::new(&profile, seed)))))
    }

    /// Copies all of a mirror's first twin to the second; returns whether this is a mirror.
    fn resync(&self, py: Python<'_>) -> bool {
        py.detach(|| match &mut *self.lock() {
            Kind::Mirror(mirror) => {
                mirror.resync();
                true
            }
            _ => false,
        })
    }

    /// Opens a file or block device. `options` is JSON text with the fields of `OpenOptions`; `by`
    /// is `io_uring`, or `sync` for one pread or pwrite at a time.
    #[staticmethod]
    fn real(path: PathBuf, options: &str, by: &str) -> PyResult<Self> {
        let mut options: OpenOptions =
            serde_json::from_str(options).map_err(NativeError::OptionsText)?;
        // A job runs on one thread, and ends with no request in flight.
        options.single_issuer = !options.batch;
        let kind = match by {
            "io_uring" => UringDevice::open(path, &options)
                .map(|device| Kind::Uring(Box::new(device), options)),
            "sync" => {
                SyncDevice::open(path, &options).map(|device| Kind::Sync(Box::new(device), options))
            }
            _ => return Err(NativeError::Engine { given: by.to_owned() }.into()),
        };
        Ok(Self::new(kind.map_err(NativeError::from)?))
    }

    /// A device that completes each request at once, to measure the cost of the engine itself.
    #[staticmethod]
    fn null(queue_depth: usize) -> Self {
        Self::new(Kind::Null(Box::new(NullDevice::new(queue_depth))))
    }

    /// Another handle of the same twin whose writes have only zeros as data. For a real drive, the
    /// content of writes is an option of `real`.
    fn writing_zeros(&self) -> PyResult<Self> {
        if !self.is_virtual {
            let (field, given) = ("content", "zeros".to_owned());
            let allowed = "the content that the drive was opened with".to_owned();
            return Err(NativeError::from(JobError { field, given, allowed }).into());
        }
        Ok(Self {
            kind: Arc::clone(&self.kind),
            writes_zeros: true,
            engine: format!("{} zeros", self.engine),
            ..*self
        })
    }

    /// Runs a job (JSON text) and returns its outcome as scalars and columns.
    ///
    /// `watch(done, total, now_ns)` is called a few times per second. Ctrl-C ends the job early;
    /// `stopped` of the outcome is then true.
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
        columns::outcome(py, &outcome, &self.engine)
    }

    /// Leaves the drive idle for some seconds of its own clock. Returns false if Ctrl-C ended it.
    #[pyo3(signature = (seconds, watch=None))]
    fn rest(&self, py: Python<'_>, seconds: f64, watch: Option<Py<PyAny>>) -> PyResult<bool> {
        let duration = Nanos::new((seconds * 1e9) as u64);
        let mut watch = PyWatch::new(watch, self.is_virtual);
        let rested = py.detach(|| {
            let mut look = |progress| watch.look(progress);
            each!(&mut *self.lock(), device => rest(&mut **device, duration, &mut look))
        });
        watch.finish()?;
        Ok(rested.map_err(NativeError::from)?)
    }

    /// The drive's clock in nanoseconds since it was opened.
    fn now_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| each!(&*self.lock(), device => device.now().get()))
    }

    /// The temperature of a twin and the one from which on it throttles, in degrees Celsius; `None`
    /// for a real drive, and for a twin whose profile has no thermal model.
    fn temperature(&self, py: Python<'_>) -> Option<(f64, Option<f64>)> {
        py.detach(|| match &*self.lock() {
            Kind::Twin(ssd) => ssd.temperature().map(|now| (now.celsius, now.limit)),
            Kind::Mirror(_) | Kind::Uring(..) | Kind::Sync(..) | Kind::Null(_) => None,
        })
    }

    /// The counters of a twin, by name; `None` for a real drive. Those of a mirror are of its twin
    /// `member`, 0 or 1; there is no other.
    #[pyo3(signature = (member=0))]
    fn counters<'py>(
        &self,
        py: Python<'py>,
        member: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let counters = py.detach(|| match &*self.lock() {
            Kind::Twin(ssd) => Some((*ssd.counters(), ssd.wear(), ssd.service())),
            Kind::Mirror(mirror) => {
                let ssd = mirror.members().get(member)?;
                Some((*ssd.counters(), ssd.wear(), ssd.service()))
            }
            Kind::Uring(..) | Kind::Sync(..) | Kind::Null(_) => None,
        });
        let Some((counters, wear, service)) = counters else { return Ok(None) };
        let dict = PyDict::new(py);
        for (name, count) in counters.named() {
            dict.set_item(name, count)?;
        }
        dict.set_item("waf", counters.waf())?;
        set_items! { dict, wear =>
            "erases_least": erases_least, "erases_mean": erases_mean, "erases_most": erases_most,
            "percentage_used": percentage_used,
        }
        dict.set_item("available_spare_percent", service.spare_percent())?;
        dict.set_item("read_only", service.read_only)?;
        Ok(Some(dict))
    }
}

impl Drive {
    fn new(kind: Kind) -> Self {
        let (capacity_bytes, sector_bytes, queue_depth) = each!(&kind, device => {
            (device.capacity_bytes(), device.sector_bytes(), device.queue_depth())
        });
        let is_virtual = matches!(kind, Kind::Twin(_) | Kind::Mirror(_));
        let engine = kind.engine();
        Self {
            kind: Arc::new(Mutex::new(kind)),
            writes_zeros: false,
            engine,
            is_virtual,
            capacity_bytes,
            sector_bytes,
            queue_depth,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kind> {
        self.kind.lock().expect("no job panicked")
    }

    fn run_detached(&self, job: &Job, watch: &mut PyWatch) -> Result<Outcome, NativeError> {
        let mut look = |progress| watch.look(progress);
        let kind = &mut *self.lock();
        match kind {
            Kind::Twin(ssd) => ssd.set_writes_zeros(self.writes_zeros),
            Kind::Mirror(mirror) => mirror.set_writes_zeros(self.writes_zeros),
            Kind::Uring(..) | Kind::Sync(..) | Kind::Null(_) => {}
        }
        each!(kind, device => job.check(&**device))?;
        if job.threads == 1 {
            return Ok(each!(kind, device => run(&mut **device, job, &mut look))?);
        }
        match kind {
            Kind::Uring(device, options) => {
                side_by_side(job, options, |options| device.sibling(options), &mut look)
            }
            Kind::Sync(device, options) => {
                side_by_side(job, options, |options| device.sibling(options), &mut look)
            }
            Kind::Twin(ssd) => {
                job.check_queues(&**ssd)?;
                Ok(run_queues(&mut **ssd, job, &mut look)?)
            }
            Kind::Mirror(_) | Kind::Null(_) => {
                let (field, given) = ("threads", job.threads.to_string());
                let allowed = "1 for a mirror and for the null device".to_owned();
                Err(JobError { field, given, allowed }.into())
            }
        }
    }
}

impl Kind {
    fn engine(&self) -> String {
        let mut words = match self {
            Self::Twin(_) => vec!["twin"],
            Self::Mirror(_) => vec!["mirror"],
            Self::Uring(..) => vec!["io_uring"],
            Self::Sync(..) => vec!["sync"],
            Self::Null(_) => vec!["null"],
        };
        if let Self::Uring(_, options) | Self::Sync(_, options) = self {
            let of_ring = matches!(self, Self::Uring(..));
            let registered = matches!(self, Self::Uring(device, _) if device.registered_buffers());
            words.push(if options.direct { "direct" } else { "buffered" });
            words.extend((of_ring && options.batch).then_some("batch"));
            words.extend(registered.then_some("registered_buffers"));
            words.extend(options.dsync.then_some("dsync"));
        }
        words.join(" ")
    }
}

/// Runs a job's threads on one file, each with a queue of its own and with content of its own.
fn side_by_side<D: Device + Send>(
    job: &Job,
    options: &OpenOptions,
    sibling: impl Fn(&OpenOptions) -> Result<D, OpenError>,
    look: &mut impl Watch,
) -> Result<Outcome, NativeError> {
    let device = |number| {
        let seed = options.seed.wrapping_add(number as u64);
        sibling(&OpenOptions { seed, ..options.clone() })
    };
    let mut devices: Vec<D> = (0..job.threads).map(device).collect::<Result<_, _>>()?;
    Ok(run_threads(&mut devices, job, look)?)
}
