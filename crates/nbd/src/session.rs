//! `Session`: the requests of one client after the negotiation.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;

use super::negotiation::Negotiated;
use super::protocol::{
    self, CMD_FLAGS, NBD_CMD_BLOCK_STATUS, NBD_CMD_CACHE, NBD_CMD_DISC, NBD_CMD_FLAG_FUA,
    NBD_CMD_FLAG_NO_HOLE, NBD_CMD_FLAG_REQ_ONE, NBD_CMD_FLUSH, NBD_CMD_READ, NBD_CMD_TRIM,
    NBD_CMD_WRITE, NBD_CMD_WRITE_ZEROES, REQUEST_BYTES, RequestHeader, invalid,
};
use ssdlab_engine::errno::EINVAL;
use ssdlab_engine::{
    Command, CommandResult, Engine, Operation, Payload, ReceiveMemory, SendBuffer, TRANSFER_MAX,
};
use ssdlab_wire::{
    Action, Channel, Connections, Input, Parsed, Protocol, RETAINED_BYTES_MAX, ReadFn, next_part,
};

/// A client that announces a longer write is disconnected.
const PAYLOAD_MAX: usize = 2 * TRANSFER_MAX as usize;
/// Writes of at least this many bytes are received into the store's own memory, without a copy;
/// shorter ones many at a time into the receive buffer.
const UNCOPIED_BYTES_MIN: usize = 32 << 10;
/// Extents in one reply to `NBD_CMD_BLOCK_STATUS`, for each metadata context.
const EXTENTS_MAX: usize = 4096;

/// A client that has chosen the export.
pub struct Session<'a> {
    pub negotiated: Negotiated,
    /// All connections to the drive, this one among them.
    pub connections: &'a Connections,
}

/// A request with its payload.
pub struct Request {
    header: RequestHeader,
    payload: RequestPayload,
    /// The engine's command, or the error number of a request that is refused.
    command: Result<Command, i32>,
}

/// Where a payload is.
enum RequestPayload {
    /// The request is refused.
    Discarded,
    /// In the receive buffer, at this position.
    Buffered(usize),
    /// In the store's memory, until the engine takes it.
    Placed(Cell<Option<ReceiveMemory>>),
}

impl Protocol for Session<'_> {
    type Request = Request;
    const HEADER_BYTES: usize = REQUEST_BYTES;

    fn parse(&mut self, channel: &mut Channel<'_>, may_wait: bool) -> io::Result<Parsed<Self>> {
        let bytes = channel.input.peek().first_chunk().expect("the header has arrived");
        let header = RequestHeader::parse(bytes)
            .ok_or_else(|| invalid("the request does not start with NBD_REQUEST_MAGIC"))?;
        if header.command == NBD_CMD_DISC {
            return Ok(Parsed::End);
        }
        if header.payload_bytes() > PAYLOAD_MAX {
            return Err(invalid("the payload of the write is too long"));
        }
        if channel.input.available() < REQUEST_BYTES + header.payload_bytes() && !may_wait {
            return Ok(Parsed::Incomplete);
        }
        let command = self.command(channel.engine, &header);
        let payload = receive_payload(channel, &header, command)?;
        Ok(Parsed::Request(Request { header, payload, command }, header.reply_bytes()))
    }

    fn action(&self, request: &Request) -> Action {
        match request.command {
            Ok(command) if request.header.command != NBD_CMD_BLOCK_STATUS => {
                Action::Command(command)
            }
            _ => Action::Reply,
        }
    }

    fn payload<'p>(&self, input: &'p Input, request: &'p Request) -> Payload<'p> {
        match &request.payload {
            RequestPayload::Discarded => unreachable!("the engine gets no refused request"),
            RequestPayload::Buffered(at) => {
                Payload::Slice(input.consumed(*at, request.header.payload_bytes()))
            }
            RequestPayload::Placed(memory) => {
                Payload::Received(memory.take().expect("the payload is taken once"))
            }
        }
    }

    fn write_data(&self, out: &mut SendBuffer, request: &Request, read: &ReadFn<'_>) {
        let (header, structured) = (&request.header, self.negotiated.structured_replies);
        let end = out.position();
        protocol::read_reply(out.bytes(), structured, header);
        if let Err(errno) = read(out) {
            out.truncate(end);
            protocol::reply(out.bytes(), structured, header.cookie, Err(errno));
        }
    }

    fn write_result(&self, out: &mut SendBuffer, request: &Request, result: CommandResult) {
        let structured = self.negotiated.structured_replies && request.header.reply_has_data();
        protocol::reply(out.bytes(), structured, request.header.cookie, result);
    }

    fn reply(&self, channel: &mut Channel<'_>, request: &Request) {
        match request.command {
            Err(errno) => self.write_result(&mut channel.replies.immediate, request, Err(errno)),
            Ok(_) => self.block_status(channel, &request.header),
        }
    }

    /// A client sends a write in two parts and would wake this thread twice: busy polling pays if
    /// the client has a processor of its own. Reads are better received several at a time.
    fn polls_after(&self, batch: &VecDeque<Request>) -> bool {
        batch.iter().any(|request| request.header.command == NBD_CMD_WRITE)
            && self.connections.fit_processors()
    }
}

