//! The watcher of a job: checks for signals and reports progress a few times per second.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use ssdlab_time::Nanos;
use ssdlab_workload::Progress;

/// Time between two reports: short enough for a smooth progress bar and a prompt Ctrl-C.
const PERIOD: Duration = Duration::from_millis(50);

/// Calls between two reads of the clock: a twin's request takes less time than such a read.
const TWIN_STRIDE: u32 = 256;

/// Calls Python's watcher `(done, total, now_ns)` at intervals, and checks for signals.
pub struct PyWatch {
    callable: Option<Py<PyAny>>,
    /// Calls since the last read of the clock.
    skipped: u32,
    /// Time of the last report.
    last: Instant,
    /// Real devices only: when the next report is due, by the device's clock.
    next_now: Nanos,
    is_virtual: bool,
    /// The exception of a signal handler or of the watcher.
    raised: Option<PyErr>,
}

impl PyWatch {
    pub fn new(callable: Option<Py<PyAny>>, is_virtual: bool) -> Self {
        let (last, next_now) = (now(), Nanos::ZERO);
        Self { callable, skipped: 0, last, next_now, is_virtual, raised: None }
    }

    /// Reports progress if a report is due.
    #[inline]
    pub fn look(&mut self, progress: Progress) -> ControlFlow<()> {
        let ends = progress.done >= progress.total;
        if !ends && (progress.now < self.next_now || self.skips()) {
            return ControlFlow::Continue(());
        }
        self.report(progress, ends)
    }

    /// Whether this call must not read the clock yet.
    #[inline]
    fn skips(&mut self) -> bool {
        self.skipped += 1;
        self.is_virtual && self.skipped < TWIN_STRIDE
    }

    #[cold]
    fn report(&mut self, progress: Progress, ends: bool) -> ControlFlow<()> {
        self.skipped = 0;
        if self.is_virtual && !ends && self.last.elapsed() < PERIOD {
            return ControlFlow::Continue(());
        }
        if !self.is_virtual {
            self.next_now = progress.now + Nanos::from_millis(PERIOD.as_millis() as u64);
        }
        self.last = now();
        let Progress { done, total, now } = progress;
        let reported = Python::attach(|py| {
            py.check_signals()?;
            if let Some(callable) = &self.callable {
                callable.call1(py, (done, total, now.get()))?;
            }
            Ok(())
        });
        match reported {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Raises the exception that stopped the job, except for Ctrl-C, which keeps the measurement.
    pub fn finish(self) -> PyResult<()> {
        match self.raised {
            Some(error) if !is_interrupt(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

fn is_interrupt(error: &PyErr) -> bool {
    Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py))
}

#[expect(clippy::disallowed_methods, reason = "paces progress reports; measures nothing")]
fn now() -> Instant {
    Instant::now()
}
