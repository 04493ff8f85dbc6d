//! The controller without a transport: commands in, completions out.

mod entry;
mod golden;
mod memory;
mod mutations;
mod setup;
#[path = "../../../server/tests/nbd/toy.rs"]
mod toy;
