//! The controller without a transport: commands in, completions out.

mod entry;
mod golden;
mod mutations;
mod queue;
#[path = "../../../server/tests/nbd/toy.rs"]
mod toy;
