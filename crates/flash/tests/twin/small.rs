//! A small twin, and a host for it.

use ssdlab_device::{Completion, Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::{Nanos, Random};

/// Two channels with two dies each; pages of 16 KiB in two planes; 64 MiB visible.
pub const PROFILE: &str = include_str!("../drives/small.toml");

/// The small profile.
pub fn profile() -> Profile {
    Profile::from_toml(PROFILE).unwrap()
}

/// The small profile with one text replaced.
pub fn profile_with(text: &str, other: &str) -> Profile {
    Profile::from_toml(&replaced(text, other)).unwrap()
}

/// The small profile with more lines in a section.
pub fn profile_with_lines(section: &str, lines: &str) -> Profile {
    profile_with(section, &format!("{section}\n{lines}"))
}

/// The TOML of the small profile with one text replaced.
pub fn replaced(text: &str, other: &str) -> String {
    assert!(PROFILE.contains(text), "the profile contains {text:?}");
    PROFILE.replace(text, other)
}

/// A drive and a host that sends one request at a time; addresses are in mapping units of 4 KiB.
pub struct Twin {
    pub drive: Ssd,
}

impl Twin {
    pub fn new(profile: &Profile) -> Self {
        Self { drive: Ssd::new(profile, 0) }
    }

    /// A drive that was written sequentially and flushed.
    pub fn filled(profile: &Profile) -> Self {
        let mut twin = Self::new(profile);
        twin.write_all();
        twin.flush();
        twin
    }

    pub fn units(&self) -> u64 {
        self.drive.capacity_bytes() / 4096
    }

    /// Submits a request and waits for it.
    pub fn run(&mut self, request: Request) -> Completion {
        self.drive.submit(request).unwrap();
        let mut done = Vec::new();
        self.drive.reap(Wait::One, &mut done).unwrap();
        assert_eq!((done.len(), done[0].id), (1, request.id));
        done[0]
    }

    /// Runs a request of 512-byte blocks; returns its latency.
    pub fn request(&mut self, op: Op, lba: u64, blocks: u32) -> Nanos {
        let done = self.run(Request::new(7, op, Lba::new(lba), blocks));
        assert_eq!(done.outcome, Ok(()));
        done.completed - done.submitted
    }

    pub fn rest(&mut self, duration: Nanos) {
        let until = self.drive.now() + duration;
        self.drive.reap(Wait::Until(until), &mut Vec::new()).unwrap();
    }

    pub fn write(&mut self, unit: u64, units: u64) -> Nanos {
        self.request(Op::Write, unit * 8, units as u32 * 8)
    }

    pub fn read(&mut self, unit: u64, units: u64) -> Nanos {
        self.request(Op::Read, unit * 8, units as u32 * 8)
    }

    pub fn flush(&mut self) -> Nanos {
        self.request(Op::Flush, 0, 0)
    }

    pub fn write_all(&mut self) {
        for unit in (0..self.units()).step_by(64) {
            self.write(unit, 64.min(self.units() - unit));
        }
    }

    pub fn read_all(&mut self) -> Nanos {
        (0..self.units()).step_by(64).map(|unit| self.read(unit, 64.min(self.units() - unit))).sum()
    }

    pub fn trim_all(&mut self) {
        let blocks = self.units() as u32 * 8;
        self.request(Op::Trim, 0, blocks);
    }

    pub fn write_random(&mut self, count: u64, seed: u64) {
        let mut random = Random::new(seed, "test");
        for _ in 0..count {
            let unit = random.below(self.units());
            self.write(unit, 1);
        }
    }
}
