//! `Server`: a twin on the wire, as Python holds it.

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
use ssdlab_nbd::Export;
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_server::{Address, measure_transport};
use ssdlab_twin_drive::TwinDrive;
use ssdlab_wire::{Limits, Tls};

use crate::errors::NativeError;
use crate::profile::load;

/// A running server; it stops when it is dropped or told to.
#[pyclass(frozen, module = "ssdlab._native")]
pub struct Server {
    running: Mutex<ssdlab_server::Server>,
    #[pyo3(get)]
    capacity_bytes: u64,
    /// Where NBD's clients come: the socket's path, or `host:port`; none where they do not.
    #[pyo3(get)]
    address: Option<String>,
    /// Where hosts of `NVMe` come, as `host:port`, and what the drive is called there.
    #[pyo3(get)]
    nvme: Option<(String, String)>,
    /// What a request and its answer cost on their way, in microseconds; 0 where nothing is paced.
    #[pyo3(get)]
    transport_us: f64,
}

/// How a twin is served.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServeOptions {
    name: String,
    kind: Kind,
    /// A socket's path, or `host:port`; none where NBD's clients do not come.
    address: Option<String>,
    /// `host:port` for hosts of `NVMe`.
    #[serde(default)]
    nvme_tcp: Option<String>,
    /// What those hosts have to know, as text; none where everybody may come.
    #[serde(default)]
    dhchap_secret: Option<String>,
    #[serde(default)]
    capacity_bytes: Option<u64>,
    /// The control socket's path.
    #[serde(default)]
    control: Option<PathBuf>,
    #[serde(default)]
    data: Option<PathBuf>,
    /// Where every change of the content is logged.
    #[serde(default)]
    log: Option<PathBuf>,
    /// Seconds of the drive in a second; none for as fast as can be.
    #[serde(default)]
    pace: Option<f64>,
    #[serde(default)]
    seed: u64,
    /// The folder of certificates, for clients that encrypt and no others.
    #[serde(default)]
    tls: Option<PathBuf>,
    /// Whether they have to show a certificate too.
    #[serde(default)]
    tls_verify_peer: bool,
    /// Connections at a time; none for as many as usual and as the system has descriptors for.
    #[serde(default)]
    max_connections: Option<usize>,
    /// Memory for payloads that are being received.
    #[serde(default)]
    payload_memory_bytes: Option<usize>,
    #[serde(default)]
    handshake_timeout_s: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Unix,
    Tcp,
}

impl ServeOptions {
    fn address(&self) -> PyResult<Option<Address>> {
        let Some(given) = &self.address else { return Ok(None) };
        Ok(Some(match self.kind {
            Kind::Unix => Address::Unix(given.into()),
            Kind::Tcp => resolved(given)?,
        }))
    }

    fn secret(&self) -> Result<Option<DhchapKey>, NativeError> {
        Ok(self.dhchap_secret.as_deref().map(DhchapKey::parse).transpose()?)
    }

    fn limits(&self) -> Result<Limits, NativeError> {
        let usual = Limits::default();
        let payload_bytes = self.payload_memory_bytes.unwrap_or(usual.payload_bytes);
        let handshake = self.handshake_timeout_s.map_or(usual.handshake, Duration::from_secs_f64);
        let limits = Limits { payload_bytes, handshake, ..usual };
        Ok(limits.with_connections(self.max_connections, self.tls.is_some())?)
    }

    fn nvme_address(&self) -> PyResult<Option<Address>> {
        self.nvme_tcp.as_deref().map(resolved).transpose()
    }
}

fn resolved(given: &str) -> PyResult<Address> {
    let none = || PyOSError::new_err("no such address");
    Ok(Address::Tcp(given.to_socket_addrs()?.next().ok_or_else(none)?))
}

/// The system's refusal, with the path or address that it is about.
fn at(place: impl Display, error: &io::Error) -> PyErr {
    let number = error.raw_os_error().unwrap_or_default();
    PyOSError::new_err((number, error.to_string(), place.to_string()))
}

