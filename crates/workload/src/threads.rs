//! `run_threads`: one job on several queues of a drive side by side, each in a thread of its own.

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

/// How often the watcher is told.
const WATCHED: Duration = Duration::from_millis(20);

/// All threads begin at one time, this long after they are asked: by then they all run.
const HEAD_START: Nanos = Nanos::from_millis(2);

impl Job {
    /// Whether each thread has its own part of the region: where all would else do the same.
    pub(crate) fn divides_region(&self) -> bool {
        matches!(self.pattern, PatternKind::Sequential | PatternKind::RandomOnce)
    }

    /// What the thread of this number does, of a job that was checked.
    #[must_use]
    pub fn part(&self, number: usize) -> Self {
        let count = self.threads as u64;
        let mut part = Self { threads: 1, ..self.clone() };
        part.amount_bytes = self.amount_bytes.div_ceil(count);
        // An odd constant of 64 bits: seeds that follow each other stay apart.
        part.seed = self.seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if let Arrival::Rate { per_s, .. } = &mut part.arrival {
            *per_s /= count as f64;
        }
        if self.divides_region() {
            let grain = self.sizes().map(|(bytes, _)| bytes).max().expect("a job has a size");
            part.length_bytes = self.length_bytes / count / grain * grain;
            part.offset_bytes = self.offset_bytes + number as u64 * part.length_bytes;
        }
        part
    }
}

/// What the threads and the watcher tell each other.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    done: AtomicU64,
    now: AtomicU64,
}

/// Runs a job that was checked on as many devices as it has threads, which share one clock.
///
/// Everything else is as `run` has it: the outcome is that of all together.
///
/// # Errors
/// A device that was gone before anything was measured.
///
/// # Panics
/// Where devices and threads are not equally many.
pub fn run_threads<D: Device + Send>(
    devices: &mut [D],
    job: &Job,
    watch: &mut impl Watch,
) -> Result<Outcome, DeviceError> {
    assert_eq!(devices.len(), job.threads, "a device for each thread");
    let start = devices[0].now() + HEAD_START;
    let shared = Shared::default();
    let (sender, ended) = channel::<()>();
    let mut broken = false;
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
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(WATCHED) {
            broken |= watch(shared.progress(job.requests())).is_break();
            shared.stop.fetch_or(broken, Ordering::Relaxed);
        }
        threads.into_iter().map(|thread| thread.join().expect("a bug in a thread")).collect()
    });
    let (good, failures): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    let failure = failures.into_iter().find_map(Result::err);
    let good: Vec<Outcome> = good.into_iter().flatten().collect();
    match failure {
        Some(failure) if good.is_empty() => Err(failure),
        failure => {
            let mut outcome = Outcome::merge(good);
            outcome.stopped = broken;
            outcome.failure = outcome.failure.or(failure);
            let done = shared.done.load(Ordering::Relaxed);
            let _ = watch(shared.progress(done));
            Ok(outcome)
        }
    }
}

impl Shared {
    fn progress(&self, total: u64) -> Progress {
        let done = self.done.load(Ordering::Relaxed);
        let now = Nanos::new(self.now.load(Ordering::Relaxed));
        Progress { done, total: total.max(done), now }
    }
}

/// One thread's part. What fails in one ends all.
fn run_part<D: Device>(
    device: &mut D,
    part: &Job,
    start: Nanos,
    shared: &Shared,
) -> Result<Outcome, DeviceError> {
    let mut told = 0;
    let outcome = device.reap(Wait::Until(start), &mut Vec::new()).and_then(|()| {
        run_from(device, part, start, &mut |progress: Progress| {
            shared.done.fetch_add(progress.done - told, Ordering::Relaxed);
            shared.now.fetch_max(progress.now.get(), Ordering::Relaxed);
            told = progress.done;
            let stop = shared.stop.load(Ordering::Relaxed);
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    let well = outcome.as_ref().is_ok_and(|o| o.record.errors == 0 && o.failure.is_none());
    shared.stop.fetch_or(!well, Ordering::Relaxed);
    outcome
}
