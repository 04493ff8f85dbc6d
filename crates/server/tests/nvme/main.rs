//! The `NVMe` drive from outside: by a small host of our own, over TCP.

mod blocks;
mod broken;
mod client;
mod commands;
mod connections;
mod life;
mod limits;
mod manage;
mod namespaces;
mod placement;
mod secrets;
mod target;
