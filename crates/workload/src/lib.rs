//! Request streams and the ONE loop that drives any `Device` with them.

mod job;
mod pattern;
mod run;

pub use job::{Job, JobError, PatternKind};
pub use pattern::Pattern;
pub use run::{Outcome, Progress, Watch, rest, run};
