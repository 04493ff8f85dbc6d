//! `Server`: a served twin, for Python.

use std::fmt::Display;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use ssdlab_device::Device;
use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store, WriteLog, restore};
use ssdlab_flash::Profile;
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_server::{Address, measure_transport};
use ssdlab_twin_drive::TwinDrive;
use ssdlab_wire::{Limits, Tls};

use crate::errors::NativeError;
use crate::functions::load;

/// A running server; dropping it stops it.
#[pyclass(frozen, module = "ssdlab._native")]
pub struct Server {
    running: Mutex<ssdlab_server::Server>,
    #[pyo3(get)]
    capacity_bytes: u64,
    /// The address for NBD clients, if any: the socket's path, or `host:port`.
    #[pyo3(get)]
    address: Option<String>,
    /// The address for `NVMe` hosts, if any, as `host:port`, and the subsystem's qualified name.
    #[pyo3(get)]
    nvme: Option<(String, String)>,
    /// Measured latency of the transport in microseconds; 0 if replies are not paced.
    #[pyo3(get)]
    transport_us: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServeOptions {
    name: String,
    kind: Kind,
    /// The address for NBD clients: a socket's path, or `host:port`. None: no NBD clients.
    address: Option<String>,
    /// `host:port` for `NVMe` hosts.
    nvme_tcp: Option<String>,
    /// The DH-HMAC-CHAP key of `NVMe` hosts. None: hosts need not authenticate.
    dhchap_secret: Option<String>,
    capacity_bytes: Option<u64>,
    /// Path of the control socket.
    control: Option<PathBuf>,
    /// The file with the drive's data. None: data is kept in memory.
    data: Option<PathBuf>,
    /// The file to which every change of the data is logged.
    log: Option<PathBuf>,
    /// Seconds of the drive in a second. None: replies are sent at once.
    pace: Option<f64>,
    #[serde(default)]
    seed: u64,
    /// The folder of certificates. If given, clients must encrypt.
    tls: Option<PathBuf>,
    /// Whether clients must present a certificate.
    #[serde(default)]
    tls_verify_peer: bool,
    /// Maximum number of connections. None: the default, or what the limit of open files allows.
    max_connections: Option<usize>,
    /// Memory for payloads that are being received.
    payload_memory_bytes: Option<usize>,
    handshake_timeout_s: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Unix,
    Tcp,
}

impl ServeOptions {
    fn nbd_address(&self) -> PyResult<Option<Address>> {
        let Some(address) = &self.address else { return Ok(None) };
        Ok(Some(match self.kind {
            Kind::Unix => Address::Unix(address.into()),
            Kind::Tcp => resolve(address)?,
        }))
    }

    fn limits(&self) -> Result<Limits, NativeError> {
        let default = Limits::default();
        let payload_bytes = self.payload_memory_bytes.unwrap_or(default.payload_bytes);
        let handshake = self.handshake_timeout_s.map_or(default.handshake, Duration::from_secs_f64);
        let limits = Limits { payload_bytes, handshake, ..default };
        Ok(limits.with_connections(self.max_connections, self.tls.is_some())?)
    }

    /// The drive and its data. A drive whose data is in a file gets the mapping of that data.
    fn drive(&self, profile: &Profile) -> PyResult<(TwinDrive, Store)> {
        let mut drive = TwinDrive::new(profile, self.seed);
        let parameters = drive.parameters();
        let store = match &self.data {
            None => Store::in_memory(&parameters),
            Some(path) => Store::in_file(path, &parameters).map_err(os_error(path.display()))?,
        };
        let is_complete = restore(&mut drive, store.allocated())?;
        Ok((drive, store.with_complete_map(is_complete)))
    }

