//! `Mirror`: two twins as RAID 1 behind the `Device` contract.

use ssdlab_device::{Completion, Device, DeviceError, Lba, Op, Request, Wait};
use ssdlab_time::Nanos;

use crate::config::Profile;
use crate::in_flight::InFlight;
use crate::ssd::Ssd;

/// Bytes of a request of a resync, as md's.
const RESYNC_BYTES: u64 = 1 << 20;

/// Writes of a resync in flight.
const RESYNC_DEPTH: usize = 8;

/// Two drives that hold the same data.
///
/// Modelled: writes, trims and flushes go to both drives and complete when the slower one has
/// completed them; a read goes to the drive with fewer requests in flight; a resync copies every
/// block of the first drive to the second, also those that hold no data.
///
/// Not modelled: the array's own metadata, bitmap and time; a failed drive; writes of the host
/// during a resync.
#[derive(Clone, Debug)]
pub struct Mirror {
    members: [Ssd; 2],
    now: Nanos,
    in_flight: InFlight,
    /// Completions of the members that `now` has passed; kept for its memory.
    passed: Vec<Completion>,
}

impl Mirror {
    /// Two new, empty drives of this profile, whose random choices differ.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Self {
            members: [Ssd::new(profile, seed), Ssd::new(profile, !seed)],
            now: Nanos::ZERO,
            in_flight: InFlight::default(),
            passed: Vec::new(),
        }
    }

    /// The drives.
    pub fn members(&self) -> &[Ssd; 2] {
        &self.members
    }

    /// Sets whether all data that the host writes from now on is zeros.
    pub fn set_writes_zeros(&mut self, zeros: bool) {
        for member in &mut self.members {
            member.set_writes_zeros(zeros);
        }
    }

    /// Copies all of the first drive to the second, as after a replacement.
    ///
    /// # Panics
    /// If requests are in flight.
    pub fn resync(&mut self) {
        assert!(self.in_flight.len() == 0, "a resync begins on an idle array");
        let capacity = self.capacity_bytes();
        let mut done = self.now;
        for start in (0..capacity).step_by(RESYNC_BYTES as usize) {
            let blocks = RESYNC_BYTES.min(capacity - start) / ssdlab_device::LBA_BYTES;
            let request =
                |op| Request::new(0, op, Lba::new(start / ssdlab_device::LBA_BYTES), blocks as u32);
            self.catch_up();
            self.now = self.members[0].submit_timed(request(Op::Read)).completed;
            self.catch_up();
            while self.members[1].in_flight() >= RESYNC_DEPTH {
                self.now = self.members[1].next_completion().expect("some are in flight");
                self.catch_up();
            }
            done = done.max(self.members[1].submit_timed(request(Op::Write)).completed);
        }
        self.now = self.now.max(done);
        self.catch_up();
    }

    /// Advances the clocks of the drives to that of the array.
    fn catch_up(&mut self) {
        for member in &mut self.members {
            while member.now() < self.now {
                let until = Wait::Until(self.now);
                member.reap(until, &mut self.passed).expect("a twin never goes away");
            }
            member.reap(Wait::Poll, &mut self.passed).expect("a twin never goes away");
        }
        self.passed.clear();
    }
}

impl Device for Mirror {
    fn capacity_bytes(&self) -> u64 {
        self.members[0].capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.members[0].sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.members[0].queue_depth()
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn announce(&mut self, op: Op, lba: Lba) {
        for member in &mut self.members {
            member.announce(op, lba);
        }
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        DeviceError::check(&request, self.capacity_bytes(), self.sector_bytes())?;
        self.catch_up();
        let [first, second] = &mut self.members;
        let completion = if request.op == Op::Read {
            let idler = if second.in_flight() < first.in_flight() { second } else { first };
            idler.submit_timed(request)
        } else {
            let (one, other) = (first.submit_timed(request), second.submit_timed(request));
            Completion {
                completed: one.completed.max(other.completed),
                outcome: one.outcome.and(other.outcome),
                ..one
            }
        };
        self.in_flight.submit(completion);
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.now = self.in_flight.end_of(wait, self.now);
        self.in_flight.complete(self.now, done);
        Ok(())
    }
}
