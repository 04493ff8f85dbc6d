//! What all protocols share: sockets, buffers, TLS, the session loop, limits on clients, and power
//! cuts, which end all connections.

mod attachments;
mod busy_poll;
mod connection;
mod connections;
mod limits;
#[cfg(all(test, feature = "model"))]
mod model;
mod receive_buffer;
mod replies;
mod session;
mod thread;
mod tls;

pub use attachments::Attachments;
pub use busy_poll::BusyPoll;
pub use connection::{Connection, Disconnect};
pub use connections::{Connections, Registration};
pub use limits::{
    AcceptOutcome, ClientLimits, Descriptors, LimitError, Limits, Notice, Notices, OnExhaustion,
    PayloadReservation, Timeout, next_part,
};
pub use receive_buffer::{RETAINED_BYTES_MAX, ReceiveBuffer};
pub use replies::Replies;
pub use session::{Action, Channel, Input, Parsed, Protocol, ReadFn, serve};
pub use thread::spawn;
pub use tls::Tls;
