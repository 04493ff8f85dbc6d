//! The controller without a transport: commands in, completions out.

mod golden;
mod mutations;
mod queue;
