//! What the drive tells of its life: errors, health, endurance. Numbers are the drive's own.

use crate::controller::Controller;
use crate::feature::Features;
use crate::page::Page;
use crate::subsystem::{ERRORS_MAX, Subsystem};
use ssdlab_engine::DriveStatus;
use ssdlab_engine::OperationKind;

/// In kelvin; it is always the same.
const TEMPERATURE: u16 = 308;
/// In per cent; less spare is warned of.
const SPARE_THRESHOLD: u8 = 10;
/// Warnings: too little spare, temperature, no more writes.
const SPARE: u8 = 1;
const HEAT: u8 = 1 << 1;
const READ_ONLY: u8 = 1 << 3;
/// Data units are thousands of 512 bytes, those of an endurance group thousand millions of bytes.
const DATA_UNIT: u64 = 512_000;
const GROUP_UNIT: u64 = 1_000_000_000;
/// By which the log of the Open Compute Project is known.
const OPEN_COMPUTE_ID: [u8; 16] = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5_u128.to_le_bytes();

/// What the health log warns of.
pub fn warnings(subsystem: &Subsystem, features: &Features) -> u8 {
    let life = subsystem.engine.life();
    let heat = TEMPERATURE >= features.hot || TEMPERATURE <= features.cold;
    life_warnings(&life) | if heat { HEAT } else { 0 }
}

fn life_warnings(life: &DriveStatus) -> u8 {
    let spare = if spare(life) < SPARE_THRESHOLD { SPARE } else { 0 };
    spare | if life.is_read_only { READ_ONLY } else { 0 }
}

fn spare(life: &DriveStatus) -> u8 {
    life.health.spare_percent.clamp(0.0, 100.0) as u8
}

/// Wear in whole per cent; 255 stands for all that is more.
fn used(life: &DriveStatus) -> u8 {
    life.health.percentage_used.unwrap_or(0.0).clamp(0.0, 255.0) as u8
}

/// Commands and bytes of a kind that ended well.
fn done(life: &DriveStatus, which: OperationKind) -> (u64, u64) {
    let found = life.by_kind.iter().find(|each| each.which == which);
    found.map_or((0, 0), |each| (each.commands - each.failed, each.bytes))
}

impl Controller {
    pub(super) fn health_log(&self) -> Page {
        let life = self.subsystem.engine.life();
        let warnings = warnings(&self.subsystem, &self.lock().features);
        let (errors, media_errors) = self.subsystem.errors();
        let (reads, read) = done(&life, OperationKind::Read);
        let (writes, _) = done(&life, OperationKind::Write);
        let mut page = Page::new(512);
        page.u8(0, warnings).u16(1, TEMPERATURE);
        page.u8(3, spare(&life)).u8(4, SPARE_THRESHOLD).u8(5, used(&life));
        // The endurance group's warnings, which are the drive's.
        page.u8(6, life_warnings(&life));
        page.u128(32, read.div_ceil(DATA_UNIT));
        page.u128(48, life.health.written.div_ceil(DATA_UNIT));
        page.u128(64, reads).u128(80, writes);
        page.u128(112, 1 + life.power_cuts).u128(128, hours(&life)).u128(144, life.power_cuts);
        page.u128(160, media_errors).u128(176, errors);
        page.u16(200, TEMPERATURE);
        page
    }

    pub(super) fn endurance_log(&self) -> Page {
        let life = self.subsystem.engine.life();
        let (errors, media_errors) = self.subsystem.errors();
        let (reads, read) = done(&life, OperationKind::Read);
        let (writes, _) = done(&life, OperationKind::Write);
        let capacity = self.subsystem.engine.shape().capacity;
        let mut page = Page::new(512);
        page.u8(0, life_warnings(&life)).u8(3, spare(&life)).u8(4, SPARE_THRESHOLD);
        page.u8(5, used(&life));
        page.u128(48, read.div_ceil(GROUP_UNIT));
        page.u128(64, life.health.written.div_ceil(GROUP_UNIT));
        page.u128(80, life.health.programmed.div_ceil(GROUP_UNIT));
        page.u128(96, reads).u128(112, writes).u128(128, media_errors).u128(144, errors);
        page.u128(160, capacity).u128(176, self.subsystem.unallocated());
        page
    }

    /// The health log of the Open Compute Project: what was programmed, in bytes.
    pub(super) fn open_compute_log(&self) -> Page {
        let health = self.subsystem.engine.life().health;
        let mut page = Page::new(512);
        page.u128(0, health.programmed).u64(56, self.subsystem.errors().1);
        page.u64(152, health.mapped_units * self.subsystem.engine.unit_bytes() / 512);
        page.u16(494, 3).put(496, &OPEN_COMPUTE_ID);
        page
    }

    /// The commands that failed last, the newest first; an entry of zeros is none.
    pub(super) fn error_log(&self) -> Page {
        let mut page = Page::new(64 * ERRORS_MAX);
        for (place, failed) in self.subsystem.failed().iter().enumerate() {
            let (at, sqe) = (64 * place, &failed.sqe);
            page.u64(at, failed.number).u16(at + 8, failed.queue).u16(at + 10, sqe.cid());
            page.u16(at + 12, failed.status.field()).u16(at + 14, u16::MAX);
            // Only a command of an I/O queue has an address.
            let lba = if failed.queue == 0 { 0 } else { sqe.cdw64(10) };
            page.u64(at + 16, lba).u32(at + 24, sqe.nsid());
        }
        page
    }
}

fn hours(life: &DriveStatus) -> u64 {
    (life.running.as_secs_f64() / 3600.0) as u64
}
