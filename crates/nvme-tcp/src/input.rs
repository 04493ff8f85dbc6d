//! What a host sends on a connection: units, checked, until commands with their data are there.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::frame::Frame;
use super::pdu::{
    COMMAND, COMMAND_BYTES, COMMON_BYTES, CONNECTION_BYTES, CONNECTION_REQUEST, Common,
    DATA_DIGEST, DATA_MAX, DATA_SENT, DIGEST_BYTES, HEADER_DIGEST, HOST_TERMINATES, LAST, Reason,
    long, short,
};
use ssdlab_engine::failpoints::{self, Point};
use ssdlab_nvme::{Direction, Sqe};
use ssdlab_wire::{BusyPoll, ReceiveBuffer};
use ssdlab_wire::{Deadline, Payload};

/// Where a command's data from its host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// There is none.
    None,
    /// It is still in the buffer of what was received: place and length.
    Here(usize, usize),
    /// It was sent later.
    Held(Vec<u8>),
    /// Its digest is wrong.
    Broken,
}

/// What has come in.
pub enum Unit {
    /// A command, with the data that came with it.
    Command(Sqe, Data),
    /// A command whose data was asked for, and is there.
    Complete(Sqe, Data),
    /// A part of such data.
    Part,
    /// The host ends the connection.
    End,
}

/// A command whose data was asked for.
struct Pending {
    submission: Sqe,
    bytes: Vec<u8>,
    length: usize,
    is_broken: bool,
}

/// A connection's units.
pub struct Units {
    pub input: ReceiveBuffer<BusyPoll>,
    pub frame: Frame,
    pending: BTreeMap<u16, Pending>,
    /// Commands whose data is asked for when enough of the others' is there.
    deferred: VecDeque<Sqe>,
    memory: Payload,
    /// By when the next data has to be there.
    deadline: Option<Deadline>,
}

/// So much data of all commands of a connection is asked for at a time, or that of one.
const ASKED_MAX: usize = 32 << 20;

/// The kinds of data descriptor: in the capsule, and wherever the transport has it.
const IN_CAPSULE: u8 = 0x01;
const BY_TRANSPORT: u8 = 0x5a;

/// How a command's data comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// It is there, or there is none.
    Now,
    /// It is to be asked for.
    OnDemand,
}

impl Units {
    /// The units of a new connection.
    pub fn new(input: ReceiveBuffer<BusyPoll>, memory: Payload) -> Self {
        let (frame, pending, deferred) = Default::default();
        Self { input, frame, pending, deferred, memory, deadline: None }
    }

    /// The first unit of a connection: version, alignment, digests.
    ///
    /// # Errors
    /// The connection's; in the inner result what is wrong with the unit.
    pub fn greeting(&mut self) -> io::Result<Result<Frame, Reason>> {
        if !self.input.wait_for(CONNECTION_BYTES)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = self.input.peek();
        let common = Common::parse(bytes);
        if common.kind != CONNECTION_REQUEST {
            return Ok(Err(Reason::Sequence));
        }
        if common.header != CONNECTION_BYTES || common.whole != CONNECTION_BYTES {
            return Ok(Err(Reason::Header(if common.header == CONNECTION_BYTES { 4 } else { 2 })));
        }
        if short(bytes, 8) != 0 {
            return Ok(Err(Reason::Unsupported(8)));
        }
        let (alignment, digests) = (bytes[10], bytes[11]);
        if alignment > 31 {
            return Ok(Err(Reason::Header(10)));
        }
        let frame = Frame {
            digests: digests & (HEADER_DIGEST | DATA_DIGEST),
            alignment: 4 * (usize::from(alignment) + 1),
        };
        self.input.take(CONNECTION_BYTES);
        Ok(Ok(frame))
    }

    /// Bytes of the next unit, where its beginning is there.
    pub fn next_whole(&self) -> Option<usize> {
        let bytes = self.input.peek();
        (bytes.len() >= COMMON_BYTES).then(|| Common::parse(bytes).whole)
    }

    /// Checks the beginning of the next unit before the rest is waited for.
    pub fn check(&self) -> Result<(), Reason> {
        Common::parse(self.input.peek()).check(self.frame.digests, DATA_MAX)
    }

    /// Takes the next unit, all of which is there.
    pub fn take(&mut self) -> Result<Unit, Reason> {
        let bytes = self.input.peek();
        let common = Common::parse(bytes);
        common.check(self.frame.digests, DATA_MAX)?;
        if common.flags & HEADER_DIGEST != 0 {
            let received = long(bytes, common.header);
            if crc32c::crc32c(&bytes[..common.header]) != received {
                return Err(Reason::HeaderDigest(received));
            }
        }
        let (data_at, length) = common.data();
        let data = &bytes[data_at..data_at + length];
        let is_broken = common.flags & DATA_DIGEST != 0
            && crc32c::crc32c(data) != long(bytes, common.whole - DIGEST_BYTES);
        match common.kind {
            COMMAND => {
                let submission = bytes[COMMON_BYTES..COMMAND_BYTES].try_into();
                let submission = Sqe::new(submission.expect("so many bytes"));
                let place = self.input.take(common.whole);
                let data =
                    if is_broken { Data::Broken } else { Data::Here(place + data_at, length) };
                Ok(Unit::Command(submission, data))
            }
            DATA_SENT => self.add(common, is_broken),
            HOST_TERMINATES => Ok(Unit::End),
            _ => Err(Reason::Sequence),
        }
    }

