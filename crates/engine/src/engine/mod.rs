//! `Engine`: the drive and its bytes together; what each command of a client does to both.

mod admin;

use std::borrow::Cow;
use std::io;
use std::time::Instant;

use ssdlab_time::Nanos;

pub use admin::{BlockStatusFn, DriveStatus, ExtentQuery};

use crate::command::{Command, CommandResult, DriveParameters, Operation};
use crate::drive::{Counter, Drive, PowerCutLoss};
use crate::errno::EIO;
use crate::fault::{WriteCorruption, placed};
use crate::meter::WriteHintCounts;
use crate::pacing::{Clock, ReplyLateness, wall_clock_now};
use crate::payload::Payload;
use crate::power::{Epoch, PowerCutPlan, PowerStatus, State};
use crate::send_buffer::SendBuffer;
use crate::state::{Accepted, DriveState};
use crate::store::{ReceiveMemory, Store, WriteLog};
use crate::sync::{Mutex, MutexGuard, RwLock};

/// A served drive, shared by all connections.
pub struct Engine {
    busy: Mutex<DriveState>,
    store: Store,
    clock: Clock,
    parameters: DriveParameters,
    /// Held to read while commands run; to write by a power cut, which stands between them.
    gate: RwLock<()>,
    log: Option<Mutex<WriteLog>>,
}

impl Engine {
    /// A drive with its bytes.
    pub fn new(drive: Box<dyn Drive>, store: Store, clock: Clock) -> Self {
        let parameters = DriveParameters::of(&*drive);
        let (busy, gate) = (Mutex::new(DriveState::new(drive)), RwLock::new(()));
        Self { busy, store, clock, parameters, gate, log: None }
    }

