//! `run_threads`: one job on several queues of a drive, each driven by its own thread.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use ssdlab_device::{Device, DeviceError, Wait};
use ssdlab_time::Nanos;

use crate::recorder::Outcome;
use crate::run::{Progress, Watch, run_from};
use crate::{Arrival, Job, PatternKind};

const PROGRESS_PERIOD: Duration = Duration::from_millis(20);

/// Delay before the common start of all threads; long enough for each of them to be running.
const START_DELAY: Nanos = Nanos::from_millis(2);

impl Job {
    /// Whether each thread has its own part of the region, because all would visit the same blocks
    /// otherwise.
    pub(crate) fn divides_region(&self) -> bool {
        matches!(self.pattern, PatternKind::Sequential | PatternKind::RandomOnce)
    }

    /// The part of a checked job that thread `number` runs.
    #[must_use]
    pub fn part(&self, number: usize) -> Self {
        let count = self.threads as u64;
        let mut part = Self { threads: 1, ..self.clone() };
        part.amount_bytes = self.amount_bytes.div_ceil(count);
        // A 64-bit odd constant separates the streams of consecutive seeds.
        part.seed = self.seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if let Arrival::Rate { per_s, .. } = &mut part.arrival {
            *per_s /= count as f64;
        }
        if self.divides_region() {
            let granularity = self.longest_bytes();
            part.length_bytes = self.length_bytes / count / granularity * granularity;
            part.offset_bytes = self.offset_bytes + number as u64 * part.length_bytes;
        }
        part
    }
}

/// State shared by the threads and the watcher.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    done: AtomicU64,
    now: AtomicU64,
}

/// Runs a checked job on several devices that share a clock, one for each thread of the job.
///
/// Otherwise as `run`; the outcomes of all threads are merged.
///
/// # Errors
/// A device was gone before anything was measured.
pub fn run_threads<D: Device + Send>(
    devices: &mut [D],
    job: &Job,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    assert_eq!(devices.len(), job.threads, "one device for each thread");
    let start = devices[0].now() + START_DELAY;
    let shared = Shared::default();
    let (sender, ended) = channel::<()>();
    let mut stopped = false;
    let results: Vec<_> = thread::scope(|scope| {
        let spawn = |(number, device)| {
            let (part, sender, shared) = (job.part(number), sender.clone(), &shared);
            scope.spawn(move || {
                let _ends_with_this_thread = sender;
                run_part(device, &part, start, shared)
            })
        };
        let threads: Vec<_> = devices.iter_mut().enumerate().map(spawn).collect();
        drop(sender);
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PROGRESS_PERIOD) {
            stopped |= watch(shared.progress(job.requests())).is_break();
            shared.stop.fetch_or(stopped, Ordering::Relaxed);
        }
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    let mut outcome = Outcome::merge_parts(results)?;
    outcome.stopped = stopped;
    let done = shared.done.load(Ordering::Relaxed);
    let _ = watch(shared.progress(done));
    Ok(outcome)
}

impl Shared {
    fn progress(&self, total: u64) -> Progress {
        let done = self.done.load(Ordering::Relaxed);
        let now = Nanos::new(self.now.load(Ordering::Relaxed));
        Progress { done, total: total.max(done), now }
    }
}

/// Runs the part of one thread. A failure in one thread stops all.
fn run_part<D: Device>(
    device: &mut D,
    part: &Job,
    start: Nanos,
    shared: &Shared,
) -> Result<Outcome, DeviceError> {
    let mut reported = 0;
    let outcome = device.reap(Wait::Until(start), &mut Vec::new()).and_then(|()| {
        run_from(device, part, start, &mut |progress: Progress| {
            shared.done.fetch_add(progress.done - reported, Ordering::Relaxed);
            shared.now.fetch_max(progress.now.get(), Ordering::Relaxed);
            reported = progress.done;
            let stop = shared.stop.load(Ordering::Relaxed);
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    let is_ok = outcome.as_ref().is_ok_and(|o| o.record.errors == 0 && o.failure.is_none());
    shared.stop.fetch_or(!is_ok, Ordering::Relaxed);
    outcome
}
