//! Request streams and the ONE loop that drives any `Device` with them.

mod arrival;
mod check;
mod flight;
mod job;
mod latency;
mod mix;
mod pattern;
mod recorder;
mod requests;
mod run;
mod scatter;
mod threads;

pub use arrival::Arrival;
pub use check::JobError;
pub use job::{Job, Sync};
pub use latency::{Bucket, Latency};
pub use pattern::{Ground, Pattern, PatternKind};
pub use recorder::Outcome;
pub use run::{Progress, Watch, rest, run};
pub use threads::run_threads;
