//! `serve`: the loop of one connection, the same for every protocol.
//!
//! The loop waits for requests until the next reply is due, parses the requests that have arrived
//! into a batch, performs the batch on the engine in order, and sends the replies that are due. If
//! the drive's queue is full, the rest of the batch waits until it has room.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::wait_precisely;
use ssdlab_engine::{Command, CommandResult, Engine, Epoch, Operation, Payload, SendBuffer};

use crate::connection::{BusyPoll, Connection};
use crate::limits::{ClientLimits, PayloadReservation};
use crate::receive_buffer::ReceiveBuffer;
use crate::replies::Replies;

/// Requests in a batch, at most.
const BATCH_MAX: usize = 256;
/// A batch also ends when its replies carry this many bytes of data: the client can read these
/// while the next batch is performed.
const BATCH_REPLY_BYTES: usize = 128 << 10;
/// No request is read while more bytes of replies than this wait for their time.
const DELAYED_BYTES_MAX: usize = 256 << 20;

/// The receive buffer of a connection.
pub type Input = ReceiveBuffer<BusyPoll>;

/// Appends the data of a read to a reply.
pub type ReadFn<'a> = dyn Fn(&mut SendBuffer) -> CommandResult + 'a;

/// What differs between protocols.
pub trait Protocol: Sized {
    /// A request that has been received with its payload.
    type Request;
    /// Bytes of the header that starts each message; `parse` is called once they have arrived.
    const HEADER_BYTES: usize;

