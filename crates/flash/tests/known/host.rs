//! Profiles and a host for the tests of a drive with timing.

use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::Nanos;

/// A drive with tR 50 us, tPROG 700 us, tBERS 3 ms; `flash`, `ftl`, `buffer` are lines of TOML.
pub fn profile(capacity: &str, flash: &str, ftl: &str, buffer: &str) -> Profile {
    let text = format!(
        "[drive]\nmodel = \"Known\"\ncapacity = \"{capacity}\"\ninterface = \"nvme\"\n\
         [link]\nbandwidth = \"3000 MB/s\"\nread_overhead = \"20 us\"\nwrite_overhead = \"5 us\"\n\
         [flash]\n{flash}\nread = \"50 us\"\nprogram = \"700 us\"\nerase = \"3 ms\"\n\
         [ftl]\n{ftl}\n[buffer]\n{buffer}\n"
    );
    Profile::from_toml(&text).unwrap()
}

/// A request for mapping units of 4 KiB.
pub fn request(op: Op, unit: u64, units: u64) -> Request {
    Request::new(0, op, Lba::new(unit * 8), units as u32 * 8)
}

/// A host with one drive. Requests get consecutive ids.
pub struct Host {
    pub drive: Ssd,
    pub done: Vec<Completion>,
    pub submitted: u64,
    in_flight: usize,
}

impl Host {
    pub fn new(profile: &Profile) -> Self {
        Self { drive: Ssd::new(profile, 1), done: Vec::new(), submitted: 0, in_flight: 0 }
    }

    /// The capacity in mapping units of 4 KiB.
    pub fn units(&self) -> u64 {
        self.drive.capacity_bytes() / 4096
    }

    /// Submits a request as soon as fewer than `depth` are in flight.
    pub fn submit(&mut self, request: Request, depth: usize) {
        while self.in_flight >= depth {
            self.reap(Wait::One);
        }
        self.drive.submit(Request { id: self.submitted, ..request }).unwrap();
        self.submitted += 1;
        self.in_flight += 1;
    }

    fn reap(&mut self, wait: Wait) {
        let before = self.done.len();
        self.drive.reap(wait, &mut self.done).unwrap();
        let completed = self.done.len() - before;
        assert!(completed > 0 || wait != Wait::One, "{} requests are lost", self.in_flight);
        self.in_flight -= completed;
    }

    /// Waits for all requests in flight.
    pub fn drain(&mut self) {
        while self.in_flight > 0 {
            self.reap(Wait::One);
        }
    }

    /// Submits a request and waits for all in flight.
    pub fn run(&mut self, request: Request) {
        self.submit(request, usize::MAX);
        self.drain();
    }

    pub fn flush(&mut self) {
        self.run(Request::flush(0));
    }

    pub fn rest(&mut self, duration: Nanos) {
        let until = self.drive.now() + duration;
        while self.drive.now() < until {
            self.reap(Wait::Until(until));
        }
    }
}
