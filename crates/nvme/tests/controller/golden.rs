//! Every page, log page and feature of a few fake drives, bit for bit as in `golden.txt`.
//!
//! After an intended change of what hosts see, run with `SSDLAB_GOLDEN=write` to store it.

use std::fmt::Write;
use std::path::PathBuf;

use ssdlab_engine::Health;
use ssdlab_nvme::{Completion, Controller};

use crate::memory::{Memory, admin, io};
use crate::mutations;
use crate::{controller, discovery_controller};
use ssdlab_testing::DriveOptions;
use ssdlab_testing::nvme::*;

const ALL_NAMESPACES: u32 = u32::MAX;
/// Log page identifier.
const FDP_EVENTS: u8 = 0x23;
const MUTATIONS: u32 = 20_000;
const SEED: u64 = 7;

/// What a controller completed: a line for each successful command, or for each group of them.
struct Transcript {
    lines: String,
    /// Hash of the commands that failed, each with its status.
    failed: u64,
}

impl Transcript {
    fn note(&mut self, what: &str, completion: Option<Completion>, data: &[u8]) {
        let Some(Completion { result, status }) = completion else {
            writeln!(self.lines, "{what}: outstanding").unwrap();
            return;
        };
        if status.is_success() {
            let (length, hash) = (data.len(), hash(0, data));
            writeln!(self.lines, "{what}: {result:x} {length} {hash:016x}").unwrap();
        } else {
            let line = format!("{what}: {:04x} {result:x}", status.field());
            self.failed = hash(hash(self.failed, line.as_bytes()), data);
        }
    }

    fn admin(&mut self, controller: &Controller, entry: Entry, mut data: Memory) {
        let completion = admin(controller, entry, &mut data);
        if entry.0[0] == GET_LOG_PAGE && entry.0[40] == FDP_EVENTS {
            // Event timestamps follow the wall clock.
            data.received.chunks_exact_mut(64).for_each(|event| event[4..10].fill(0));
        }
        self.note(&format!("admin {}", dwords(&entry)), completion, &data.received);
    }

    fn io(&mut self, controller: &Controller, entry: Entry, mut data: Memory) {
        let completion = io(controller, entry, &mut data);
        self.note(&format!("io {}", dwords(&entry)), Some(completion), &data.received);
    }

    /// Replaces the lines of a group of commands by one line, with their hash.
    fn group(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        let mut group = Self { lines: String::new(), failed: 0 };
        fill(&mut group);
        let count = group.lines.lines().count();
        let folded = hash(hash(0, group.lines.as_bytes()), &group.failed.to_le_bytes());
        if count == 0 {
            self.failed = hash(self.failed, &folded.to_le_bytes());
        } else {
            writeln!(self.lines, "{name}, {count} commands: {folded:016x}").unwrap();
        }
    }

    /// All that can be read from a controller.
    fn all(&mut self, controller: &Controller) {
        for offset in (0..0x40).step_by(4) {
            if let Some(value) = controller.property(offset) {
                writeln!(self.lines, "property {offset:x}: {value:x}").unwrap();
            }
        }
        for cns in 0..=0xff {
            self.group(&format!("identify {cns:02x}"), |group| {
                for nsid in [0, 1, 2, ALL_NAMESPACES] {
                    let entry = Entry::new(IDENTIFY).nsid(nsid).cdw(10, cns);
                    group.admin(controller, entry, Memory::new(4096));
                }
            });
        }
        self.admin(controller, Entry::new(IDENTIFY).cdw(10, 0x13 | 1 << 16), Memory::new(4096));
        self.admin(controller, Entry::new(IDENTIFY).cdw(10, 0x13 | 2 << 16), Memory::new(4096));
        for lid in 0..=0xff {
            self.group(&format!("log page {lid:02x}"), |group| {
                for (lsp, lsi) in [(0, 0), (0, 1), (1, 1)] {
                    let dwords: u32 = 5000 / 4;
                    let entry = Entry::new(GET_LOG_PAGE)
                        .nsid(ALL_NAMESPACES)
                        .cdw(10, lid | lsp << 8 | 1 << 15 | (dwords - 1) << 16)
                        .cdw(11, lsi << 16);
                    group.admin(controller, entry, Memory::new(5000));
                    group.admin(controller, entry.cdw(12, 64), Memory::new(5000));
                }
            });
        }
        for fid in 0..=0xff {
            self.group(&format!("feature {fid:02x}"), |group| {
                for select in 0..=4 {
                    for cdw11 in [0, 1, 1 << 20, 1 | 2 << 16, 2 << 20] {
                        let entry = Entry::new(GET_FEATURES).nsid(1).cdw(10, fid | select << 8);
                        group.admin(controller, entry.cdw(11, cdw11), Memory::new(4096));
                    }
                }
            });
        }
        for (first, action) in [(0, 2), (1, 0x10), (40, 0x11), (1000, 2)] {
            let entry = Entry::new(GET_LBA_STATUS).nsid(1).cdw64(10, first);
            for dwords in [1, 16, 400] {
                let entry = entry.cdw(12, dwords - 1).cdw(13, action << 24);
                self.admin(controller, entry, Memory::new(4 * dwords as usize));
                self.admin(controller, entry.cdw(13, 64), Memory::new(4 * dwords as usize));
            }
        }
        let statuses = Entry::new(IO_MANAGEMENT_RECEIVE).nsid(1).cdw(10, 1);
        self.io(controller, statuses.cdw(11, 3), Memory::new(16));
        self.io(controller, statuses.cdw(11, 99), Memory::new(400));
    }

