//! `Lists`: commands, flash operations and moves since the last frame; `Watched`: the device that
//! records them.

use ssdlab_device::{Completion, Device, DeviceError, LBA_BYTES, Lba, Op, Request, Wait};
use ssdlab_flash::Ssd;
use ssdlab_time::Nanos;

/// The most rows of a list that a frame shows; older ones are dropped.
pub const ROWS_MAX: usize = 4096;

/// The number of the command of what no command caused.
const NO_COMMAND: f64 = -1.0;

pub type Row = [f64; 8];

/// What happened since the last frame. An operation that is not in a superblock has superblock -1.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    pub commands: Latest,
    pub operations: Latest,
    pub moves: Latest,
}

/// The latest rows of a list.
#[derive(Clone, Debug, Default)]
pub struct Latest(Vec<Row>);

impl Latest {
    fn add(&mut self, row: Row) {
        if self.0.len() == 2 * ROWS_MAX {
            self.0.drain(..ROWS_MAX);
        }
        self.0.push(row);
    }

    /// Moves the latest rows to `rows`.
    pub fn take(&mut self, rows: &mut Vec<Row>) {
        rows.clear();
        rows.extend_from_slice(&self.0[self.0.len().saturating_sub(ROWS_MAX)..]);
        self.0.clear();
    }
}

impl Lists {
    /// Takes what the drive has recorded, which this command caused.
    fn take_activity(&mut self, ssd: &mut Ssd, command: f64) {
        let activity = ssd.take_activity();
        for each in activity.operations {
            let (superblock, page) =
                each.page.map_or((-1.0, 0.0), |(block, page)| (f64::from(block), f64::from(page)));
            let [begins, ends] = [each.span.start, each.span.end].map(|time| time.get() as f64);
            let (kind, die) = (f64::from(each.kind.code()), f64::from(each.die));
            self.operations.add([kind, die, superblock, page, begins, ends, command, 0.0]);
        }
        for each in activity.moves {
            let [from, to, units] = [each.from, each.to, each.units].map(f64::from);
            let (cause, at) = (f64::from(each.cause as u8), each.at.get() as f64);
            self.moves.add([from, to, units, cause, at, command, 0.0, 0.0]);
        }
    }

    /// Takes what the drive has recorded outside of commands.
    pub fn take_rest(&mut self, ssd: &mut Ssd) {
        self.take_activity(ssd, NO_COMMAND);
    }
}

/// A twin whose commands are listed.
pub struct Watched<'a> {
    pub ssd: &'a mut Ssd,
    pub lists: &'a mut Lists,
    /// Requests that had completed before this turn.
    pub completed: u64,
}

impl Device for Watched<'_> {
    fn capacity_bytes(&self) -> u64 {
        self.ssd.capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.ssd.sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.ssd.queue_depth()
    }

    fn now(&self) -> Nanos {
        self.ssd.now()
    }

    fn flash_write_bytes(&self) -> Option<u64> {
        self.ssd.flash_write_bytes()
    }

    fn announce(&mut self, op: Op, lba: Lba) {
        self.ssd.announce(op, lba);
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        DeviceError::check(&request, self.ssd.capacity_bytes(), LBA_BYTES)?;
        let number = (self.completed + self.ssd.in_flight() as u64) as f64;
        let Completion { submitted, completed, outcome, .. } = self.ssd.submit_timed(request);
        let errno = outcome.err().map_or(0.0, |error| f64::from(error.errno));
        let op = request.op.index() as f64;
        let [offset, bytes] = [request.lba.bytes(), request.bytes()].map(|value| value as f64);
        let [begun, ends] = [submitted, completed].map(|time| time.get() as f64);
        self.lists.commands.add([number, op, offset, bytes, begun, ends, errno, 0.0]);
        self.lists.take_activity(self.ssd, number);
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.ssd.reap(wait, done)
    }
}
