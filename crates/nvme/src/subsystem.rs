//! `Subsystem`: the drive behind all controllers: its identity, its namespace, its error log.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use ssdlab_engine::{DriveParameters, Engine, Geometry, TRANSFER_MAX};
use ssdlab_time::{Random, fnv_1a};

use super::namespace::{LBA_FORMATS, Namespace, NamespaceView};
use super::spec::log_page::fdp_event::{INVALID_PLACEMENT_IDENTIFIER, RU_NOT_FULLY_WRITTEN};
use super::sqe::Sqe;
use super::status::Status;

/// NQN of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The highest controller ID; higher ones are reserved.
const CNTLID_MAX: u16 = 0xffef;
/// Entries of the Error Information log page.
pub const ERROR_LOG_ENTRIES: usize = 64;
/// Types of FDP events that can be enabled. Modelled: a reclaim unit that was left before it was
/// full, and a write with an invalid placement identifier. Not modelled: events of what the drive
/// does by itself (moving data).
pub const FDP_EVENT_TYPES: [u8; 2] = [RU_NOT_FULLY_WRITTEN, INVALID_PLACEMENT_IDENTIFIER];
/// The FDP Events log page keeps the newest events up to this number.
pub const FDP_EVENTS_MAX: usize = 63;

#[derive(Clone, Copy, Debug)]
pub struct ErrorLogEntry {
    /// Count of errors, with this one.
    pub error_count: u64,
    pub sqid: u16,
    pub sqe: Sqe,
    pub status: Status,
}

/// The drive behind all controllers.
pub struct Subsystem {
    /// The drive.
    pub engine: Arc<Engine>,
    /// Model, serial number and NQN.
    pub identity: Identity,
    pub(crate) geometry: Geometry,
    /// Whether the drive has a volatile write cache.
    pub(crate) is_volatile: bool,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub namespace: Option<Namespace>,
    /// IDs of all existing controllers, and the ID that was allocated last.
    cntlids: BTreeSet<u16>,
    last_cntlid: u16,
    pub io_controllers: BTreeSet<u16>,
    /// Count of failed commands, and of those with a media error.
    pub errors: u64,
    pub media_errors: u64,
    /// The newest first.
    pub error_log: VecDeque<ErrorLogEntry>,
    /// Count of changes of the active namespace.
    pub namespace_changes: u64,
    /// CDW10 of the last Sanitize; 0 if the drive was never sanitized.
    pub scdw10: u32,
    pub fdp: Fdp,
}

impl Subsystem {
    /// The subsystem of a drive.
    pub fn new(engine: Arc<Engine>, identity: Identity) -> Self {
        let geometry = engine.inspect(|state| state.drive.geometry());
        let DriveParameters { capacity: bytes, volatile_units, .. } = engine.parameters;
        let is_volatile = volatile_units > 0;
        // Factory state: one namespace of the whole capacity.
        let namespace =
            Namespace { lba_format: 0, bytes, handles: geometry.streams, is_attached: true };
        let state = State { namespace: Some(namespace), ..State::default() };
        Self { engine, identity, geometry, is_volatile, state: Mutex::new(state) }
    }

    /// Allocates a controller ID: the free one that was allocated the longest time ago. `None` if
    /// all are in use.
    pub(crate) fn allocate_cntlid(&self, is_io_controller: bool) -> Option<u16> {
        let mut state = self.lock();
        let after = state.last_cntlid + 1..=CNTLID_MAX;
        let cntlid = after.chain(1..=state.last_cntlid).find(|id| !state.cntlids.contains(id))?;
        state.cntlids.insert(cntlid);
        state.last_cntlid = cntlid;
        if is_io_controller {
            state.io_controllers.insert(cntlid);
        }
        Some(cntlid)
    }

    pub(crate) fn free_cntlid(&self, cntlid: u16) {
        let mut state = self.lock();
        state.io_controllers.remove(&cntlid);
        state.cntlids.remove(&cntlid);
    }

    /// The active namespace: allocated and attached.
    pub(crate) fn active_namespace(&self) -> Option<Namespace> {
        self.lock().active_namespace()
    }

    /// Changes the namespace. Counts a change if the active namespace differs afterwards.
    pub(crate) fn change_namespace<T>(&self, edit: impl FnOnce(&mut Option<Namespace>) -> T) -> T {
        let mut state = self.lock();
        let before = state.active_namespace();
        let result = edit(&mut state.namespace);
        state.namespace_changes += u64::from(state.active_namespace() != before);
        result
    }

    /// Capacity that is not allocated to the namespace, in bytes.
    pub(crate) fn unallocated_bytes(&self) -> u64 {
        let allocated = self.lock().namespace.map_or(0, |namespace| namespace.bytes);
        self.engine.parameters.capacity - allocated
    }