    /// Adds a part to data that was asked for.
    fn add(&mut self, common: Common, is_broken: bool) -> Result<Unit, Reason> {
        let bytes = self.input.peek();
        let (id, tag) = (short(bytes, 8), short(bytes, 10));
        let (offset, length) = (long(bytes, 12) as usize, long(bytes, 16) as usize);
        let (data_at, here) = common.data();
        let pending = self.pending.get_mut(&tag).filter(|pending| pending.submission.cid() == id);
        let pending = pending.ok_or(Reason::Header(10))?;
        if length != here || length == 0 {
            return Err(Reason::Header(16));
        }
        let held = pending.bytes.len();
        if offset != held || length > pending.length - held {
            return Err(Reason::OutOfRange(12));
        }
        if length > DATA_MAX {
            return Err(Reason::TooLong);
        }
        // While memory is waited for, the host has not to send anything.
        self.deadline = None;
        self.deadline = Some(self.memory.next(here));
        let has_memory = failpoints::check(Point::Memory).is_ok();
        if !has_memory || pending.bytes.try_reserve(here).is_err() {
            return Err(Reason::NoMemory);
        }
        pending.bytes.extend(&bytes[data_at..data_at + here]);
        pending.is_broken |= is_broken;
        let is_whole = pending.bytes.len() == pending.length;
        if is_whole != (common.flags & LAST != 0) {
            return Err(Reason::Header(1));
        }
        self.input.take(common.whole);
        if !is_whole {
            return Ok(Unit::Part);
        }
        let Pending { submission, bytes, is_broken, .. } =
            self.pending.remove(&tag).expect("it was found");
        if self.pending.is_empty() {
            self.deadline = None;
        }
        let data = if is_broken { Data::Broken } else { Data::Held(bytes) };
        Ok(Unit::Complete(submission, data))
    }

    /// Whether a command waits for its data under this id.
    pub fn is_pending(&self, id: u16) -> bool {
        let is_deferred = self.deferred.iter().any(|submission| submission.cid() == id);
        is_deferred || self.pending.contains_key(&id)
    }

    /// How many commands wait for their data.
    pub fn pending(&self) -> usize {
        self.pending.len() + self.deferred.len()
    }

    /// Notes that a command's data is to be asked for.
    pub fn defer(&mut self, submission: Sqe) {
        self.deferred.push_back(submission);
    }

    /// Asks for the data of commands, as much at a time as there may be.
    pub fn ask_for_data(&mut self, out: &mut Vec<u8>) {
        while let Some(submission) = self.deferred.front() {
            let length = submission.sgl_length() as usize;
            let asked: usize = self.pending.values().map(|pending| pending.length).sum();
            if asked > 0 && asked + length > ASKED_MAX {
                return;
            }
            let submission = self.deferred.pop_front().expect("there is one");
            self.frame.ready(out, submission.cid(), submission.sgl_length());
            let pending = Pending { submission, bytes: Vec::new(), length, is_broken: false };
            self.pending.insert(submission.cid(), pending);
            self.deadline.get_or_insert_with(|| self.memory.deadline());
        }
    }

    /// Gives back the memory of data that was sent, but for that of commands that wait for more.
    pub fn give_back(&mut self) {
        let held = self.pending.values().map(|pending| pending.bytes.len()).sum();
        self.memory.give_back_to(held);
    }

    /// The data that a host sent with or for a command.
    pub fn bytes<'a>(&'a self, data: &'a Data) -> &'a [u8] {
        match data {
            Data::None | Data::Broken => &[],
            Data::Here(place, length) => self.input.at(*place, *length),
            Data::Held(bytes) => bytes,
        }
    }
}

/// Where a command's data is, by what its descriptor says and what came with it.
///
/// # Errors
/// The descriptor is none that is known here, or points beyond what came.
pub fn located(submission: &Sqe, came: Data) -> Result<(Data, Coming), ssdlab_nvme::Status> {
    use ssdlab_nvme::Status;
    let length = submission.sgl_length() as usize;
    let (place, there) = match came {
        Data::Here(place, there) => (place, there),
        other => return Ok((other, Coming::Now)),
    };
    let sends = submission.direction() == Direction::HostToController && length > 0;
    match submission.sgl_identifier() {
        IN_CAPSULE if sends => {
            let from = submission.sgl_address();
            let fits = from.checked_add(length as u64).is_some_and(|end| end <= there as u64);
            let here = Data::Here(place + if fits { from as usize } else { 0 }, length);
            if fits { Ok((here, Coming::Now)) } else { Err(Status::SGL_OFFSET_INVALID) }
        }
        BY_TRANSPORT if sends => Ok((Data::None, Coming::OnDemand)),
        _ if sends => Err(Status::SGL_DESCRIPTOR_TYPE_INVALID),
        BY_TRANSPORT => Ok((Data::None, Coming::Now)),
        _ if length > 0 && submission.direction() == Direction::ControllerToHost => {
            Err(Status::SGL_DESCRIPTOR_TYPE_INVALID)
        }
        _ => Ok((Data::None, Coming::Now)),
    }
}
