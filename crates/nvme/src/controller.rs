//! `Controller`: a controller of one host: properties, features, asynchronous events; `Context`: a
//! command that it executes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ssdlab_engine::{Command, Epoch, Operation};

use super::drive_io::DriveIo;
use super::event::AsyncEvents;
use super::features::Features;
use super::health;
use super::namespace::NamespaceView;
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;
use super::subsystem::Subsystem;

/// Controller type (CNTRLTYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerType {
    /// I/O controller.
    Io = 1,
    /// Discovery controller.
    Discovery = 2,
}

/// Maximum queue size in entries.
pub const QUEUE_ENTRIES_MAX: u16 = 128;
/// Maximum number of I/O queues of a controller.
pub const IO_QUEUES_MAX: u16 = 64;
/// Supported version of the specification: 2.0.
pub const VERSION: u32 = 0x0002_0000;

/// Offsets of the properties.
const CAP: u32 = 0x00;
const VS: u32 = 0x08;
const CC: u32 = 0x14;
const CSTS: u32 = 0x1c;

/// CAP: MQES (zeroes based), CQR, CAP.TO in 500 ms, CSS (NVM command set); the others are 0.
const CAPABILITIES: u64 = (QUEUE_ENTRIES_MAX as u64 - 1) | 1 << 16 | 20 << 24 | 1 << 37;
/// CC.EN, CC.SHN, and the supported CC.IOSQES and CC.IOCQES: entries of 64 and 16 bytes.
const CC_EN: u32 = 1;
const CC_SHN: u32 = 3 << 14;
const CC_ENTRY_SIZES: u32 = 6 << 16 | 4 << 20;
/// CSTS.CFS, and CSTS.SHST for a completed shutdown.
const CSTS_CFS: u32 = 1 << 1;
const CSTS_SHST_COMPLETE: u32 = 2 << 2;

/// Parameters of a new controller.
#[derive(Clone, Copy, Debug)]
pub struct ControllerParameters {
    /// Its type.
    pub cntrltype: ControllerType,
    /// The listening address, for the discovery log page.
    pub address: Option<SocketAddr>,
    /// Host Identifier (HOSTID).
    pub hostid: [u8; 16],
    /// Keep Alive Timeout (KATO); zero disables it.
    pub kato: Duration,
    /// Epoch of the drive in which all commands of the controller are executed.
    pub epoch: Epoch,
}

/// A controller of one host.
pub struct Controller {
    /// The drive.
    pub subsystem: Arc<Subsystem>,
    /// Controller ID (CNTLID).
    pub cntlid: u16,
    /// What it was created with.
    pub parameters: ControllerParameters,
    state: Mutex<State>,
}

pub(crate) struct State {
    cc: u32,
    /// Controller Fatal Status: enabled with an unsupported configuration.
    has_failed: bool,
    is_shut_down: bool,
    pub features: Features,
    pub events: AsyncEvents,
}

impl Controller {
    /// A controller that is not enabled yet; an error if all controller IDs are in use.
    pub fn new(
        subsystem: &Arc<Subsystem>,
        parameters: ControllerParameters,
    ) -> Result<Self, Status> {
        let is_io_controller = parameters.cntrltype == ControllerType::Io;
        let cntlid = subsystem.allocate_cntlid(is_io_controller);
        let state = State {
            cc: 0,
            has_failed: false,
            is_shut_down: false,
            features: Features::new(parameters.kato),
            events: AsyncEvents::new(subsystem.lock().namespace_changes),
        };
        Ok(Self {
            subsystem: Arc::clone(subsystem),
            cntlid: cntlid.ok_or(Status::CONNECT_CONTROLLER_BUSY)?,
            parameters,
            state: Mutex::new(state),
        })
    }

    /// Whether it is a discovery controller.
    pub fn is_discovery(&self) -> bool {
        self.parameters.cntrltype == ControllerType::Discovery
    }

    /// Value of the property at an offset; `None` if the offset is unsupported.
    pub fn property(&self, offset: u32) -> Option<u64> {
        let state = self.lock();
        let status = u32::from(state.is_ready())
            | if state.has_failed { CSTS_CFS } else { 0 }
            | if state.is_shut_down { CSTS_SHST_COMPLETE } else { 0 };
        match offset {
            CAP => Some(CAPABILITIES),
            VS => Some(VERSION.into()),
            CC => Some(state.cc.into()),
            CSTS => Some(status.into()),
            _ => None,
        }
    }