fn told(address: &Address) -> String {
    match address {
        Address::Unix(path) => path.display().to_string(),
        Address::Tcp(address) => address.to_string(),
    }
}

#[pymethods]
impl Server {
    /// Serves the twin of a profile's text as the options' JSON says.
    #[staticmethod]
    fn start(profile: &str, options: &str) -> PyResult<Self> {
        let options: ServeOptions =
            serde_json::from_str(options).map_err(NativeError::OptionsText)?;
        let profile = load(profile, options.capacity_bytes)?;
        let mut twin = TwinDrive::new(&profile, options.seed);
        let (capacity, unit) = (twin.capacity_bytes(), twin.unit_bytes());
        let volatile = twin.volatile_units();
        let store = match &options.data {
            None => Store::in_memory(capacity, unit, volatile),
            Some(path) => Store::in_file(path, capacity, unit, volatile)
                .map_err(|error| at(path.display(), &error))?,
        };
        let whole = restore(&mut twin, store.allocated())?;
        let store = store.with_complete_map(whole);
        let (address, nvme) = (options.address()?, options.nvme_address()?);
        let (secret, limits) = (options.secret()?, options.limits()?);
        let pace = options.pace.map_or(Pace::None, Pace::Times);
        let lead = match address.as_ref().or(nvme.as_ref()) {
            Some(address) if options.pace.is_some() => measure_transport(address)?,
            _ => LatencyCompensation::default(),
        };
        let mut export = Export::new(&options.name, &profile.model, capacity, unit);
        if let Some(folder) = &options.tls {
            export = export.encrypted(Tls::from_folder(folder, options.tls_verify_peer)?);
        }
        let shown = twin.now();
        let mut engine =
            Engine::new(Box::new(twin), store, Clock::start(pace, lead).starting_at(shown));
        if let Some(path) = &options.log {
            engine = engine
                .with_log(WriteLog::create(path).map_err(|error| at(path.display(), &error))?);
        }
        let mut server = ssdlab_server::Server::with_limits(engine, export, limits);
        let address = address
            .map(|wanted| server.listen_nbd(&wanted).map_err(|error| at(told(&wanted), &error)))
            .transpose()?;
        let origin = format!("{} {}", options.name, options.seed);
        let nvme = nvme
            .map(|wanted| {
                let opened = server.listen_nvme_tcp(&wanted, &origin, secret);
                opened.map_err(|error| at(told(&wanted), &error))
            })
            .transpose()?;
        if let Some(socket) = &options.control {
            server.listen_control(socket).map_err(|error| at(socket.display(), &error))?;
        }
        Ok(Self {
            running: Mutex::new(server),
            capacity_bytes: capacity,
            address: address.as_ref().map(told),
            nvme: nvme.map(|(address, identity)| (told(&address), identity.subnqn)),
            transport_us: lead.round_trip.as_secs_f64() * 1e6,
        })
    }

    /// How many clients are connected.
    fn connections(&self) -> usize {
        self.lock().connections()
    }

    /// What the drive has counted, by name.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let (counters, lag) = py.detach(|| {
            let server = self.lock();
            (server.engine().counters(), server.engine().clock().reply_lateness())
        });
        for (name, value) in counters {
            dict.set_item(name, value)?;
        }
        dict.set_item("paced_answers", lag.replies)?;
        dict.set_item("late_answers", lag.late)?;
        dict.set_item("latest_answer_us", lag.max.as_secs_f64() * 1e6)?;
        Ok(dict)
    }

    /// Cuts the power and turns it on again: connections break off, what was not in flash is lost.
    /// Returns how many units lost writes.
    fn power_cut(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().power_cut(true).map_or(0, |cut| cut.lost.len()))
    }

    /// Ends all connections, stops, and completes the log; an error is the log's.
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
