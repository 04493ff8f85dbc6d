//! A small twin for tests, and helpers to submit requests to it.

use ssdlab_device::{Device, Lba, Op, Request, Wait};
use ssdlab_flash::{Profile, Ssd};
use ssdlab_time::{Nanos, Random};

/// Two channels with two dies each; pages of 16 KiB in two planes; 64 MiB visible.
pub const PROFILE: &str = r#"
[drive]
model = "Test"
capacity = "64 MiB"
interface = "nvme"
[link]
bandwidth = "1000 MB/s"
read_overhead = "20 us"
write_overhead = "5 us"
max_transfer = "128 KiB"
[flash]
channels = 2
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 16
read = "50 us"
program = "700 us"
erase = "3 ms"
channel_bandwidth = "400 MB/s"
[ftl]
mapping_unit = "4 KiB"
chunk = "32 KiB"
spare = 0.28
[buffer]
size = "1 MiB"
power_loss_protection = false
"#;

/// The small twin's profile.
pub fn profile() -> Profile {
    Profile::from_toml(PROFILE).unwrap()
}

/// The small profile with one line replaced.
pub fn profile_with(line: &str, other: &str) -> Profile {
    assert!(PROFILE.contains(line), "the profile says {line:?}");
    Profile::from_toml(&PROFILE.replace(line, other)).unwrap()
}

/// A drive, one request at a time; addresses in mapping units of 4 KiB.
pub struct Twin {
    pub drive: Ssd,
}

impl Twin {
    pub fn new(profile: &Profile) -> Self {
        Self { drive: Ssd::new(profile, 0) }
    }

    pub fn units(&self) -> u64 {
        self.drive.capacity_bytes() / 4096
    }

    /// Submits a request of 512-byte blocks and waits; returns its latency.
    pub fn request(&mut self, op: Op, lba: u64, blocks: u32) -> Nanos {
        self.drive.submit(Request::new(7, op, Lba::new(lba), blocks)).unwrap();
        let mut done = Vec::new();
        self.drive.reap(Wait::One, &mut done).unwrap();
        assert_eq!((done.len(), done[0].id, done[0].outcome), (1, 7, Ok(())));
        done[0].completed - done[0].submitted
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