    fn events(&mut self, controller: &Controller) {
        while let Some((cid, completion)) = controller.next_event() {
            self.note(&format!("event {cid}"), Some(completion), &[]);
        }
    }

    fn commands(&mut self, controller: &Controller) {
        self.admin(controller, Entry::new(KEEP_ALIVE), Memory::new(0));
        self.admin(controller, Entry::new(0x7e), Memory::new(0));
        self.io(controller, Entry::on(WRITE, 3, 17), Memory::with(vec![1; 17 * 512]));
        self.io(controller, Entry::on(READ, 0, 24), Memory::new(24 * 512));
        self.io(controller, Entry::on(COMPARE, 3, 2), Memory::with(vec![1; 1024]));
        self.io(controller, Entry::on(COMPARE, 2, 2), Memory::with(vec![1; 1024]));
        for handle in [0, 1, 3, 9] {
            let entry = Entry::on(WRITE, 64 * u64::from(handle), 8).cdw(12, 2 << 20);
            let entry = entry.cdw(13, handle << 16);
            self.io(controller, entry, Memory::with(vec![handle as u8; 4096]));
        }
        for kinds in [vec![0, 3], vec![7]] {
            let set = Entry::new(SET_FEATURES).nsid(1).cdw(10, 0x1e);
            let set = set.cdw(11, 1 | (kinds.len() as u32) << 16).cdw(12, 1);
            self.admin(controller, set, Memory::with(kinds.clone()));
            let set = Entry::new(SET_FEATURES).nsid(1).cdw(10, 0x1e);
            let set = set.cdw(11, (kinds.len() as u32) << 16).cdw(12, 1);
            self.admin(controller, set, Memory::with(kinds));
        }
        let misplaced = Entry::on(WRITE, 8, 1).cdw(12, 2 << 20).cdw(13, 77 << 16);
        self.io(controller, misplaced, Memory::with(vec![9; 512]));
        let update = Entry::new(IO_MANAGEMENT_SEND).nsid(1).cdw(10, 1 | 1 << 16);
        self.io(controller, update, Memory::with(vec![0, 0, 1, 0]));
        let mut range = vec![0; 32];
        (range[4], range[8], range[20], range[24]) = (16, 64, 1, 0);
        let trim = Entry::new(DATASET_MANAGEMENT).nsid(1).cdw(10, 1).cdw(11, 4);
        self.io(controller, trim, Memory::with(range));
        let mut ranges = vec![0; 64];
        (ranges[8], ranges[16], ranges[40], ranges[48]) = (3, 7, 192, 0);
        let copy = Entry::new(COPY).nsid(1).cdw64(10, 512).cdw(12, 1);
        self.io(controller, copy, Memory::with(ranges));
        self.io(controller, Entry::on(WRITE_ZEROES, 5, 3).cdw(12, 1 << 25), Memory::new(0));
        self.io(controller, Entry::on(VERIFY, 0, 64), Memory::new(0));
        self.io(controller, Entry::on(READ, 512, 16), Memory::new(16 * 512));
        self.io(controller, Entry::on(READ, 1 << 40, 16), Memory::new(16 * 512));
    }

    fn settings(&mut self, controller: &Controller) {
        for cid in 1..=5 {
            self.admin(controller, Entry::new(ASYNC_EVENT_REQUEST).cid(cid), Memory::new(0));
        }
        let values = [
            (1, 0x0102_0304),
            (4, 300),
            (5, 0x0001_0020),
            (6, 0),
            (7, 0x0003_0003),
            (0x0a, 1),
            (0x0b, 0x17f),
            (0x0f, 60_000),
            (0x1d, 1),
            (2, 0),
            (2, 1),
            (0x81, 0),
        ];
        for (fid, value) in values {
            let entry = Entry::new(SET_FEATURES).nsid(1).cdw(10, fid).cdw(11, value);
            self.admin(controller, entry, Memory::new(0));
        }
        self.events(controller);
        self.io(controller, Entry::on(READ, 12_000, 8), Memory::new(4096));
        self.io(controller, Entry::on(WRITE, 12_000, 8), Memory::with(vec![4; 4096]));
    }