    /// Maximum Data Transfer Size (MDTS), as a power of two of 4 KiB pages.
    pub(crate) fn mdts(&self) -> u8 {
        let bytes = self.engine.parameters.max_transfer.clamp(8192, TRANSFER_MAX.into());
        (bytes / 4096).ilog2() as u8
    }

    /// The namespace with default features of a controller.
    pub fn view(&self) -> NamespaceView {
        let active = self.active_namespace();
        NamespaceView {
            is_ready: true,
            lbads: active.map_or(LBA_FORMATS[0], |namespace| namespace.lbads()),
            blocks: active.map_or(0, |namespace| namespace.blocks()),
            transfer_bytes_max: 4096 << self.mdts(),
            dulbe: false,
            write_through: false,
            handles: active.map_or_else(|| self.handles(), |namespace| namespace.handles),
        }
    }

    /// Adds a failed command to the error log.
    pub fn record_error(&self, sqid: u16, sqe: &Sqe, status: Status) {
        let mut state = self.lock();
        state.errors += 1;
        state.media_errors += u64::from(status.is_media_error());
        let entry = ErrorLogEntry { error_count: state.errors, sqid, sqe: *sqe, status };
        state.error_log.push_front(entry);
        state.error_log.truncate(ERROR_LOG_ENTRIES);
    }

    /// Count of failed commands, and of those with a media error.
    pub(crate) fn error_counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.errors, state.media_errors)
    }

    /// Number of reclaim unit handles; 0 without FDP, or while it is disabled.
    pub(crate) fn handles(&self) -> u32 {
        if self.lock().fdp.is_disabled { 0 } else { self.geometry.streams }
    }

    /// Records an FDP event now.
    pub(crate) fn record_fdp_event(&self, event_type: u8, pid: u16, ruhid: u16) {
        let timestamp = (self.engine.status().uptime.as_secs_f64() * 1e3) as u64;
        self.lock().fdp.record(FdpRecord { event_type, pid, ruhid, timestamp });
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }
}

impl State {
    fn active_namespace(&self) -> Option<Namespace> {
        self.namespace.filter(|namespace| namespace.is_attached)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FdpRecord {
    pub event_type: u8,
    /// The placement identifier in the host's command, and the handle that was used.
    pub pid: u16,
    pub ruhid: u16,
    /// Drive time in milliseconds.
    pub timestamp: u64,
}

/// The state of flexible data placement (FDP): enabled or not, and its events.
#[derive(Debug, Default)]
pub struct Fdp {
    pub is_disabled: bool,
    /// Handles and event types that are enabled.
    enabled: BTreeSet<(u32, u8)>,
    /// The oldest first.
    pub events: VecDeque<FdpRecord>,
}

impl Fdp {
    pub fn is_enabled(&self, handle: u32, event_type: u8) -> bool {
        self.enabled.contains(&(handle, event_type))
    }

    pub fn enable(&mut self, handle: u32, event_type: u8, enable: bool) {
        if enable {
            self.enabled.insert((handle, event_type));
        } else {
            self.enabled.remove(&(handle, event_type));
        }
    }

    /// Records an event if its type is enabled for the handle.
    pub fn record(&mut self, event: FdpRecord) {
        if self.is_enabled(event.ruhid.into(), event.event_type) {
            self.events.push_back(event);
            let excess = self.events.len().saturating_sub(FDP_EVENTS_MAX);
            self.events.drain(..excess);
        }
    }
}

/// Names and identifiers of a drive, the same whenever the same drive is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Model number (MN).
    pub model: String,
    /// Serial number (SN): 20 characters.
    pub serial: String,
    /// NQN of the NVM subsystem (SUBNQN).
    pub subnqn: String,
    /// UUID and NGUID of the namespace.
    pub uuid: [u8; 16],
}

impl Identity {
    /// The identity of a drive of this model; `origin` distinguishes drives of the same model.
    pub fn new(model: &str, origin: &str) -> Self {
        let text = model.bytes().chain([0]).chain(origin.bytes());
        let mut random = Random::new(fnv_1a(text), "identity");
        let serial = format!("SSDLAB{:014X}", random.next_u64() >> 8);
        let subsystem = random_uuid(&mut random);
        let subnqn = format!("nqn.2014-08.org.nvmexpress:uuid:{}", hyphenated(subsystem));
        Self { model: model.into(), serial, subnqn, uuid: random_uuid(&mut random) }
    }
}

/// A random UUID (version 4).
fn random_uuid(random: &mut Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

fn hyphenated(uuid: [u8; 16]) -> String {
    let number = u128::from_be_bytes(uuid);
    let (first, last) = (number >> 96, number & 0xffff_ffff_ffff);
    let group = |shift: u32| number >> shift & 0xffff;
    format!("{first:08x}-{:04x}-{:04x}-{:04x}-{last:012x}", group(80), group(64), group(48))
}
