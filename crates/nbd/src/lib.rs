//! The NBD protocol: fixed newstyle negotiation, structured replies, block status.
//!
//! Source: the protocol's specification, doc/proto.md of the NBD project.

mod export;
mod negotiation;
mod protocol;
mod session;

use std::io::{self, Write};

use ssdlab_engine::Epoch;
use ssdlab_wire::{
    Attachments, BusyPoll, Channel, ClientLimits, Connection, ReceiveBuffer, Timeout,
};

pub use export::Export;
use negotiation::{Outcome, exchange_flags, negotiate};
use session::Session;

/// Serves a client from its first byte until it leaves or the power is cut.
pub fn serve(
    connection: Connection,
    export: &Export,
    clients: &Attachments<Connection>,
    client_limits: &ClientLimits,
    epoch: Epoch,
    handshake: Timeout,
) -> io::Result<()> {
    let mut output = connection.clone();
    let mut input = ReceiveBuffer::new(BusyPoll::new(connection));
    let no_zeroes = exchange_flags(&mut input, &mut output)?;
    let mut tls = export.tls.as_ref();
    loop {
        match negotiate(&mut input, &mut output, export, no_zeroes, tls.is_some())? {
            Outcome::Aborted => return Ok(()),
            Outcome::Transmission(negotiated, reply) => {
                // From now on no new connection can replace this one.
                drop(handshake);
                output.write_all(&reply)?;
                let mut session = Session { negotiated, connections: &clients.connections };
                let mut channel =
                    Channel::new(input, output, &clients.engine, epoch, client_limits);
                return ssdlab_wire::serve(&mut session, &mut channel);
            }
            Outcome::StartTls => {
                let tls = tls.take().expect("TLS starts once");
                let encrypted = tls.wrap(input.into_stream()?.connection)?;
                output = encrypted.clone();
                input = ReceiveBuffer::new(BusyPoll::new(encrypted));
            }
        }
    }
}
