//! Files on a real drive for the tests, and helpers to run requests.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::fs;
use std::path::{Path, PathBuf};

use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_uring::{OpenError, OpenOptions, UringDevice};
use tempfile::TempDir;

/// A file of zeros in a temporary directory, both of which are removed on drop.
pub struct Scratch {
    pub path: PathBuf,
    _directory: TempDir,
}

impl Scratch {
    /// A file on the first file system with direct I/O; prints a message and returns `None` if none
    /// has it.
    pub fn zeros(bytes: usize) -> Option<Self> {
        for parent in [env!("CARGO_TARGET_TMPDIR"), "/var/tmp"] {
            let Ok(directory) = tempfile::tempdir_in(parent) else { continue };
            let path = directory.path().join("file");
            fs::write(&path, vec![0_u8; bytes]).expect("writing a test file");
            fs::File::open(&path).unwrap().sync_all().unwrap();
            match UringDevice::open(&path, &OpenOptions::default()) {
                Err(OpenError::NoDirectIo { .. }) => {}
                Err(error) => panic!("{error}"),
                Ok(_) => return Some(Self { path, _directory: directory }),
            }
        }
        println!("skipped: no directory for tests supports direct I/O");
        None
    }

    pub fn open(&self, options: &OpenOptions) -> UringDevice {
        UringDevice::open(&self.path, options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As `open`; prints a message and returns `None` if the user may lock too little memory.
    pub fn open_locked(&self, options: &OpenOptions) -> Option<UringDevice> {
        match UringDevice::open(&self.path, options) {
            Ok(device) => Some(device),
            Err(error) if error.to_string().contains("ulimit -l") && !is_root() => {
                println!("skipped: this user may lock too little memory (ulimit -l)");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }
}

/// Writable, with this depth and requests of up to 64 KiB.
pub fn writable(queue_depth: usize) -> OpenOptions {
    OpenOptions { writable: true, queue_depth, request_bytes_max: 1 << 16, ..Default::default() }
}

/// A request with offset and length in bytes.
pub fn request(id: u64, op: Op, offset: u64, bytes: u32) -> Request {
    Request::new(id, op, Lba::from_bytes(offset), bytes / 512)
}

/// Reaps until `count` requests are done.
pub fn reap_all(device: &mut impl Device, count: usize) -> Vec<Completion> {
    let mut done = Vec::new();
    while done.len() < count {
        let before = done.len();
        device.reap(Wait::One, &mut done).unwrap();
        assert!(
            done.len() > before,
            "{before} of {count} requests completed, then reap returned none"
        );
    }
    done
}

pub fn run(device: &mut impl Device, request: Request) -> Completion {
    device.submit(request).unwrap();
    reap_all(device, 1)[0]
}

/// Whether this process may mount and attach devices; prints a message if not.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    let root = fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0);
    if !root {
        println!("skipped: only root can mount and attach devices");
    }
    root
}

/// Runs a program; prints a message and returns `None` if it is missing or fails.
pub fn system(program: &str, arguments: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            println!("skipped: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            println!("skipped: {program}: {error}");
            None
        }
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are ASCII")
}
