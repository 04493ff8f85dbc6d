//! `Subsystem`: the drive behind all controllers: its names, its namespace, what went wrong.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::identity::Identity;
use super::namespace::Namespace;
use super::placement::Placement;
use super::sqe::Sqe;
use super::status::Status;
use ssdlab_engine::Geometry;
use ssdlab_engine::{Engine, TRANSFER_MAX};

/// Block sizes that the namespace can be formatted with, as powers of two; by format number.
pub const FORMATS: [u32; 2] = [9, 12];
/// The only namespace.
pub const NAMESPACE: u32 = 1;
/// In place of a namespace: all of them.
pub const ALL: u32 = u32::MAX;
/// The highest number of a controller; those above mean something else.
const NUMBER_MAX: u16 = 0xffef;
/// So many errors are remembered.
pub const ERRORS_MAX: usize = 64;

/// What a command finds: the namespace's format and what its controller was told.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Whether the controller was enabled.
    pub ready: bool,
    /// A block has so many bytes, as a power of two.
    pub shift: u32,
    /// How many blocks the namespace has; 0 where none is found.
    pub blocks: u64,
    /// The longest transfer in bytes.
    pub transfer_max: u32,
    /// Whether to read what was never written, or was trimmed, is an error.
    pub unwritten_fails: bool,
    /// Whether each write is to be durable: the write cache was turned off.
    pub writes_through: bool,
    /// Streams that the namespace's writes are kept apart by; 0 where none.
    pub streams: u32,
}

/// A command that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// How many had failed with it.
    pub number: u64,
    /// Where it was submitted.
    pub queue: u16,
    pub sqe: Sqe,
    pub status: Status,
}

/// The drive behind all controllers.
pub struct Subsystem {
    /// The drive.
    pub engine: Arc<Engine>,
    /// Its names.
    pub identity: Identity,
    pub(super) geometry: Geometry,
    /// Whether a power cut may take writes that were answered.
    pub(super) is_volatile: bool,
    state: Mutex<State>,
    placement: Mutex<Placement>,
    errors: AtomicU64,
    media_errors: AtomicU64,
}

struct State {
    namespace: Option<Namespace>,
    /// The numbers of all controllers that there are, and the last that was given.
    numbers: BTreeSet<u16>,
    last_number: u16,
    /// Those of them that hosts can attach the namespace to.
    controllers: BTreeSet<u16>,
    failed: VecDeque<Failed>,
    /// How often hosts found another namespace than before, or none.
    changes: u64,
    /// What the last sanitize was asked for; 0 where there was none.
    sanitized: u32,
}

impl Subsystem {
    /// The subsystem of a drive.
    pub fn new(engine: Arc<Engine>, identity: Identity) -> Self {
        let (geometry, is_volatile) = (engine.geometry(), engine.is_volatile());
        let bytes = engine.shape().capacity;
        // As most drives come: all of it in one namespace.
        let whole = Namespace { format: 0, bytes, handles: geometry.streams, is_attached: true };
        let state = Mutex::new(State {
            namespace: Some(whole),
            numbers: BTreeSet::new(),
            last_number: 0,
            controllers: BTreeSet::new(),
            failed: VecDeque::new(),
            changes: 0,
            sanitized: 0,
        });
        let (errors, media_errors, placement) = Default::default();
        Self { engine, identity, geometry, is_volatile, state, placement, errors, media_errors }
    }

    /// A number for a new controller, one that no living controller has; the one that was free for
    /// the longest time. `None` where all are taken.
    pub(crate) fn new_number(&self) -> Option<u16> {
        let mut state = self.lock();
        let after = state.last_number + 1..=NUMBER_MAX;
        let number = after.chain(1..=state.last_number).find(|n| !state.numbers.contains(n))?;
        state.numbers.insert(number);
        state.last_number = number;
        Some(number)
    }

    /// Notes a controller that hosts can attach the namespace to.
    pub(crate) fn note_controller(&self, number: u16) {
        self.lock().controllers.insert(number);
    }

    /// Forgets a controller.
    pub(crate) fn forget_controller(&self, number: u16) {
        let mut state = self.lock();
        state.controllers.remove(&number);
        state.numbers.remove(&number);
    }

    /// The controllers that there are, by number.
    pub(crate) fn controllers(&self) -> BTreeSet<u16> {
        self.lock().controllers.clone()
    }

    /// The namespace, if there is one.
    pub(crate) fn namespace(&self) -> Option<Namespace> {
        self.lock().namespace
    }

    /// The namespace, if it is attached.
    pub(crate) fn found(&self) -> Option<Namespace> {
        self.namespace().filter(|namespace| namespace.is_attached)
    }

    /// Changes the namespace; hosts hear of it where that is another one to them.
    pub(crate) fn change_namespace<T>(
        &self,
        change: impl FnOnce(&mut Option<Namespace>) -> T,
    ) -> T {
        let mut state = self.lock();
        let found = |state: &State| state.namespace.filter(|namespace| namespace.is_attached);
        let before = found(&state);
        let done = change(&mut state.namespace);
        state.changes += u64::from(found(&state) != before);
        done
    }

    /// Bytes of the drive that no namespace has.
    pub(crate) fn unallocated(&self) -> u64 {
        self.engine.shape().capacity - self.namespace().map_or(0, |namespace| namespace.bytes)
    }

    /// How often the namespace was changed.
    pub(crate) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// What the last sanitize was asked for; 0 where there was none.
    pub(crate) fn sanitized(&self) -> u32 {
        self.lock().sanitized
    }

    /// Notes that a sanitize was done.
    pub(crate) fn note_sanitized(&self, asked: u32) {
        self.lock().sanitized = asked;
    }

    /// The longest transfer as a power of two of 4 KiB pages.
    pub(crate) fn transfer_shift(&self) -> u8 {
        let most = self.engine.shape().max_transfer.clamp(8192, TRANSFER_MAX.into());
        (most / 4096).ilog2() as u8
    }

    /// What a command finds whose controller was told nothing.
    pub fn view(&self) -> View {
        let found = self.found();
        View {
            ready: true,
            shift: found.map_or(FORMATS[0], |namespace| namespace.shift()),
            blocks: found.map_or(0, |namespace| namespace.blocks()),
            transfer_max: 4096 << self.transfer_shift(),
            unwritten_fails: false,
            writes_through: false,
            streams: found.map_or_else(|| self.streams(), |namespace| namespace.handles),
        }
    }

    /// Notes a command that failed.
    pub fn record_error(&self, queue: u16, sqe: &Sqe, status: Status) {
        let number = self.errors.fetch_add(1, Ordering::Relaxed) + 1;
        self.media_errors.fetch_add(u64::from(status.is_media_error()), Ordering::Relaxed);
        let mut state = self.lock();
        state.failed.push_front(Failed { number, queue, sqe: *sqe, status });
        state.failed.truncate(ERRORS_MAX);
    }

    /// How many commands failed, and how many because of the medium.
    pub(crate) fn errors(&self) -> (u64, u64) {
        (self.errors.load(Ordering::Relaxed), self.media_errors.load(Ordering::Relaxed))
    }

    /// Those that failed last, the newest first.
    pub(crate) fn failed(&self) -> Vec<Failed> {
        self.lock().failed.iter().copied().collect()
    }

    pub(super) fn placement(&self) -> MutexGuard<'_, Placement> {
        self.placement.lock().expect("no panic while locked")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }
}
