//! The watcher of a job: lets Python see signals and progress a few times a second.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use ssdlab_time::Nanos;
use ssdlab_workload::Progress;

/// How often Python is told; often enough for a smooth bar and a prompt Ctrl-C.
const PERIOD: Duration = Duration::from_millis(50);

/// Calls Python's watcher `(done, total, now_ns)` now and then, and checks for signals.
pub struct PyWatch {
    callable: Option<Py<PyAny>>,
    /// Calls of the loop between two looks at the clock: a twin's requests cost less than a look.
    stride: u32,
    skipped: u32,
    /// When Python was told last.
    last: Instant,
    /// Of a real device: when it is told next by that device's clock, which costs nothing.
    next_now: Nanos,
    is_virtual: bool,
    /// What a signal handler or the watcher raised.
    pub raised: Option<PyErr>,
}

impl PyWatch {
    /// A watcher for a virtual or a real device.
    pub fn new(callable: Option<Py<PyAny>>, is_virtual: bool) -> Self {
        let stride = if is_virtual { 256 } else { 1 };
        Self {
            callable,
            stride,
            skipped: 0,
            last: now(),
            next_now: Nanos::ZERO,
            is_virtual,
            raised: None,
        }
    }

    /// Tells Python, if it is time to.
    #[inline]
    pub fn look(&mut self, progress: Progress) -> ControlFlow<()> {
        let ends = progress.done >= progress.total;
        if !ends && (progress.now < self.next_now || self.skips()) {
            return ControlFlow::Continue(());
        }
        self.tell(progress, ends)
    }

    /// Whether a twin's watcher is not to look at the clock yet.
    #[inline]
    fn skips(&mut self) -> bool {
        self.skipped += 1;
        self.skipped < self.stride
    }

    #[cold]
    fn tell(&mut self, progress: Progress, ends: bool) -> ControlFlow<()> {
        self.skipped = 0;
        if self.is_virtual && !ends && self.last.elapsed() < PERIOD {
            return ControlFlow::Continue(());
        }
        if !self.is_virtual {
            self.next_now = progress.now + Nanos::from_millis(PERIOD.as_millis() as u64);
        }
        self.last = now();
        let Progress { done, total, now } = progress;
        let told = Python::attach(|py| {
            py.check_signals()?;
            if let Some(callable) = &self.callable {
                callable.call1(py, (done, total, now.get()))?;
            }
            Ok(())
        });
        match told {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Raises what stopped the job, unless it was Ctrl-C: then what was measured is kept.
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
