//! What the connections of every protocol share: sockets, buffers, TLS, limits on clients, and the
//! power cuts that end connections.

// The model uses the toy drive of the server's tests.
mod attachments;
mod busy_poll;
mod connection;
mod connections;
#[cfg(all(test, feature = "model"))]
mod model;
mod receive_buffer;
mod replies;
mod resources;
mod session;
mod thread;
mod tls;

pub use attachments::Attachments;
pub use busy_poll::BusyPoll;
pub use connection::{Breakable, Connection};
pub use connections::{Connections, Registration};
pub use receive_buffer::{KEPT_MAX, ReceiveBuffer};
pub use replies::Replies;
pub use resources::{
    Accepted, Deadline, Descriptors, Exhausted, LimitError, Limits, Notice, Notices, Payload,
    Resources, next_piece,
};
pub use session::{Action, Channel, Parsed, Protocol, serve};
pub use thread::spawn;
pub use tls::Tls;
