//! What all protocols share: sockets, buffers, TLS, the session loop, limits on clients, and power
//! cuts, which end all connections.

mod connection;
mod connections;
mod limits;
#[cfg(all(test, feature = "model"))]
mod model;
mod receive_buffer;
mod replies;
mod session;
mod tls;

use std::io;
use std::thread::{Builder, JoinHandle};

use ssdlab_engine::failpoints::{self, Point};

pub use connection::{BusyPoll, Connection, Disconnect};
pub use connections::{Attachments, Connections, Registration};
pub use limits::{
    ClientLimits, LimitError, Limits, Notice, OnExhaustion, PayloadReservation, Timeout, next_part,
};
pub use receive_buffer::{RETAINED_BYTES_MAX, ReceiveBuffer};
pub use replies::Replies;
pub use session::{Action, Channel, Input, Parsed, Protocol, ReadFn, serve};
pub use tls::Tls;

/// Runs a function on a new thread. If the system cannot create one, the function is not run.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    failpoints::check(Point::Thread)?;
    Builder::new().name(name.into()).spawn(run)
}