impl Session<'_> {
    fn command(&self, engine: &Engine, header: &RequestHeader) -> Result<Command, i32> {
        if header.flags & !CMD_FLAGS != 0 {
            return Err(EINVAL);
        }
        let operation = match header.command {
            NBD_CMD_READ => Operation::Read,
            NBD_CMD_WRITE => Operation::Write,
            NBD_CMD_FLUSH => Operation::Flush,
            // Block status has the limits of a trim: any range within the export.
            NBD_CMD_TRIM | NBD_CMD_BLOCK_STATUS => Operation::Trim,
            NBD_CMD_CACHE => Operation::Cache,
            NBD_CMD_WRITE_ZEROES => {
                Operation::Zero { may_trim: header.flags & NBD_CMD_FLAG_NO_HOLE == 0 }
            }
            _ => return Err(EINVAL),
        };
        if header.command == NBD_CMD_BLOCK_STATUS && self.negotiated.contexts.is_empty() {
            return Err(EINVAL);
        }
        let durable = header.flags & NBD_CMD_FLAG_FUA != 0;
        // The offset and length of a flush are ignored.
        let (offset, length) =
            if operation == Operation::Flush { (0, 0) } else { (header.offset, header.length) };
        let command = Command { durable, ..Command::new(operation, offset, length) };
        command.check(engine.parameters.capacity).map(|()| command)
    }

    fn block_status(&self, channel: &mut Channel<'_>, header: &RequestHeader) {
        let engine = channel.engine;
        let unit = engine.parameters.unit_bytes;
        let end = header.offset + u64::from(header.length);
        let most = if header.flags & NBD_CMD_FLAG_REQ_ONE == 0 { EXTENTS_MAX } else { 1 };
        let units = header.offset / unit..end.div_ceil(unit);
        let zeros = engine.unmapped_is_zero();
        let count = self.negotiated.contexts.len();
        for (number, context) in self.negotiated.contexts.iter().enumerate() {
            let runs = engine.block_status(units.clone(), most, context.status_fn(zeros));
            let mut at = header.offset;
            let mut extents = Vec::with_capacity(runs.len());
            for (units, flags) in runs {
                let stop = end.min((at / unit + units) * unit);
                extents.push(((stop - at) as u32, flags));
                at = stop;
            }
            let (out, last) = (channel.replies.immediate.bytes(), number + 1 == count);
            protocol::block_status(out, header.cookie, number as u32, &extents, last);
        }
    }
}

/// Takes a request from the receive buffer and receives its payload: a long one into the store's
/// memory, a refused one is discarded.
fn receive_payload(
    channel: &mut Channel<'_>,
    header: &RequestHeader,
    command: Result<Command, i32>,
) -> io::Result<RequestPayload> {
    let (input, memory) = (&mut channel.input, &mut channel.memory);
    let whole = REQUEST_BYTES + header.payload_bytes();
    let has_arrived = input.available() >= whole;
    let Ok(command) = command else {
        if has_arrived {
            input.consume(whole);
        } else {
            input.discard(whole)?;
        }
        return Ok(RequestPayload::Discarded);
    };
    if header.payload_bytes() >= UNCOPIED_BYTES_MIN
        && !has_arrived
        && let Some(mut place) = channel.engine.content.receive_memory(&command)
    {
        input.consume(REQUEST_BYTES);
        // The next payload is probably placed too.
        input.set_read_ahead(false);
        loop {
            let (received, missing) = (place.allocated(), place.remaining());
            if missing == 0 {
                return Ok(RequestPayload::Placed(Some(place).into()));
            }
            let next = next_part(received, missing);
            let _timeout = memory.reserve(next);
            let beyond = if next == missing { REQUEST_BYTES } else { 0 };
            input.fill(place.grow(next)?, beyond)?;
        }
    }
    input.set_read_ahead(true);
    while input.available() < whole {
        let received = input.available();
        let missing = whole - received;
        let next = if whole <= RETAINED_BYTES_MAX { missing } else { next_part(received, missing) };
        // The buffer that each connection keeps does not count.
        let counts = received + next > RETAINED_BYTES_MAX;
        let _timeout = counts.then(|| memory.reserve(next));
        input.wait_for(received + next)?;
    }
    Ok(RequestPayload::Buffered(input.consume(whole) + REQUEST_BYTES))
}
