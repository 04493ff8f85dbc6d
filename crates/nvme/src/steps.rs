//! I/O commands that are several of the drive's: ranges, compare, copy; and handles of placement.

use std::time::{Duration, Instant};

use ssdlab_device::Hint;

use super::controller::Controller;
use super::io::{COPY_RANGES_MAX, copy_blocks_max, fits};
use super::opcode::io::{
    COMPARE, COPY, DATASET_MANAGEMENT, IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND,
};
use super::sqe::{HostData, Sqe};
use super::status::Status;
use super::subsystem::View;
use ssdlab_engine::SendBuffer;
use ssdlab_engine::pacing::wall;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_engine::{Command, Operation};

/// How steps ended, and when their answer may leave.
pub type Done = (Result<(), Status>, Option<Instant>);

/// What was read, or why not, and when the answer may leave.
type Read = (Result<Vec<u8>, Status>, Option<Instant>);

/// Of a dataset management: its ranges are deallocated.
const DEALLOCATES: u32 = 1 << 2;
const RANGES_MAX: usize = 256;
/// A range of a dataset management, and of a copy.
const RANGE_BYTES: usize = 16;
const COPY_RANGE_BYTES: usize = 32;
/// A trim of the drive is at most so long: a multiple of every mapping unit.
const TRIM_BYTES: u64 = 1 << 30;
/// A full queue is looked at again after so long where it does not say when.
const AGAIN: Duration = Duration::from_micros(50);

impl Controller {
    /// Does commands of the drive, however many its queue takes at once, with their `payloads`.
    /// `None` if the epoch is over.
    pub(super) fn perform_all(&self, commands: &[Command], payloads: &[&[u8]]) -> Option<Done> {
        let (mut done, mut due, mut ended) = (0, None, Ok(()));
        while done < commands.len() {
            let taken = self.subsystem.engine.perform(
                self.epoch,
                &commands[done..],
                |number| payloads[done + number],
                |_, _, _| {},
            )?;
            for (command, taken) in commands[done..].iter().zip(&taken) {
                let status =
                    taken.ended.map_err(|errno| Status::from_errno(errno, command.operation));
                ended = ended.and(status);
                due = due.max(taken.due);
            }
            done += taken.len();
            self.wait_for_room(done < commands.len() && taken.is_empty());
        }
        Some((ended, due))
    }

    /// Reads what a command asks for.
    pub(super) fn read(&self, command: Command) -> Option<Read> {
        loop {
            let mut message = SendBuffer::default();
            let mut ended = Ok(());
            let taken = self.subsystem.engine.perform(
                self.epoch,
                &[command],
                |_| &[][..],
                |_, _, read| ended = read(&mut message),
            )?;
            let Some(taken) = taken.first() else {
                self.wait_for_room(true);
                continue;
            };
            let ended = taken.ended.and(ended);
            let mut bytes = Vec::with_capacity(command.length as usize);
            message.send(&mut bytes).expect("memory takes all");
            let read = ended.map(|()| bytes);
            return Some((
                read.map_err(|errno| Status::from_errno(errno, Operation::Read)),
                taken.due,
            ));
        }
    }

    fn wait_for_room(&self, is_full: bool) {
        if is_full {
            let next = self.subsystem.engine.next_free().unwrap_or(wall() + AGAIN);
            // Where the system cannot wait, it is tried again at once.
            let _ = wait_precisely(next, self.subsystem.engine.clock().spin());
        }
    }

