//! Jobs on twins, on real files and on devices that fail.

mod conformance;
mod fields;
mod hints;
mod latency;
mod lost;
mod patterns;
mod threads;

use std::ops::ControlFlow;
use std::path::PathBuf;

use ssdlab_device::{Completion, Device, DeviceError, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;
use ssdlab_workload::{Job, Outcome, Progress, run};
use tempfile::TempDir;

/// A twin of four dies and 64 MiB, with some texts of its profile replaced.
fn twin(replacements: &[(&str, &str)]) -> Ssd {
    let mut text = include_str!("../../../flash/tests/drives/small.toml").to_owned();
    for (old, new) in replacements {
        assert!(text.contains(old), "the profile contains {old:?}");
        text = text.replace(old, new);
    }
    Ssd::new(&Profile::from_toml(&text).unwrap(), 0)
}

/// A file of ones in a folder that is removed on drop.
fn file_of_ones(bytes: u64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![1_u8; bytes as usize]).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    (folder, path)
}

fn keep_running(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Checks a job and runs it to its end without errors.
fn outcome(device: &mut impl Device, job: &Job) -> Outcome {
    job.check(device).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(device, job, &mut keep_running).unwrap();
    assert_eq!((outcome.record.errors, outcome.stopped), (0, false));
    assert!(outcome.failure.is_none());
    outcome
}

/// The outcome of a job and the requests that it submitted.
fn recorded(device: &mut impl Device, job: &Job) -> (Outcome, Vec<Request>) {
    let mut requests = Vec::new();
    let hook = |call: Call| {
        if let Call::Submit(request) = call {
            requests.push(request);
        }
        Ok(())
    };
    let outcome = outcome(&mut Hooked { device, hook }, job);
    (outcome, requests)
}

enum Call {
    Submit(Request),
    Reap,
}

/// A device with a hook that gets each call first and may fail it.
struct Hooked<'a, D, H> {
    device: &'a mut D,
    hook: H,
}

impl<D: Device, H: FnMut(Call) -> Result<(), DeviceError>> Device for Hooked<'_, D, H> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.device.sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.device.queue_depth()
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        (self.hook)(Call::Submit(request))?;
        self.device.submit(request)
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        (self.hook)(Call::Reap)?;
        self.device.reap(wait, done)
    }
}
