//! The NBD server, tested by a small client over a Unix socket.

mod client;
mod clones;
mod control;
mod faults;
mod limits;
mod long_writes;
mod pacing;
mod power_cuts;
mod protocol;
mod protocol_errors;
mod test_server;
mod write_log;