    /// Parses the next message. If part of it is missing, waits for it only if `may_wait`.
    fn parse(&mut self, channel: &mut Channel<'_>, may_wait: bool) -> io::Result<Parsed<Self>>;

    /// How a request is performed.
    fn action(&self, request: &Self::Request) -> Action;

    /// The bytes that a write command writes. Called once for each.
    fn payload<'p>(&self, input: &'p Input, request: &'p Self::Request) -> Payload<'p>;

    /// Writes the reply to a read that the drive accepted; an error reply if `read` fails.
    fn write_data(&self, out: &mut SendBuffer, request: &Self::Request, read: &ReadFn<'_>);

    /// Writes the reply to any other command, and to a read that the drive failed.
    fn write_result(&self, out: &mut SendBuffer, request: &Self::Request, result: CommandResult);

    /// Replies to a request of `Action::Reply`.
    fn reply(&self, channel: &mut Channel<'_>, request: &Self::Request);

    /// Performs a request of `Action::Alone`.
    fn perform_alone(&mut self, _: &mut Channel<'_>, _: Self::Request) -> io::Result<()> {
        unreachable!("a protocol with Action::Alone implements this")
    }

    /// Whether to busy-poll after a batch of several requests; after a single one it always pays.
    fn polls_after(&self, _batch: &VecDeque<Self::Request>) -> bool {
        false
    }

    /// When to wake up while the client is silent, apart from delayed replies; an error if the
    /// client has been silent for too long.
    fn wake_at(&self, _now: Instant) -> io::Result<Option<Instant>> {
        Ok(None)
    }

    /// Whether a read timeout between two messages is harmless.
    fn may_idle(&self) -> bool {
        false
    }

    /// Called when messages have arrived, before they are parsed.
    fn begin_batch(&mut self) {}

    /// Called before each sending; may add replies that no request is waiting for.
    fn before_send(&mut self, _channel: &mut Channel<'_>) {}

    /// Bytes of payload memory that outlive a batch.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// The result of parsing a message.
pub enum Parsed<P: Protocol> {
    /// A request, and the bytes of data that its reply will carry.
    Request(P::Request, usize),
    /// A message that needs nothing further.
    Consumed,
    /// Part of it is missing, and the parser was not to wait.
    Incomplete,
    /// The client ends the session.
    End,
}

/// How a request is performed.
pub enum Action {
    /// The engine performs this command, in one call with its neighbours.
    Command(Command),
    /// It only needs a reply, after the commands before it.
    Reply,
    /// After all requests before it and before all requests behind it.
    Alone,
}

/// One client's connection with its buffers.
pub struct Channel<'a> {
    /// What the client sent.
    pub input: Input,
    /// The connection, to write to.
    pub output: Connection,
    /// What will be sent.
    pub replies: Replies,
    /// Memory for payloads.
    pub memory: PayloadReservation,
    /// The drive.
    pub engine: &'a Engine,
    /// The epoch that the connection belongs to.
    pub epoch: Epoch,
    /// No more requests are read; the session ends when all replies have been sent.
    pub closing: bool,
}

impl<'a> Channel<'a> {
    /// A channel over a connection; `input` reads from the same one as `output`.
    pub fn new(
        input: Input,
        output: Connection,
        engine: &'a Engine,
        epoch: Epoch,
        limits: &ClientLimits,
    ) -> Self {
        let memory = limits.memory.reservation(&output);
        let (replies, closing) = (Replies::default(), false);
        Self { input, output, replies, memory, engine, epoch, closing }
    }

    /// Sends the replies that are due.
    pub fn send(&mut self) -> io::Result<()> {
        self.replies.send(&mut self.output, &self.engine.clock)
    }

    fn spin(&self) -> Duration {
        self.engine.clock.spin()
    }

    /// Waits until the drive's queue has room, or until a reply is due.
    fn wait_for_room(&self) -> io::Result<()> {
        let times = [self.engine.next_free(), self.replies.next_due()];
        times.into_iter().flatten().min().map_or(Ok(()), |time| wait_precisely(time, self.spin()))
    }
}

/// Serves a client until it leaves, breaks the protocol or is silent for too long, or the power is
/// cut.
pub fn serve<P: Protocol>(protocol: &mut P, channel: &mut Channel<'_>) -> io::Result<()> {
    let mut batch = VecDeque::new();
    loop {
        if batch.is_empty() && !channel.closing {
            channel.input.release();
            channel.memory.release_to(protocol.held_bytes());
            let goes_on = receive(protocol, channel, &mut batch)?;
            channel.closing |= !goes_on;
        }
        perform(protocol, channel, &mut batch)?;
        protocol.before_send(channel);
        channel.send()?;
        if !batch.is_empty() {
            channel.wait_for_room()?;
        } else if channel.closing {
            let Some(due) = channel.replies.next_due() else { return Ok(()) };
            wait_precisely(due, channel.spin())?;
        }
    }
}

/// Waits for a message or until something is due, and parses all messages that have arrived; false
/// if the client leaves.
fn receive<P: Protocol>(
    protocol: &mut P,
    channel: &mut Channel<'_>,
    batch: &mut VecDeque<P::Request>,
) -> io::Result<bool> {
    if channel.replies.delayed_bytes > DELAYED_BYTES_MAX {
        let due = channel.replies.next_due().expect("replies are delayed");
        wait_precisely(due, channel.spin())?;
        return Ok(true);
    }
    if channel.input.available() < P::HEADER_BYTES && !wait_for_header(protocol, channel)? {
        return Ok(true);
    }
    if channel.input.available() == 0 {
        return Ok(false);
    }
    protocol.begin_batch();
    let mut bytes = 0;
    while batch.len() < BATCH_MAX
        && bytes < BATCH_REPLY_BYTES
        && channel.input.available() >= P::HEADER_BYTES
    {
        // Nothing that can be replied to now waits for the rest of a message.
        let may_wait = batch.is_empty() && channel.replies.immediate.is_empty();
        match protocol.parse(channel, may_wait)? {
            Parsed::Request(request, reply_bytes) => {
                batch.push_back(request);
                bytes += reply_bytes;
            }
            Parsed::Consumed => {}
            Parsed::Incomplete => return Ok(true),
            Parsed::End => return Ok(false),
        }
    }
    Ok(true)
}

/// Waits for the header of a message; false if something else is due first. At the end of the
/// stream nothing is ready.
fn wait_for_header<P: Protocol>(protocol: &P, channel: &mut Channel<'_>) -> io::Result<bool> {
    let (since, spin) = (wall_clock_now(), channel.spin());
    let wake_at = protocol.wake_at(since)?.into_iter().chain(channel.replies.next_due()).min();
    if let Some(time) = wake_at
        && !channel.input.stream.connection.wait_readable(time, spin)?
    {
        return Ok(false);
    }
    while let Err(error) = channel.input.wait_for(P::HEADER_BYTES) {
        let is_timeout =
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        if !is_timeout || channel.input.available() > 0 || !protocol.may_idle() {
            return Err(error);
        }
    }
    channel.input.stream.note_wait(since, &channel.engine.clock);
    Ok(true)
}

/// Performs the batch as far as the drive accepts it.
fn perform<P: Protocol>(
    protocol: &mut P,
    channel: &mut Channel<'_>,
    batch: &mut VecDeque<P::Request>,
) -> io::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    // A client with one request outstanding waits for the reply: its processor is free.
    let polls = batch.len() == 1 || protocol.polls_after(batch);
    channel.input.stream.keep_polling_if(polls);
    while let Some(first) = batch.front() {
        if matches!(protocol.action(first), Action::Alone) {
            let request = batch.pop_front().expect("the batch has a first request");
            protocol.perform_alone(channel, request)?;
        } else if !perform_together(protocol, channel, batch)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Performs the requests before the next `Action::Alone` in one call of the engine; false if the
/// drive's queue is full.
fn perform_together<P: Protocol>(
    protocol: &P,
    channel: &mut Channel<'_>,
    batch: &mut VecDeque<P::Request>,
) -> io::Result<bool> {
    let mut commands = Vec::with_capacity(batch.len());
    let mut requests = Vec::with_capacity(batch.len());
    let mut count = 0;
    for request in &*batch {
        match protocol.action(request) {
            Action::Command(command) => {
                commands.push(command);
                requests.push(request);
            }
            Action::Reply => {}
            Action::Alone => break,
        }
        count += 1;
    }
    let (input, replies) = (&channel.input, &mut channel.replies);
    let accepted = channel.engine.perform(
        channel.epoch,
        &commands,
        |number| protocol.payload(input, requests[number]),
        |number, accepted, read| {
            replies.add(accepted.due, |out| protocol.write_data(out, requests[number], read));
        },
    );
    let accepted = accepted.ok_or(io::ErrorKind::ConnectionAborted)?;
    let mut accepted = accepted.into_iter();
    let mut done = 0;
    for request in batch.iter().take(count) {
        if let Action::Command(command) = protocol.action(request) {
            // A command that was not accepted waits, and so do the requests behind it.
            let Some(accepted) = accepted.next() else { break };
            if accepted.result.is_err() || command.operation != Operation::Read {
                channel.replies.add(accepted.due, |out| {
                    protocol.write_result(out, request, accepted.result);
                });
            }
        } else {
            protocol.reply(channel, request);
        }
        done += 1;
    }
    batch.drain(..done);
    Ok(done == count)
}
