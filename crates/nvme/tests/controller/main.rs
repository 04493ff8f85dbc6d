//! The controller without a transport: commands in, completions out.

mod golden;
mod memory;
mod mutations;
mod setup;
