//! Jobs, their request streams, and the one loop that runs them on any `Device`.

mod arrival;
mod check;
mod distribution;
mod flash_writes;
mod in_flight;
mod job;
mod job_run;
mod mix;
mod pattern;
mod queues;
mod recorder;
mod requests;
mod run;
mod threads;
pub mod trace;

pub use check::JobError;
pub use job::{Arrival, HintKind, Job, Sync};
pub use job_run::{JobRun, Recorded};
pub use pattern::{ListedHint, ListedRequest, Pattern, PatternArea, PatternKind};
pub use queues::run_queues;
pub use recorder::{Bucket, Lag, Latencies, Outcome};
pub use run::{Progress, REST_STEP, Watch, rest, run};
pub use threads::run_threads;
