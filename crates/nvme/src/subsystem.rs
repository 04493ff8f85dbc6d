//! `Subsystem`: the drive behind all controllers: its identity, its namespace, its error log.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ssdlab_engine::{DriveParameters, Engine, Geometry, TRANSFER_MAX};

use super::fdp::{Fdp, Record};
use super::identity::Identity;
use super::namespace::{LBA_FORMATS, Namespace};
use super::sqe::Sqe;
use super::status::Status;
use super::view::NamespaceView;

/// The highest controller ID; higher ones are reserved.
const CNTLID_MAX: u16 = 0xffef;
/// Entries of the Error Information log page.
pub const ERROR_LOG_ENTRIES: usize = 64;

/// An entry of the error log.
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
    fdp: Mutex<Fdp>,
    errors: AtomicU64,
    media_errors: AtomicU64,
}

struct State {
    namespace: Option<Namespace>,
    /// IDs of all existing controllers, and the ID that was allocated last.
    cntlids: BTreeSet<u16>,
    last_cntlid: u16,
    /// IDs of the I/O controllers.
    io_controllers: BTreeSet<u16>,
    /// The newest first.
    error_log: VecDeque<ErrorLogEntry>,
    /// Count of changes of the attached namespace.
    changes: u64,
    /// CDW10 of the last Sanitize; 0 if the drive was never sanitized.
    scdw10: u32,
}

impl Subsystem {
    /// The subsystem of a drive.
    pub fn new(engine: Arc<Engine>, identity: Identity) -> Self {
        let geometry = engine.inspect(|state| state.drive.geometry());
        let DriveParameters { capacity: bytes, volatile_units, .. } = engine.parameters();
        let is_volatile = volatile_units > 0;
        // Factory state: one namespace of the whole capacity.
        let namespace =
            Namespace { lba_format: 0, bytes, handles: geometry.streams, is_attached: true };
        let state = Mutex::new(State {
            namespace: Some(namespace),
            cntlids: BTreeSet::new(),
            last_cntlid: 0,
            io_controllers: BTreeSet::new(),
            error_log: VecDeque::new(),
            changes: 0,
            scdw10: 0,
        });
        let (errors, media_errors, fdp) = Default::default();
        Self { engine, identity, geometry, is_volatile, state, fdp, errors, media_errors }
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

    /// Frees the ID of a controller.
    pub(crate) fn free_cntlid(&self, cntlid: u16) {
        let mut state = self.lock();
        state.io_controllers.remove(&cntlid);
        state.cntlids.remove(&cntlid);
    }

    /// IDs of the I/O controllers.
    pub(crate) fn io_controllers(&self) -> BTreeSet<u16> {
        self.lock().io_controllers.clone()
    }

    /// The allocated namespace.
    pub(crate) fn allocated_namespace(&self) -> Option<Namespace> {
        self.lock().namespace
    }

    /// The active namespace: allocated and attached.
    pub(crate) fn active_namespace(&self) -> Option<Namespace> {
        self.allocated_namespace().filter(|namespace| namespace.is_attached)
    }

    /// Changes the namespace. Counts a change if the active namespace differs afterwards.
    pub(crate) fn change_namespace<T>(
        &self,
        change: impl FnOnce(&mut Option<Namespace>) -> T,
    ) -> T {
        let mut state = self.lock();
        let active = |state: &State| state.namespace.filter(|namespace| namespace.is_attached);
        let before = active(&state);
        let result = change(&mut state.namespace);
        state.changes += u64::from(active(&state) != before);
        result
    }

    /// Capacity that is not allocated to the namespace, in bytes.
    pub(crate) fn unallocated_bytes(&self) -> u64 {
        let allocated = self.allocated_namespace().map_or(0, |namespace| namespace.bytes);
        self.engine.parameters().capacity - allocated
    }

    /// Count of changes of the active namespace.
    pub(crate) fn namespace_changes(&self) -> u64 {
        self.lock().changes
    }

    /// CDW10 of the last Sanitize; 0 if the drive was never sanitized.
    pub(crate) fn scdw10(&self) -> u32 {
        self.lock().scdw10
    }

    /// Records a completed Sanitize.
    pub(crate) fn set_scdw10(&self, cdw10: u32) {
        self.lock().scdw10 = cdw10;
    }

    /// Maximum Data Transfer Size (MDTS), as a power of two of 4 KiB pages.
    pub(crate) fn mdts(&self) -> u8 {
        let bytes = self.engine.parameters().max_transfer.clamp(8192, TRANSFER_MAX.into());
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
        let error_count = self.errors.fetch_add(1, Ordering::Relaxed) + 1;
        self.media_errors.fetch_add(u64::from(status.is_media_error()), Ordering::Relaxed);
        let mut state = self.lock();
        state.error_log.push_front(ErrorLogEntry { error_count, sqid, sqe: *sqe, status });
        state.error_log.truncate(ERROR_LOG_ENTRIES);
    }

    /// Count of failed commands, and of those with a media error.
    pub(crate) fn error_counts(&self) -> (u64, u64) {
        (self.errors.load(Ordering::Relaxed), self.media_errors.load(Ordering::Relaxed))
    }

    /// The newest failed commands, the newest first.
    pub(crate) fn error_log(&self) -> Vec<ErrorLogEntry> {
        self.lock().error_log.iter().copied().collect()
    }

    /// Number of reclaim unit handles; 0 without FDP, or while it is disabled.
    pub(crate) fn handles(&self) -> u32 {
        if self.fdp().is_disabled { 0 } else { self.geometry.streams }
    }

    /// Records an FDP event now.
    pub(crate) fn record_fdp_event(&self, event_type: u8, pid: u16, ruhid: u16) {
        let timestamp = (self.engine.status().uptime.as_secs_f64() * 1e3) as u64;
        self.fdp().record(Record { event_type, pid, ruhid, timestamp });
    }

    pub(crate) fn fdp(&self) -> MutexGuard<'_, Fdp> {
        self.fdp.lock().expect("no panic while locked")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }
}