    /// Sets a property. Returns whether the controller was reset or shut down: its I/O queues are
    /// deleted.
    pub fn set_property(&self, offset: u32, value: u64) -> Result<bool, Status> {
        if offset != CC {
            return Err(Status::INVALID_FIELD);
        }
        let cc = value as u32;
        let mut state = self.lock();
        let previous = std::mem::replace(&mut state.cc, cc);
        let is_reset = previous & CC_EN != 0 && cc & CC_EN == 0;
        if is_reset {
            state.features = Features::new(state.features.kato);
            state.events.clear();
        }
        if cc & CC_EN != 0 && previous & CC_EN == 0 {
            // Discovery leaves the entry sizes 0.
            let configuration = cc & !(CC_EN | CC_SHN);
            state.has_failed = configuration != CC_ENTRY_SIZES && configuration != 0;
            state.is_shut_down = false;
        } else if cc & CC_EN == 0 {
            state.has_failed = false;
        }
        let shuts_down = cc & CC_SHN != 0 && !state.is_shut_down;
        state.is_shut_down |= shuts_down;
        drop(state);
        if shuts_down && !self.is_discovery() {
            // A power loss after an orderly shutdown loses no data.
            let _ = self.drive_io().perform(&[Command::new(Operation::Flush, 0, 0)], &[]);
        }
        Ok(is_reset || shuts_down)
    }

    /// Whether commands are accepted: CSTS.RDY.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready()
    }

    /// The next completion of an Asynchronous Event Request: CID and completion.
    pub fn next_event(&self) -> Option<(u16, Completion)> {
        let mut state = self.lock();
        if !state.events.has_requests() {
            return None;
        }
        self.update_events(&mut state);
        state.events.next_completion()
    }

    /// Takes in what has happened to the drive.
    pub(crate) fn update_events(&self, state: &mut State) {
        let status = self.subsystem.engine.status();
        let warnings = health::critical_warning(&status, &state.features);
        state.events.update(warnings, self.subsystem.lock().namespace_changes);
    }

    /// Whether Asynchronous Event Requests are outstanding.
    pub fn has_event_requests(&self) -> bool {
        self.lock().events.has_requests()
    }

    /// When the Keep Alive Timer expires, for a host whose last traffic was at `last_traffic`.
    pub fn keep_alive_deadline(&self, last_traffic: Instant) -> Option<Instant> {
        let kato = self.lock().features.kato;
        // Traffic Based Keep Alive: a timer that finds traffic at its end restarts. Traffic just
        // after a start thus extends the deadline to the end of the second period, the longest time
        // that the specification allows. A slow host is not disconnected early.
        (!kato.is_zero()).then(|| last_traffic + 2 * kato)
    }

    /// The namespace as this controller's commands use it now.
    pub fn view(&self) -> NamespaceView {
        let view = self.subsystem.view();
        let state = self.lock();
        NamespaceView {
            is_ready: state.is_ready() && !self.is_discovery(),
            dulbe: state.features.dulbe(),
            write_through: self.subsystem.is_volatile && !state.features.write_cache,
            ..view
        }
    }

    /// Whether the drive still has the epoch of this controller: no power loss since.
    pub(crate) fn has_power(&self) -> bool {
        self.subsystem.engine.power().epoch() == Some(self.parameters.epoch)
    }

    /// Access to the drive in the epoch of this controller.
    pub fn drive_io(&self) -> DriveIo<'_> {
        DriveIo::new(&self.subsystem.engine, self.parameters.epoch)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.subsystem.free_cntlid(self.cntlid);
    }
}

impl State {
    fn is_ready(&self) -> bool {
        self.cc & CC_EN != 0 && !self.has_failed
    }
}

/// A command, the controller that executes it, and its data buffer.
pub struct Context<'a> {
    /// The controller.
    pub controller: &'a Controller,
    /// The command.
    pub sqe: &'a Sqe,
    /// The host's data buffer.
    pub data: &'a mut dyn HostData,
}

impl<'a> Context<'a> {
    pub(crate) fn subsystem(&self) -> &'a Subsystem {
        &self.controller.subsystem
    }

    /// Data that the host sent; an error if it is shorter than `length`.
    pub(crate) fn payload(&self, length: usize) -> Result<&[u8], Status> {
        self.data.payload().get(..length).ok_or(Status::DATA_SGL_LENGTH_INVALID)
    }

    /// Sends `length` bytes to the host: `bytes`, cut off or padded with zeros.
    pub(crate) fn send(&mut self, bytes: &[u8], length: u64) -> Result<(), Status> {
        if (self.data.length() as u64) < length {
            return Err(Status::DATA_SGL_LENGTH_INVALID);
        }
        let length = length as usize;
        let sent = bytes.len().min(length);
        self.data.send(&bytes[..sent]);
        self.data.send(&vec![0; length - sent]);
        Ok(())
    }
}