    fn export(&self, profile: &Profile, engine: &Engine) -> io::Result<Export> {
        let (capacity, unit) = (profile.capacity, engine.parameters.unit_bytes);
        let export = Export::new(&self.name, &profile.model, capacity, unit);
        Ok(match &self.tls {
            Some(folder) => export.encrypted(Tls::from_folder(folder, self.tls_verify_peer)?),
            None => export,
        })
    }
}

/// The first address of `host:port`.
fn resolve(address: &str) -> PyResult<Address> {
    let none = || PyOSError::new_err("no such address");
    Ok(Address::Tcp(address.to_socket_addrs()?.next().ok_or_else(none)?))
}

/// Adds the path or address to an error of the system.
fn os_error(place: impl Display) -> impl FnOnce(io::Error) -> PyErr {
    let place = place.to_string();
    move |error| {
        let number = error.raw_os_error().unwrap_or_default();
        PyOSError::new_err((number, error.to_string(), place))
    }
}

fn format_address(address: &Address) -> String {
    match address {
        Address::Unix(path) => path.display().to_string(),
        Address::Tcp(address) => address.to_string(),
    }
}

#[pymethods]
impl Server {
    /// Serves the twin of a profile's text. `options` is JSON text.
    #[staticmethod]
    fn start(profile: &str, options: &str) -> PyResult<Self> {
        let options: ServeOptions =
            serde_json::from_str(options).map_err(NativeError::OptionsText)?;
        let profile = load(profile, options.capacity_bytes)?;
        let (drive, store) = options.drive(&profile)?;
        let address = options.nbd_address()?;
        let nvme = options.nvme_tcp.as_deref().map(resolve).transpose()?;
        let key = options.dhchap_secret.as_deref().map(DhchapKey::parse).transpose();
        let (key, limits) = (key.map_err(NativeError::from)?, options.limits()?);
        let compensation = match address.as_ref().or(nvme.as_ref()) {
            Some(address) if options.pace.is_some() => measure_transport(address)?,
            _ => LatencyCompensation::default(),
        };
        let pace = options.pace.map_or(Pace::None, Pace::Scaled);
        let clock = Clock::start(pace, compensation).starting_at(drive.now());
        let mut engine = Engine::new(Box::new(drive), store, clock);
        let export = options.export(&profile, &engine)?;
        if let Some(path) = &options.log {
            let log = WriteLog::create(path).map_err(os_error(path.display()))?;
            engine = engine.with_log(log);
        }
        let mut server = ssdlab_server::Server::with_limits(engine, export, limits);
        let at = |address: &Address| os_error(format_address(address));
        let address =
            address.map(|address| server.listen_nbd(&address).map_err(at(&address))).transpose()?;
        let origin = format!("{} {}", options.name, options.seed);
        let nvme = nvme
            .map(|address| server.listen_nvme_tcp(&address, &origin, key).map_err(at(&address)))
            .transpose()?;
        if let Some(socket) = &options.control {
            server.listen_control(socket).map_err(os_error(socket.display()))?;
        }
        Ok(Self {
            running: Mutex::new(server),
            capacity_bytes: profile.capacity,
            address: address.as_ref().map(format_address),
            nvme: nvme.map(|(address, identity)| (format_address(&address), identity.subnqn)),
            transport_us: compensation.round_trip.as_secs_f64() * 1e6,
        })
    }

    /// The number of connected clients.
    fn connections(&self) -> usize {
        self.lock().connections()
    }

    /// The counters of drive and server, by name.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let (counters, lag) = py.detach(|| {
            let server = self.lock();
            (server.engine().counters(), server.engine().clock.reply_lateness())
        });
        for (name, value) in counters {
            dict.set_item(name, value)?;
        }
        dict.set_item("paced_answers", lag.replies)?;
        dict.set_item("late_answers", lag.late)?;
        dict.set_item("latest_answer_us", lag.max.as_secs_f64() * 1e6)?;
        Ok(dict)
    }

    /// Cuts the power and turns it on again: connections break, and volatile data is lost. Returns
    /// the number of units that lost data.
    fn power_cut(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().power_cut(true).map_or(0, |cut| cut.lost.len()))
    }

    /// Stops the server and completes the log. Raises if the log cannot be written.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut server = self.lock();
            server.stop();
            server.engine().finish_log()
        })?;
        Ok(())
    }
}

impl Server {
    fn lock(&self) -> std::sync::MutexGuard<'_, ssdlab_server::Server> {
        self.running.lock().expect("no panic while locked")
    }
}
