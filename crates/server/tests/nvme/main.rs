//! The `NVMe` drive, tested by a small host over TCP.

mod admin;
mod authentication;
mod client;
mod commands;
mod connections;
mod health;
mod lba_status;
mod limits;
mod namespaces;
mod placement;
mod protocol_errors;
mod target;
