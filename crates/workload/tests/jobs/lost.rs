//! Devices that fail during a job: the job ends, and the measurements so far are kept.

use std::cell::Cell;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ssdlab_device::{Device, DeviceError, Op};
use ssdlab_uring::{NullDevice, OpenOptions, SyncDevice, UringDevice};
use ssdlab_workload::{Job, Outcome, PatternKind, Progress, Watch, run, run_threads};

use crate::{Call, Hooked, file_of_ones, keep_running};

fn gone() -> DeviceError {
    DeviceError::System { what: "submitting", source: std::io::ErrorKind::NotConnected.into() }
}

fn endless() -> Job {
    Job {
        pattern: PatternKind::Random,
        length_bytes: 8 << 20,
        block_bytes: 4096,
        amount_bytes: 1 << 45,
        queue_depth: 8,
        ..Job::new(Op::Read)
    }
}

/// Runs a job on a device that fails after these numbers of calls.
fn run_and_fail(mut submits_left: u32, mut reaps_left: u32) -> Result<Outcome, DeviceError> {
    let hook = |call: Call| {
        let left = match call {
            Call::Submit(_) => &mut submits_left,
            Call::Reap => &mut reaps_left,
        };
        *left = left.checked_sub(1).ok_or_else(gone)?;
        Ok(())
    };
    let device = &mut NullDevice::new(32);
    run(&mut Hooked { device, hook }, &endless(), &mut keep_running)
}

#[test]
fn requests_in_flight_complete_after_the_device_accepts_no_more() {
    let outcome = run_and_fail(100, u32::MAX).unwrap();
    assert_eq!((outcome.record.requests, outcome.record.errors), (100, 0));
    assert_eq!(outcome.latency(None).count(), 100);
    let failure = outcome.failure.unwrap().to_string();
    assert!(failure.starts_with("submitting: ") && !failure.contains('\n'), "{failure}");
}

#[test]
fn a_device_without_completions_ends_the_job_with_the_measurements_so_far() {
    let outcome = run_and_fail(u32::MAX, 100).unwrap();
    assert_eq!(outcome.record.requests, 100);
    assert!(outcome.failure.is_some());
}

#[test]
fn a_device_that_fails_before_any_measurement_is_an_error() {
    assert!(run_and_fail(0, u32::MAX).is_err());
    assert!(run_and_fail(u32::MAX, 0).is_err());
}

/// A loop device on a file of 8 MiB.
struct Loop {
    path: PathBuf,
    file: PathBuf,
    /// Cleared by the first detach: a second one could detach the next user of the same path.
    attached: Cell<bool>,
    _folder: tempfile::TempDir,
}

impl Loop {
    /// Prints a message and returns `None` if this process may not attach one.
    fn attach() -> Option<Self> {
        let root = std::fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0);
        let (folder, file) = file_of_ones(8 << 20);
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        match attached {
            Ok(output) if root && output.status.success() => {
                let path = String::from_utf8(output.stdout).unwrap().trim().into();
                Some(Self { path, file, attached: Cell::new(true), _folder: folder })
            }
            _ => {
                println!("skipped: no loop device can be attached here");
                None
            }
        }
    }

    /// Truncates the file and detaches the device, which remains until it is closed.
    fn detach(&self) {
        if self.attached.replace(false) {
            File::options().write(true).open(&self.file).unwrap().set_len(0).unwrap();
            Command::new("losetup").arg("--detach").arg(&self.path).output().unwrap();
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Detaches the device after 2000 requests.
fn detaching(attached: &Loop) -> impl Watch {
    |progress: Progress| {
        if progress.done >= 2000 {
            attached.detach();
        }
        ControlFlow::Continue(())
    }
}

/// Runs an endless job, during which the device is detached.
fn lose<D: Device>(attached: &Loop, device: &mut D) -> Outcome {
    run(device, &endless(), &mut detaching(attached)).unwrap()
}

fn check_measurements(outcome: &Outcome) {
    let record = &outcome.record;
    assert!(record.errors > 0 || outcome.failure.is_some());
    assert_eq!(record.first_errno, Some(5), "EIO");
    assert!(record.requests - record.errors >= 2000);
    assert_eq!(outcome.latency(None).count(), record.requests - record.errors);
    assert_eq!(record.intervals.iter().map(|i| i.errors).sum::<u64>(), record.errors);
}

#[test]
fn detaching_a_loop_device_ends_the_job() {
    let Some(attached) = Loop::attach() else { return };
    check_measurements(&lose(&attached, &mut open(&attached.path)));
    drop(attached);
    let Some(attached) = Loop::attach() else { return };
    let mut device = SyncDevice::open(&attached.path, &OpenOptions::default()).unwrap();
    check_measurements(&lose(&attached, &mut device));
}

fn open(path: &Path) -> UringDevice {
    UringDevice::open(path, &OpenOptions::default()).unwrap()
}

#[test]
fn a_failure_in_one_thread_ends_all_threads() {
    let Some(attached) = Loop::attach() else { return };
    let first = open(&attached.path);
    let mut devices: Vec<UringDevice> =
        (0..3).map(|_| first.sibling(&OpenOptions::default()).unwrap()).collect();
    let job = Job { threads: 3, ..endless() };
    let outcome = run_threads(&mut devices, &job, &mut detaching(&attached)).unwrap();
    check_measurements(&outcome);
    assert!(!outcome.stopped, "the watcher did not stop it");
}
