//! Request streams and the ONE loop that drives any `Device` with them.

mod arrival;
mod check;
mod flight;
mod job;
mod listed;
mod mix;
mod pattern;
mod recorder;
mod requests;
mod run;
mod scatter;
mod threads;
pub mod trace;

pub use check::JobError;
pub use job::{Arrival, HintKind, Job, Sync};
pub use listed::{Listed, Said};
pub use pattern::{Ground, Pattern, PatternKind};
pub use recorder::{Bucket, Lag, Latencies, Outcome};
pub use run::{Progress, Watch, rest, run};
pub use threads::run_threads;
