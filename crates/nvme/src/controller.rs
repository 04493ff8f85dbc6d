//! `Controller`: one host's way to the drive: registers, features, events; commands by queue.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::event::Events;
use super::feature::Features;
use super::log;
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;
use super::subsystem::{Subsystem, View};
use ssdlab_engine::Epoch;
use ssdlab_engine::{Command, Operation};

/// What a controller is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerType {
    /// The drive.
    Io,
    /// Telling where the drive is.
    Discovery,
}

/// What became of an admin command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended.
    Completed(Completion),
    /// It is answered when something happens.
    Outstanding,
}

/// A request for events that is answered now: its id and how.
pub type Waiting = (u16, Completion);

/// Entries of a queue.
pub const QUEUE_ENTRIES: u32 = 128;
/// A host of this many queues has as many as it wants.
pub const QUEUES_MAX: u32 = 64;
/// The version that is kept: 2.0.
pub const VERSION: u32 = 0x0002_0000;

/// Offsets of the registers that Fabrics has: properties.
const CAP: u32 = 0x00;
const VS: u32 = 0x08;
const CC: u32 = 0x14;
const CSTS: u32 = 0x1c;
const ENABLE: u32 = 1;
const SHUTDOWN: u32 = 3 << 14;
/// Bits of CC beside shutdown that a host may set: EN, and entry sizes of 64 and 16 bytes.
const CONFIGURATION: u32 = 6 << 16 | 4 << 20;

/// One host's way to the drive.
pub struct Controller {
    /// The drive.
    pub subsystem: Arc<Subsystem>,
    /// By which its I/O queues find it.
    pub cntlid: u16,
    /// What it is for.
    pub cntrltype: ControllerType,
    /// Its host's identifier.
    pub hostid: [u8; 16],
    /// The epoch of the drive in which it was made, and in which alone its commands are executed.
    pub epoch: Epoch,
    /// Where it is listened to, for who asks that.
    pub(super) port: Option<SocketAddr>,
    state: Mutex<State>,
}

pub struct State {
    configuration: u32,
    /// Enabled with a configuration that cannot be.
    failed: bool,
    shut_down: bool,
    pub features: Features,
    pub events: Events,
}

impl Controller {
    /// A controller that is not enabled yet. `patience` is its keep-alive timer; zero: none.
    ///
    /// # Errors
    /// There are as many controllers as there are numbers for them.
    pub fn new(
        subsystem: &Arc<Subsystem>,
        (kind, port): (ControllerType, Option<SocketAddr>),
        host: [u8; 16],
        patience: Duration,
        epoch: Epoch,
    ) -> Result<Self, Status> {
        let number = subsystem.new_number().ok_or(Status::CONNECT_CONTROLLER_BUSY)?;
        let state = State {
            configuration: 0,
            failed: false,
            shut_down: false,
            features: Features::new(patience),
            events: Events::new(subsystem.changes()),
        };
        if kind == ControllerType::Io {
            subsystem.note_controller(number);
        }
        let (subsystem, state) = (Arc::clone(subsystem), Mutex::new(state));
        Ok(Self { subsystem, cntlid: number, cntrltype: kind, hostid: host, epoch, port, state })
    }

    /// Reads a property; `None` where there is none there.
    pub fn property(&self, offset: u32) -> Option<u64> {
        let state = self.lock();
        let ready = u32::from(state.is_ready());
        let complete = if state.shut_down { 2 << 2 } else { 0 };
        Some(match offset {
            // Queues in one piece, ready within 10 s, the NVM command set, pages of 4 KiB.
            CAP => u64::from(QUEUE_ENTRIES - 1) | 1 << 16 | 20 << 24 | 1 << 37,
            VS => VERSION.into(),
            CC => state.configuration.into(),
            CSTS => (ready | u32::from(state.failed) << 1 | complete).into(),
            _ => return None,
        })
    }

    /// Sets a property. Returns whether the controller was reset: its I/O queues are gone.
    ///
    /// # Errors
    /// It cannot be set.
    pub fn set_property(&self, offset: u32, value: u64) -> Result<bool, Status> {
        if offset != CC {
            return Err(Status::INVALID_FIELD);
        }
        let value = value as u32;
        let mut state = self.lock();
        let was = std::mem::replace(&mut state.configuration, value);
        let is_reset = was & ENABLE != 0 && value & ENABLE == 0;
        if is_reset {
            state.features = Features::new(state.features.patience);
            state.events.clear();
        }
        if value & ENABLE != 0 && was & ENABLE == 0 {
            // An entry size of 0 stands for the one that there is, as discovery leaves it.
            let sizes = value & !(ENABLE | SHUTDOWN);
            state.failed = sizes != CONFIGURATION && sizes != 0;
            state.shut_down = false;
        } else if value & ENABLE == 0 {
            state.failed = false;
        }
        let shuts_down = value & SHUTDOWN != 0 && !state.shut_down;
        state.shut_down |= shuts_down;
        drop(state);
        if shuts_down && self.cntrltype == ControllerType::Io {
            // A drive that is told writes down what it has; who loses power now loses nothing.
            let _ = self.perform_all(&[Command::new(Operation::Flush, 0, 0)], &[]);
        }
        Ok(is_reset || shuts_down)
    }

    /// Does a command of the admin queue; `None` if the epoch is over.
    pub fn admin(&self, sqe: &Sqe, data: &mut dyn HostData) -> Option<Outcome> {
        self.check_epoch()?;
        let outcome = self.try_admin(sqe, data)?;
        if let Outcome::Completed(Completion { status, .. }) = outcome
            && !status.is_success()
        {
            self.subsystem.record_error(0, sqe, status);
        }
        Some(outcome)
    }

    /// `None` if the power was cut since the controller was made.
    pub(super) fn check_epoch(&self) -> Option<()> {
        (self.subsystem.engine.epoch() == Some(self.epoch)).then_some(())
    }

    /// A request for events that can be answered by now.
    pub fn next_event(&self) -> Option<Waiting> {
        let mut state = self.lock();
        if !state.events.is_asked() {
            return None;
        }
        self.look(&mut state);
        state.events.take()
    }

    /// Notes what has happened to the drive.
    pub(super) fn look(&self, state: &mut State) {
        let warnings = log::warnings(&self.subsystem, &state.features);
        state.events.look(warnings, self.subsystem.changes());
    }

    /// Whether a request for events waits.
    pub fn has_event_requests(&self) -> bool {
        self.lock().events.is_asked()
    }

    /// By when something must have been heard of a host that was heard at `heard`.
    pub fn expires(&self, heard: Instant) -> Option<Instant> {
        let patience = self.lock().features.patience;
        // Traffic keeps a host alive: a timer that finds some starts anew, so that who falls silent
        // right after it started is missed when the second ends. That is the longest that a host
        // has to expect, and nobody who is only slow is taken for dead.
        (!patience.is_zero()).then(|| heard + 2 * patience)
    }

    /// What I/O commands find.
    pub fn view(&self) -> View {
        let view = self.subsystem.view();
        let state = self.lock();
        View {
            ready: state.is_ready() && self.cntrltype == ControllerType::Io,
            unwritten_fails: state.features.unwritten_fails(),
            writes_through: self.subsystem.is_volatile && !state.features.write_cache,
            ..view
        }
    }

    /// Whether commands are taken.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.subsystem.forget_controller(self.cntlid);
    }
}

impl State {
    fn is_ready(&self) -> bool {
        self.configuration & ENABLE != 0 && !self.failed
    }
}