    /// A drive whose data is kept in memory and whose replies are sent at once.
    pub fn in_memory(drive: impl Drive + 'static) -> Self {
        let (capacity, unit) = (drive.capacity_bytes(), drive.unit_bytes());
        let store = Store::in_memory(capacity, unit, drive.volatile_units());
        Self::new(Box::new(drive), store, Clock::unpaced())
    }

    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        self.parameters.unit_bytes
    }

    /// What the drive has counted, and writes by the form in which they said where they belong.
    pub fn counters(&self) -> Vec<Counter> {
        let busy = self.lock();
        let mut counters = busy.drive.counters();
        let WriteHintCounts { plain, stream, append, overwrite } = busy.meter.hinted();
        counters.extend([
            ("writes_plain", Some(plain as f64)),
            ("writes_of_stream", Some(stream as f64)),
            ("writes_append", Some(append as f64)),
            ("writes_overwrite", Some(overwrite as f64)),
        ]);
        counters
    }

    /// How late answers left that were to wait for their time.
    pub fn reply_lateness(&self) -> ReplyLateness {
        self.clock.reply_lateness()
    }

    /// The drive's clock against the wall's.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether all that is not mapped reads as zeros. Not where trims keep old data, and not where
    /// a file had content that the map lacks.
    pub fn unmapped_is_zero(&self) -> bool {
        self.parameters.trims_to_zeros && self.store.has_complete_map()
    }

    /// Whether a command can be done at all.
    pub fn check(&self, command: &Command) -> CommandResult {
        command.check(self.parameters.capacity)
    }

    /// Memory to receive a write's bytes in, that becomes the drive's without a copy; `None` where
    /// its bytes are wanted in a row.
    pub fn receive_memory(&self, command: &Command) -> Option<ReceiveMemory> {
        let whole =
            command.operation == Operation::Write && self.parameters.keeps_units_whole(command);
        if !whole || self.log.is_some() {
            return None;
        }
        self.store.receive_memory(command.offset, command.length.into())
    }

    /// Does commands that were put together: the drive has them in flight at once. `commands` have
    /// passed `check`; `payload` gives a write's bytes, `into` gets a way to
    /// add a read's to a reply.
    ///
    /// Returns those that were taken, from the first on: paced, a full queue takes no more until
    /// `next_free`. `None` if the epoch is over, or ends with one of them: none is ever answered.
    pub fn perform<'a, P: Into<Payload<'a>>>(
        &self,
        epoch: Epoch,
        commands: &[Command],
        payload: impl Fn(usize) -> P,
        mut into: impl FnMut(usize, &Accepted, &dyn Fn(&mut SendBuffer) -> CommandResult),
    ) -> Option<Vec<Accepted>> {
        let _running = self.gate.read().expect("no panic while locked");
        let (mut taken, now, has_power) = {
            let mut busy = self.lock_in(epoch)?;
            let taken = busy.take(commands, &self.parameters, &self.clock);
            (taken, busy.drive.now(), busy.power.epoch().is_some())
        };
        for (number, command) in commands[..taken.len()].iter().enumerate() {
            if taken[number].result.is_err() {
                continue;
            }
            if command.operation == Operation::Read {
                let (offset, length) = (command.offset, u64::from(command.length));
                into(number, &taken[number], &|out| {
                    self.store.append(offset, length, out).map_err(|_| EIO)
                });
            } else {
                let payload = || payload(number).into();
                taken[number].result = self.change(command, payload, &taken[number]);
            }
        }
        self.store.drop_durable(now);
        has_power.then_some(taken)
    }

    /// When the drive's queue has room again, where it is full.
    pub fn next_free(&self) -> Option<Instant> {
        self.lock().drive.next_completion().and_then(|time| self.clock.due(time, 0))
    }

    /// Plans a power cut, in place of an earlier plan.
    ///
    /// # Panics
    /// Where the plan is for a write before the next.
    pub fn plan_cut(&self, plan: Option<PowerCutPlan>) {
        assert!(plan.is_none_or(|plan| plan.after_writes > 0), "the past cannot be cut");
        self.lock().power.plan(plan);
    }

    /// How its power is.
    pub fn power(&self) -> PowerStatus {
        self.lock().power.status()
    }

    /// The epoch that commands carry; `None` while the drive takes none.
    pub fn epoch(&self) -> Option<Epoch> {
        self.lock().power.epoch()
    }

    /// Begins a cut, as a planned one begins by itself: no command and no connection is taken until
    /// `finish_cut`. Returns false, and does nothing, if the power is not on.
    pub fn begin_cut(&self, then_on: bool) -> bool {
        let mut busy = self.lock();
        let is_on = busy.power.state == State::On;
        if is_on {
            busy.power.state = State::Failing { then_on };
        }
        is_on
    }

    /// Whether a cut has begun and is not finished.
    pub fn is_failing(&self) -> bool {
        matches!(self.lock().power.state, State::Failing { .. })
    }

    /// Finishes a cut that has begun: what was not in flash is as it was before, and the epoch is
    /// over. `None` if none has begun.
    ///
    /// # Panics
    /// Where the content's file cannot be written: a cut must not end half way.
    pub fn finish_cut(&self) -> Option<PowerCutLoss> {
        let _alone = self.gate.write().expect("no panic while locked");
        let mut busy = self.lock();
        let State::Failing { then_on } = busy.power.state else { return None };
        // A reply may have left since the cut began: its command was done before the cut comes.
        let now = self.clock.acknowledged_time(busy.drive.now());
        busy.advance(now);
        let cut = busy.drive.power_cut();
        busy.clear_in_flight();
        self.store.roll_back(&cut.lost).expect("the content can be written");
        self.log_cut(&cut).expect("the log can be written");
        let state = if then_on { State::On } else { State::Off(wall_clock_now()) };
        busy.power.was_cut(state, cut.clone());
        self.clock.begin_idle();
        Some(cut)
    }

    /// Turns the power on again; false where it was on. Time without power is none for the drive.
    pub fn power_on(&self) -> bool {
        let mut busy = self.lock();
        let State::Off(since) = busy.power.state else { return false };
        self.clock.resume_after(since);
        busy.power.state = State::On;
        true
    }

    fn lock(&self) -> MutexGuard<'_, DriveState> {
        self.busy.lock().expect("no panic while locked")
    }

    /// The drive, for a command of an epoch; `None` if that is over.
    fn lock_in(&self, epoch: Epoch) -> Option<MutexGuard<'_, DriveState>> {
        Some(self.lock()).filter(|busy| busy.power.epoch() == Some(epoch))
    }

    fn lock_log(&self) -> Option<MutexGuard<'_, WriteLog>> {
        self.log.as_ref().map(|log| log.lock().expect("no panic while locked"))
    }

    /// Logs a cut by name, and what units hold after it.
    fn log_cut(&self, cut: &PowerCutLoss) -> io::Result<()> {
        let Some(mut log) = self.lock_log() else { return Ok(()) };
        log.mark("power-cut")?;
        for lost in &cut.lost {
            let offset = lost.unit * self.parameters.unit_bytes;
            log.write(offset, &self.store.read(offset, self.parameters.unit_bytes)?, false)?;
        }
        log.finish()
    }

    /// Does to the bytes what a command that succeeded did to the drive.
    fn change<'a>(
        &self,
        command: &Command,
        payload: impl FnOnce() -> Payload<'a>,
        taken: &Accepted,
    ) -> CommandResult {
        let command = &placed(command, taken.corruption);
        let (offset, end, done) = (command.offset, command.end(), taken.completed);
        // Held meanwhile: the log has changes in the order in which they are made.
        let log = self.lock_log();
        let mut written: Cow<'a, [u8]> = Cow::Borrowed(b"");
        let changed = match command.operation {
            Operation::Read | Operation::Cache => return Ok(()),
            Operation::Flush => self.store.sync(),
            Operation::Write => match (payload(), taken.corruption) {
                (Payload::Received(received), None) => {
                    self.store.adopt(received, done);
                    Ok(())
                }
                (payload, corruption) => {
                    self.twisted(offset, payload, corruption).and_then(|bytes| {
                        written = bytes;
                        self.write(offset, &written, done)
                    })
                }
            },
            Operation::Trim if !self.parameters.trims_to_zeros => return Ok(()),
            Operation::Trim => self.trim(offset, end),
            Operation::Zero { may_trim } if may_trim && self.parameters.trims_to_zeros => {
                let (first, last) = self.parameters.whole_units(offset, end);
                if first < last {
                    let head = self.zero(offset, first, done);
                    let whole = self.trim(first, last);
                    head.and(whole).and(self.zero(last, end, done))
                } else {
                    self.zero(offset, end, done)
                }
            }
            Operation::Zero { .. } => self.zero(offset, end, done),
        };
        let logged = changed.and_then(|()| match log {
            Some(log) => self.log(log, command, &written),
            None => Ok(()),
        });
        logged.map_err(|_| EIO)
    }

    /// Notes in the log what a command has changed.
    fn log(
        &self,
        mut log: MutexGuard<'_, WriteLog>,
        command: &Command,
        bytes: &[u8],
    ) -> io::Result<()> {
        match command.operation {
            Operation::Read | Operation::Cache => Ok(()),
            Operation::Write => log.write(command.offset, bytes, command.durable),
            Operation::Zero { .. } => log.zero(command.offset..command.end(), command.durable),
            Operation::Trim => {
                let (first, last) = self.parameters.whole_units(command.offset, command.end());
                if first < last { log.zero(first..last, command.durable) } else { Ok(()) }
            }
            Operation::Flush => log.flush(),
        }
    }

    /// The bytes that a write really leaves.
    fn twisted<'a>(
        &self,
        offset: u64,
        payload: Payload<'a>,
        corruption: Option<WriteCorruption>,
    ) -> io::Result<Cow<'a, [u8]>> {
        let bytes = payload.into_contiguous();
        let kept = match corruption {
            None | Some(WriteCorruption::Elsewhere(_)) => return Ok(bytes),
            Some(WriteCorruption::Torn(kept)) => kept as usize,
            Some(WriteCorruption::Lost) => 0,
        };
        let mut left = self.store.read(offset, bytes.len() as u64)?;
        left[..kept].copy_from_slice(&bytes[..kept]);
        Ok(left.into())
    }

    fn write(&self, offset: u64, bytes: &[u8], done: Nanos) -> io::Result<()> {
        self.parameters.pieces(offset, offset + bytes.len() as u64).try_for_each(|piece| {
            let here = (piece.start - offset) as usize..(piece.end - offset) as usize;
            self.store.write(piece.start, &bytes[here], done)
        })
    }

    fn zero(&self, start: u64, end: u64, done: Nanos) -> io::Result<()> {
        self.parameters.pieces(start, end).try_for_each(|piece| self.store.zero(piece, done))
    }

    fn trim(&self, start: u64, end: u64) -> io::Result<()> {
        let (first, last) = self.parameters.whole_units(start, end);
        if first >= last {
            return Ok(());
        }
        self.store
            .trim(first / self.parameters.unit_bytes, (last - first) / self.parameters.unit_bytes)
    }
}
