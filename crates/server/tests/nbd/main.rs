//! The NBD server from outside: by a small client of our own, over a unix socket.

mod broken;
mod client;
mod control;
mod faults;
mod forks;
mod limits;
mod log;
mod long;
mod paced;
mod power;
mod protocol;
mod served;