    /// Does a command that is several of the drive's; `None` if the epoch is over.
    pub(super) fn steps(&self, view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Option<Done> {
        match sqe.opcode() {
            COMPARE => self.compare(view, sqe, data),
            DATASET_MANAGEMENT => match trims(view, sqe, data) {
                Ok(trims) => self.perform_all(&trims, &[]),
                Err(status) => Some((Err(status), None)),
            },
            COPY => self.copy(view, sqe, data),
            IO_MANAGEMENT_RECEIVE => Some((self.tell_handles(view, sqe, data), None)),
            IO_MANAGEMENT_SEND => self.management(view, sqe, data),
            _ => Some((Err(Status::INVALID_OPCODE), None)),
        }
    }

    fn compare(&self, view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Option<Done> {
        let checked = view.command(Operation::Read, sqe).and_then(|command| {
            fits(&command, data.payload().len())?;
            self.check(view, &command).map(|()| command)
        });
        let command = match checked {
            Ok(command) => command,
            Err(status) => return Some((Err(status), None)),
        };
        let (read, due) = self.read(command)?;
        let ended = read.and_then(|bytes| {
            if bytes == data.payload()[..bytes.len()] {
                Ok(())
            } else {
                Err(Status::COMPARE_FAILURE)
            }
        });
        Some((ended, due))
    }

    /// Copies ranges one after the other to where a block begins.
    fn copy(&self, view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Option<Done> {
        let sources = match sources(view, sqe, data) {
            Ok(sources) => sources,
            Err(status) => return Some((Err(status), None)),
        };
        let durable = sqe.cdw(12) >> 30 & 1 != 0 || view.writes_through;
        let mut at = sqe.cdw64(10);
        let mut copies = Vec::with_capacity(sources.len());
        for (first, blocks) in sources {
            let both =
                view.range(first, blocks).and_then(|from| Ok((from, view.range(at, blocks)?)));
            let checked = both.and_then(|(from, to)| {
                let source = Command::new(Operation::Read, from.0, from.1);
                self.check(view, &source)?;
                let write = Command::new(Operation::Write, to.0, to.1);
                Ok((source, Command { durable, hint: Hint::None, ..write }))
            });
            match checked {
                Ok(copy) => copies.push(copy),
                Err(status) => return Some((Err(status), None)),
            }
            at += blocks;
        }
        // One after the other: no more memory is used than for one transfer.
        let mut due = None;
        for (source, write) in copies {
            let (read, read_by) = self.read(source)?;
            due = due.max(read_by);
            let bytes = match read {
                Ok(bytes) => bytes,
                Err(status) => return Some((Err(status), due)),
            };
            let (ended, written_by) = self.perform_all(&[write], &[&bytes])?;
            due = due.max(written_by);
            if ended.is_err() {
                return Some((ended, due));
            }
        }
        Some((Ok(()), due))
    }

    fn management(&self, view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Option<Done> {
        Some(match sqe.cdw(10) as u8 {
            0 => (Ok(()), None),
            1 => (self.update_handles(view, sqe, data.payload())?, None),
            _ => (Err(Status::INVALID_FIELD), None),
        })
    }

    fn tell_handles(&self, view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Result<(), Status> {
        match sqe.cdw(10) as u8 {
            0 => Ok(()),
            1 => {
                let bytes = (sqe.cdw(11) as usize).saturating_add(1).saturating_mul(4);
                if data.length() < bytes {
                    return Err(Status::DATA_SGL_LENGTH_INVALID);
                }
                let page = self.handles_status(view);
                let here = page.bytes().len().min(bytes);
                data.send(&page.bytes()[..here]);
                data.send(&vec![0; bytes - here]);
                Ok(())
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

/// The trims of a dataset management; none where it only says how its ranges will be used.
fn trims(view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Result<Vec<Command>, Status> {
    let count = (sqe.cdw(10) & 0xff) as usize + 1;
    assert!(count <= RANGES_MAX, "a byte counts them");
    let ranges =
        data.payload().get(..count * RANGE_BYTES).ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
    let mut trims = Vec::with_capacity(count);
    for range in ranges.chunks_exact(RANGE_BYTES) {
        let blocks = u64::from(u32::from_le_bytes(range[4..8].try_into().expect("four bytes")));
        let first = u64::from_le_bytes(range[8..16].try_into().expect("eight bytes"));
        let end = first.checked_add(blocks).filter(|end| *end <= view.blocks);
        let end = end.ok_or(Status::LBA_OUT_OF_RANGE)? << view.shift;
        if sqe.cdw(11) & DEALLOCATES == 0 {
            continue;
        }
        let mut from = first << view.shift;
        while from < end {
            let to = end.min((from / TRIM_BYTES + 1) * TRIM_BYTES);
            trims.push(Command::new(Operation::Trim, from, (to - from) as u32));
            from = to;
        }
    }
    Ok(trims)
}

/// What a copy reads: first blocks and how many.
fn sources(view: &View, sqe: &Sqe, data: &mut dyn HostData) -> Result<Vec<(u64, u64)>, Status> {
    let words = sqe.cdw(12);
    let (count, format) = ((words & 0xff) as usize + 1, words >> 8 & 0xf);
    // Format 0 is without protection, within one namespace; nothing is placed or protected.
    if format != 0 || words >> 12 & 0xf != 0 || words >> 20 & 0xf != 0 || words >> 26 & 0xf != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if count > COPY_RANGES_MAX as usize {
        return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    }
    let ranges =
        data.payload().get(..count * COPY_RANGE_BYTES).ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
    let mut sources = Vec::with_capacity(count);
    for range in ranges.chunks_exact(COPY_RANGE_BYTES) {
        let first = u64::from_le_bytes(range[8..16].try_into().expect("eight bytes"));
        let blocks = u64::from(u16::from_le_bytes([range[16], range[17]])) + 1;
        if blocks > copy_blocks_max(view.transfer_max, view.shift).into() {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
        sources.push((first, blocks));
    }
    Ok(sources)
}
