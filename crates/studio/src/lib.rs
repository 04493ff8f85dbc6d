//! Twins for a web page: the model and the job loop, compiled to WebAssembly.
//!
//! A `Twin` runs steps (jobs, rests, power cuts) in slices of any length and goes back to any
//! earlier moment. What it computes is what `ssdlab run` computes: the same counters and the same
//! virtual time. A page calls the functions of `exports`, which pass texts and arrays of numbers in
//! linear memory, so that it needs no bindings generator.

mod describe;
mod exports;
mod frame;
mod lists;
mod player;
mod position;
mod results;
mod series;
mod snapshots;
mod spec;
mod state;
mod steps;
mod twin;

pub use frame::{Frame, HEADER};
pub use position::{Position, SeekBy};
pub use results::StepResult;
pub use series::COLUMNS;
pub use spec::Spec;
pub use twin::Twin;