    fn namespaces(&mut self, controller: &Controller) {
        let nsid = |opcode| Entry::new(opcode).nsid(1);
        self.admin(controller, nsid(FORMAT_NVM).cdw(10, 1 | 1 << 9), Memory::new(0));
        self.all(controller);
        self.events(controller);
        self.admin(controller, nsid(SANITIZE).cdw(10, 2), Memory::new(0));
        self.admin(controller, nsid(NAMESPACE_MANAGEMENT).cdw(10, 1), Memory::new(0));
        self.all(controller);
        self.events(controller);
        let placement = Entry::new(SET_FEATURES).cdw(10, 0x1d).cdw(11, 1);
        self.admin(controller, placement, Memory::new(0));
        let mut wanted = vec![0; 4096];
        (wanted[1], wanted[9], wanted[26]) = (2, 2, 1);
        let create = Entry::new(NAMESPACE_MANAGEMENT);
        self.admin(controller, create, Memory::with(wanted.clone()));
        self.admin(controller, create, Memory::with(wanted));
        self.all(controller);
        let mut list = vec![0; 4096];
        (list[0], list[2]) = (1, 1);
        self.admin(controller, nsid(NAMESPACE_ATTACHMENT), Memory::with(list));
        self.all(controller);
        self.events(controller);
    }

    fn mutations(&mut self, controller: &Controller) {
        self.group("mutated", |group| {
            mutations::run(controller, MUTATIONS, SEED, |entry, data, completion| {
                let has_timestamps = entry.0[0] == GET_LOG_PAGE && entry.0[40] == FDP_EVENTS;
                let data = if has_timestamps { &[][..] } else { &data.received };
                group.note(&dwords(entry), completion, data);
            });
        });
        self.all(controller);
    }
}

/// A command's opcode and its dwords that are not zero.
fn dwords(entry: &Entry) -> String {
    let dwords = entry.0.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap()));
    let set = dwords.enumerate().filter(|(_, dword)| *dword != 0);
    set.map(|(number, dword)| format!("{number}={dword:x}")).collect::<Vec<_>>().join(" ")
}

/// FNV-1a.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let seed = seed ^ 0xcbf2_9ce4_8422_2325;
    bytes
        .iter()
        .fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn section(name: &str, fill: impl FnOnce(&mut Transcript)) -> String {
    let mut transcript = Transcript { lines: String::new(), failed: 0 };
    fill(&mut transcript);
    format!("# {name}\n{}failed commands: {:016x}\n", transcript.lines, transcript.failed)
}

/// A drive whose health counters differ from each other and from zero.
fn worn(percentage_used: f64, spare_percent: f64) -> Health {
    Health {
        written_bytes: 0x0123_4567_89ab_cdef,
        programmed_bytes: 0x0234_5678_9abc_def1,
        erased_bytes: 0x0345_6789_abcd_ef12,
        percentage_used: Some(percentage_used),
        spare_percent,
        mapped_units: 0,
        celsius: None,
    }
}

fn all_sections() -> String {
    let plain = DriveOptions::default();
    let streams = DriveOptions {
        streams: 4,
        power_loss_protection: true,
        max_transfer: 64 << 10,
        health: worn(12.9, 87.3),
        ..DriveOptions::default()
    };
    let at_its_end = DriveOptions {
        streams: 3,
        trims_to_zeros: false,
        endurance_writes: 12,
        health: worn(1e3, 7.0),
        ..DriveOptions::default()
    };
    let mut sections = String::new();
    for (name, toy) in [("plain", plain), ("streams", streams), ("at its end", at_its_end)] {
        sections += &section(name, |transcript| {
            let controller = controller(toy);
            transcript.all(&controller);
            transcript.commands(&controller);
            transcript.settings(&controller);
            transcript.all(&controller);
            transcript.namespaces(&controller);
            controller.set_property(CC, 0).unwrap();
            transcript.all(&controller);
        });
        sections += &section(&format!("{name}, mutated commands"), |transcript| {
            transcript.mutations(&controller(toy));
        });
    }
    let ports = ["192.0.2.7:4420", "[2001:db8::7]:8009"].map(|port| port.parse().ok());
    for (number, port) in [None].into_iter().chain(ports).enumerate() {
        sections += &section(&format!("discovery {number}"), |transcript| {
            let controller = discovery_controller(port);
            transcript.all(&controller);
            transcript.settings(&controller);
            transcript.commands(&controller);
            transcript.namespaces(&controller);
        });
    }
    sections
}

#[test]
fn pages_log_pages_and_features_are_what_they_were() {
    let found = all_sections();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/controller/golden.txt");
    if std::env::var("SSDLAB_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &found).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    for (line, (found, stored)) in found.lines().zip(stored.lines()).enumerate() {
        assert_eq!(found, stored, "line {} of {}", line + 1, path.display());
    }
    assert_eq!(found.lines().count(), stored.lines().count());
}
