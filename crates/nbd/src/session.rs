//! `Session`: the commands of one connection, until the client leaves.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use super::negotiation::Agreed;
use super::protocol::{
    self, CMD_BLOCK_STATUS, CMD_CACHE, CMD_DISCONNECT, CMD_FLAG_FUA, CMD_FLAG_NO_HOLE,
    CMD_FLAG_REQ_ONE, CMD_FLAGS, CMD_FLUSH, CMD_READ, CMD_TRIM, CMD_WRITE, CMD_WRITE_ZEROES,
    Header, REQUEST_BYTES,
};
use ssdlab_engine::Epoch;
use ssdlab_engine::ReceiveMemory;
use ssdlab_engine::SendBuffer;
use ssdlab_engine::errno::EINVAL;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_engine::{Accepted, Command, CommandResult, Engine, Operation, Payload, TRANSFER_MAX};
use ssdlab_wire::Connection;
use ssdlab_wire::Connections;
use ssdlab_wire::{Attachments, Payload as PayloadMemory, Resources, next_piece};
use ssdlab_wire::{BusyPoll, KEPT_MAX, ReceiveBuffer, Replies};

/// Commands that are done together, if a client has sent so many.
const BATCH: usize = 256;
/// And as many as are answered with so many bytes: who asks for more reads
/// the first while the next are made.
const BATCH_BYTES: usize = 128 << 10;
/// So much may wait for its time; then nothing more is taken.
const WAITING_MAX: usize = 256 << 20;
/// A client that announces more bytes with a write is lost.
const PAYLOAD_MAX: usize = 2 * TRANSFER_MAX as usize;
/// A write of so many bytes is received where it is to stay; shorter ones many at once.
const LANDS_FROM: usize = 32 << 10;
/// Extents in one reply about block status.
const EXTENTS_MAX: usize = 4096;

/// A connection whose negotiation is over.
pub struct Session<'a> {
    input: ReceiveBuffer<BusyPoll>,
    output: Connection,
    engine: &'a Engine,
    /// The epoch that the connection belongs to.
    epoch: Epoch,
    agreed: Agreed,
    /// All connections, this one among them.
    links: &'a Connections,
    /// Requests that were received and the drive has not taken.
    batch: Vec<Asked>,
    replies: Replies,
    /// Memory for payloads of the batch.
    memory: PayloadMemory,
    /// No more is received than is waited for: what follows is to land elsewhere.
    spares: bool,
    leaving: bool,
}

/// A request with its payload.
struct Asked {
    header: Header,
    bytes: Bytes,
    /// What the drive is to do; an error where it cannot.
    command: Result<Command, i32>,
}

/// Where a payload is.
enum Bytes {
    /// It was refused, and thrown away.
    Skipped,
    /// At this place of what was received.
    Received(usize),
    /// Where it is to stay, until the drive takes it.
    Landed(Cell<Option<ReceiveMemory>>),
}

impl Asked {
    /// The command that goes to the drive, where one does.
    fn for_drive(&self) -> Option<Command> {
        if self.header.kind == CMD_BLOCK_STATUS { None } else { self.command.ok() }
    }

    /// Its payload; once, where that has landed.
    fn payload<'a>(&self, input: &'a ReceiveBuffer<BusyPoll>) -> Payload<'a> {
        match &self.bytes {
            Bytes::Skipped => unreachable!("a refused write does not go to the drive"),
            Bytes::Received(place) => Payload::Slice(input.at(*place, self.header.payload())),
            Bytes::Landed(landing) => {
                Payload::Received(landing.take().expect("it is asked for once"))
            }
        }
    }
}

impl<'a> Session<'a> {
    /// Goes on with a connection.
    pub fn new(
        input: ReceiveBuffer<BusyPoll>,
        output: Connection,
        clients: &'a Attachments<Connection>,
        resources: &Resources,
        epoch: Epoch,
        agreed: Agreed,
    ) -> Self {
        let (engine, links) = (clients.engine(), &**clients.connections());
        let memory = resources.memory.payload(&output);
        let (batch, replies) = (Vec::new(), Replies::default());
        let (spares, leaving) = (false, false);
        Self {
            input,
            output,
            engine,
            epoch,
            agreed,
            links,
            batch,
            replies,
            memory,
            spares,
            leaving,
        }
    }

