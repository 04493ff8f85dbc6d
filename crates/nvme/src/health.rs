//! Health of the drive in the units of the SMART log page.

use ssdlab_engine::{DriveStatus, OperationKind};

use super::features::Features;

/// Composite temperature in kelvin; constant.
pub const TEMPERATURE: u16 = 308;
/// Available spare threshold in per cent.
pub const SPARE_THRESHOLD: u8 = 10;

/// Bits of Critical Warning.
const SPARE_BELOW_THRESHOLD: u8 = 1;
const TEMPERATURE_THRESHOLD: u8 = 1 << 1;
const READ_ONLY: u8 = 1 << 3;

/// Critical Warning of the drive, with a controller's temperature thresholds.
pub fn critical_warning(status: &DriveStatus, features: &Features) -> u8 {
    let is_outside =
        TEMPERATURE >= features.over_temperature || TEMPERATURE <= features.under_temperature;
    endurance_group_warning(status) | if is_outside { TEMPERATURE_THRESHOLD } else { 0 }
}

pub fn endurance_group_warning(status: &DriveStatus) -> u8 {
    let is_low = available_spare(status) < SPARE_THRESHOLD;
    let spare = if is_low { SPARE_BELOW_THRESHOLD } else { 0 };
    spare | if status.is_read_only { READ_ONLY } else { 0 }
}

pub fn available_spare(status: &DriveStatus) -> u8 {
    status.health.spare_percent.clamp(0.0, 100.0) as u8
}

/// Percentage used; 255 means 255 or more.
pub fn percentage_used(status: &DriveStatus) -> u8 {
    status.health.percentage_used.unwrap_or(0.0).clamp(0.0, 255.0) as u8
}

/// Successful commands of a kind, and their bytes.
pub fn succeeded(status: &DriveStatus, kind: OperationKind) -> (u64, u64) {
    let found = status.by_kind.iter().find(|each| each.kind == kind);
    found.map_or((0, 0), |each| (each.commands - each.failed, each.bytes))
}