    /// Serves it until the client leaves.
    ///
    /// # Errors
    /// The stream's, and a client that breaks the protocol.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            if self.batch.is_empty() && !self.leaving {
                self.input.release();
                self.memory.give_back_to(0);
                self.leaving = !self.receive()?;
            }
            self.perform()?;
            self.send()?;
            if !self.batch.is_empty() {
                self.wait_for_room()?;
            } else if self.leaving {
                let Some(due) = self.replies.next_due() else { return Ok(()) };
                wait_precisely(due, self.spin())?;
            }
        }
    }

    /// Waits for a request or until a reply is due, and takes all requests that are there; false
    /// where the client leaves.
    fn receive(&mut self) -> io::Result<bool> {
        if self.replies.waiting_bytes() > WAITING_MAX {
            wait_precisely(self.replies.next_due().expect("something waits"), self.spin())?;
            return Ok(true);
        }
        if self.input.ready() < REQUEST_BYTES {
            let spin = self.spin();
            if let Some(due) = self.replies.next_due()
                && !self.input.stream().wait_until(due, spin)?
            {
                return Ok(true);
            }
            if !self.await_request()? {
                return Ok(false);
            }
        }
        let mut asked_bytes = 0;
        while self.batch.len() < BATCH
            && asked_bytes < BATCH_BYTES
            && self.input.ready() >= REQUEST_BYTES
        {
            let header = self.next_header()?;
            asked_bytes += header.answer();
            if header.kind == CMD_DISCONNECT {
                return Ok(false);
            }
            let payload = header.payload();
            let whole = REQUEST_BYTES + payload;
            if payload > PAYLOAD_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a write without end"));
            }
            if self.input.ready() < whole && !self.batch.is_empty() {
                return Ok(true);
            }
            let command = self.command(&header);
            let bytes = self.payload(&header, command)?;
            self.batch.push(Asked { header, bytes, command });
        }
        Ok(true)
    }

    /// Takes a request's payload, waiting for it; throws it away where the request is refused. A
    /// long one lands where it is to stay.
    fn payload(&mut self, header: &Header, command: Result<Command, i32>) -> io::Result<Bytes> {
        let whole = REQUEST_BYTES + header.payload();
        let is_there = self.input.ready() >= whole;
        let Ok(command) = command else {
            if is_there {
                self.input.take(whole);
            } else {
                self.input.skip(whole)?;
            }
            return Ok(Bytes::Skipped);
        };
        let is_long = header.payload() >= LANDS_FROM && !is_there;
        if let Some(landing) = is_long.then(|| self.engine.receive_memory(&command)).flatten() {
            return Ok(Bytes::Landed(Some(self.land(landing)?).into()));
        }
        self.spares = false;
        while self.input.ready() < whole {
            let here = self.input.ready();
            let missing = whole - here;
            let next = if whole <= KEPT_MAX { missing } else { next_piece(here, missing) };
            // What a connection keeps anyway is not counted.
            let is_counted = here + next > KEPT_MAX;
            let _deadline = is_counted.then(|| self.memory.next(next));
            self.wait_for(here + next)?;
        }
        Ok(Bytes::Received(self.input.take(whole) + REQUEST_BYTES))
    }

    /// Receives a payload where it is to stay, piece by piece.
    fn land(&mut self, mut landing: ReceiveMemory) -> io::Result<ReceiveMemory> {
        self.input.take(REQUEST_BYTES);
        self.spares = true;
        loop {
            let (received, missing) = (landing.allocated(), landing.remaining());
            if missing == 0 {
                return Ok(landing);
            }
            let next = next_piece(received, missing);
            let _deadline = self.memory.next(next);
            let beyond = if next == missing { REQUEST_BYTES } else { 0 };
            self.input.fill(landing.grow(next)?, beyond)?;
        }
    }

    /// Waits for a request; false where the client leaves.
    fn await_request(&mut self) -> io::Result<bool> {
        let since = wall_clock_now();
        let came = self.wait_for(REQUEST_BYTES)?;
        self.input.stream().note_waited(since, self.engine.clock());
        Ok(came)
    }

    /// As `ReceiveBuffer::wait_for`; what follows what is waited for may be left where it is.
    fn wait_for(&mut self, count: usize) -> io::Result<bool> {
        let most = if self.spares { count } else { usize::MAX };
        while self.input.ready() < count {
            if !self.input.receive(count, most)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn next_header(&self) -> io::Result<Header> {
        let bytes = self.input.peek().first_chunk().expect("enough was waited for");
        Header::parse(bytes).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "a request without its magic number")
        })
    }

    fn command(&self, header: &Header) -> Result<Command, i32> {
        if header.flags & !CMD_FLAGS != 0 {
            return Err(EINVAL);
        }
        let ask = match header.kind {
            CMD_READ => Operation::Read,
            CMD_WRITE => Operation::Write,
            CMD_FLUSH => Operation::Flush,
            // Block status has the limits of a trim: any range that is there.
            CMD_TRIM | CMD_BLOCK_STATUS => Operation::Trim,
            CMD_CACHE => Operation::Cache,
            CMD_WRITE_ZEROES => Operation::Zero { may_trim: header.flags & CMD_FLAG_NO_HOLE == 0 },
            _ => return Err(EINVAL),
        };
        if header.kind == CMD_BLOCK_STATUS && self.agreed.contexts.is_empty() {
            return Err(EINVAL);
        }
        let durable = header.flags & CMD_FLAG_FUA != 0;
        // A flush has no range; anything may stand in its place.
        let range = if ask == Operation::Flush { (0, 0) } else { (header.offset, header.length) };
        let command = Command { durable, ..Command::new(ask, range.0, range.1) };
        self.engine.check(&command).map(|()| command)
    }

    /// Puts the batch to the drive, as far as it takes it, and makes the replies; an error where
    /// the power fails.
    fn perform(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let waits_awake = self.waits_awake();
        self.input.stream().linger_only_if(waits_awake);
        let batch = std::mem::take(&mut self.batch);
        let numbers = || (0..batch.len()).filter(|number| batch[*number].for_drive().is_some());
        let commands: Vec<Command> = batch.iter().filter_map(Asked::for_drive).collect();
        let on_drive: Vec<&Asked> = numbers().map(|number| &batch[number]).collect();
        let (input, replies, structured) = (&self.input, &mut self.replies, self.agreed.structured);
        let taken = self.engine.perform(
            self.epoch,
            &commands,
            |number| on_drive[number].payload(input),
            |number, taken, read| {
                let header = &on_drive[number].header;
                replies.add(taken.due, |out| data_reply(out, structured, header, read));
            },
        );
        let Some(taken) = taken else { return Err(io::ErrorKind::ConnectionAborted.into()) };
        // What comes after the first that was not taken waits with it: all keep their order.
        let answered = numbers().nth(taken.len()).unwrap_or(batch.len());
        let mut taken = taken.into_iter();
        for asked in &batch[..answered] {
            self.answer(asked, &mut taken);
        }
        self.batch = batch;
        self.batch.drain(..answered);
        Ok(())
    }

    /// Whether to wait for the next request awake. A client that asks for one thing after the other
    /// does nothing meanwhile, so that its processor is free. One that writes sends each request in
    /// two parts, and would pay for waking this thread twice; if it has a processor of its own. Of
    /// reads many should come together.
    fn waits_awake(&self) -> bool {
        let is_write = |asked: &Asked| asked.header.kind == CMD_WRITE;
        self.batch.len() == 1 || self.batch.iter().any(is_write) && self.links.have_room()
    }

    /// Answers what has not been answered with its data.
    fn answer(&mut self, asked: &Asked, taken: &mut impl Iterator<Item = Accepted>) {
        let header = &asked.header;
        let structured = self.agreed.structured && header.answer_has_data();
        if asked.for_drive().is_none() {
            match asked.command {
                Err(errno) => {
                    protocol::ack(
                        self.replies.now().bytes(),
                        structured,
                        header.cookie,
                        Err(errno),
                    );
                }
                Ok(_) => self.block_status(header),
            }
            return;
        }
        let Accepted { result, due, .. } =
            taken.next().expect("each one before the last was taken");
        if header.kind != CMD_READ || result.is_err() {
            let cookie = header.cookie;
            self.replies.add(due, |out| protocol::ack(out.bytes(), structured, cookie, result));
        }
    }

    fn block_status(&mut self, header: &Header) {
        let unit = self.engine.unit_bytes();
        let end = header.offset + u64::from(header.length);
        let most = if header.flags & CMD_FLAG_REQ_ONE == 0 { EXTENTS_MAX } else { 1 };
        let units = header.offset / unit..end.div_ceil(unit);
        let zeros = self.engine.unmapped_is_zero();
        let count = self.agreed.contexts.len();
        for (number, context) in self.agreed.contexts.iter().enumerate() {
            let runs = self.engine.block_status(units.clone(), most, context.told(zeros));
            let mut at = header.offset;
            let mut extents = Vec::with_capacity(runs.len());
            for (units, told) in runs {
                let stop = end.min((at / unit + units) * unit);
                extents.push(((stop - at) as u32, told));
                at = stop;
            }
            let last = number + 1 == count;
            let context = number as u32;
            protocol::block_status(
                self.replies.now().bytes(),
                header.cookie,
                context,
                &extents,
                last,
            );
        }
    }

    fn spin(&self) -> Duration {
        self.engine.clock().spin()
    }

    fn send(&mut self) -> io::Result<()> {
        self.replies.send(&mut self.output, self.engine.clock())
    }

    /// Waits until the drive's queue has room, or until a reply is due.
    fn wait_for_room(&mut self) -> io::Result<()> {
        let times = [self.engine.next_free(), self.replies.next_due()];
        if let Some(time) = times.into_iter().flatten().min() {
            wait_precisely(time, self.spin())?;
        }
        Ok(())
    }
}

/// A read's reply; where the content cannot be read, an error in its place.
fn data_reply(
    out: &mut SendBuffer,
    structured: bool,
    header: &Header,
    read: &dyn Fn(&mut SendBuffer) -> CommandResult,
) {
    let end = out.position();
    protocol::data_head(out.bytes(), structured, header);
    if let Err(errno) = read(out) {
        out.truncate(end);
        protocol::ack(out.bytes(), structured, header.cookie, Err(errno));
    }
}
