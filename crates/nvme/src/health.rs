//! Health of the drive: log pages of errors, health and endurance.

use ssdlab_engine::{DriveStatus, OperationKind};
use zerocopy::little_endian::U128;
use zerocopy::{FromZeros, IntoBytes};

use super::features::Features;
use super::spec::log_page::{EnduranceGroup, ErrorInformation, OcpSmart, Smart};
use super::subsystem::{ERROR_LOG_ENTRIES, Subsystem};

/// Composite temperature in degrees Celsius of a drive without a sensor.
const CELSIUS: f64 = 35.0;
/// 0 degrees Celsius in kelvin, as `NVMe` counts them.
const ZERO_CELSIUS: f64 = 273.0;
/// Available spare threshold in per cent.
const SPARE_THRESHOLD: u8 = 10;

/// Bits of Critical Warning.
const SPARE_BELOW_THRESHOLD: u8 = 1;
const TEMPERATURE_THRESHOLD: u8 = 1 << 1;
const READ_ONLY: u8 = 1 << 3;
/// Units of data: 1000 times 512 bytes in SMART, and 10^9 bytes in Endurance Group Information.
const SMART_UNIT: u64 = 512_000;
const ENDURANCE_GROUP_UNIT: u64 = 1_000_000_000;
/// Log page GUID of the OCP SMART page.
const OCP_SMART_GUID: [u8; 16] = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5_u128.to_le_bytes();
/// Parameter Error Location: no field of the command is at fault.
const NO_LOCATION: u16 = u16::MAX;

/// Critical Warning of the drive, with a controller's temperature thresholds.
pub fn critical_warning(status: &DriveStatus, features: &Features) -> u8 {
    let temperature = composite_temperature(status);
    let is_outside =
        temperature >= features.over_temperature || temperature <= features.under_temperature;
    endurance_group_warning(status) | if is_outside { TEMPERATURE_THRESHOLD } else { 0 }
}

/// In kelvin.
fn composite_temperature(status: &DriveStatus) -> u16 {
    (ZERO_CELSIUS + status.health.celsius.unwrap_or(CELSIUS)).round() as u16
}

fn endurance_group_warning(status: &DriveStatus) -> u8 {
    let is_low = available_spare(status) < SPARE_THRESHOLD;
    let spare = if is_low { SPARE_BELOW_THRESHOLD } else { 0 };
    spare | if status.is_read_only { READ_ONLY } else { 0 }
}

fn available_spare(status: &DriveStatus) -> u8 {
    status.health.spare_percent.clamp(0.0, 100.0) as u8
}

/// Percentage used; 255 means 255 or more.
fn percentage_used(status: &DriveStatus) -> u8 {
    status.health.percentage_used.unwrap_or(0.0).clamp(0.0, 255.0) as u8
}

/// Successful commands of a kind, and their bytes.
fn succeeded(status: &DriveStatus, kind: OperationKind) -> (u64, u64) {
    let found = status.by_kind.iter().find(|each| each.kind == kind);
    found.map_or((0, 0), |each| (each.commands - each.failed, each.bytes))
}

pub fn smart(subsystem: &Subsystem, features: &Features) -> Smart {
    let status = subsystem.engine.status();
    let (errors, media_errors) = subsystem.error_counts();
    let (reads, bytes_read) = succeeded(&status, OperationKind::Read);
    let (writes, _) = succeeded(&status, OperationKind::Write);
    let mut page = Smart {
        critical_warning: critical_warning(&status, features),
        composite_temperature: composite_temperature(&status).into(),
        available_spare: available_spare(&status),
        available_spare_threshold: SPARE_THRESHOLD,
        percentage_used: percentage_used(&status),
        endurance_group_critical_warning: endurance_group_warning(&status),
        data_units_read: wide(bytes_read.div_ceil(SMART_UNIT)),
        data_units_written: wide(status.health.written_bytes.div_ceil(SMART_UNIT)),
        host_read_commands: wide(reads),
        host_write_commands: wide(writes),
        power_cycles: wide(1 + status.power_cuts),
        power_on_hours: wide(hours(&status)),
        unsafe_shutdowns: wide(status.power_cuts),
        media_errors: wide(media_errors),
        error_log_entries: wide(errors),
        ..Smart::new_zeroed()
    };
    page.temperature_sensors[0] = page.composite_temperature;
    page
}

pub fn endurance_group(subsystem: &Subsystem) -> EnduranceGroup {
    let status = subsystem.engine.status();
    let (errors, media_errors) = subsystem.error_counts();
    let (reads, bytes_read) = succeeded(&status, OperationKind::Read);
    let (writes, _) = succeeded(&status, OperationKind::Write);
    EnduranceGroup {
        critical_warning: endurance_group_warning(&status),
        available_spare: available_spare(&status),
        available_spare_threshold: SPARE_THRESHOLD,
        percentage_used: percentage_used(&status),
        data_units_read: wide(bytes_read.div_ceil(ENDURANCE_GROUP_UNIT)),
        data_units_written: wide(status.health.written_bytes.div_ceil(ENDURANCE_GROUP_UNIT)),
        media_units_written: wide(status.health.programmed_bytes.div_ceil(ENDURANCE_GROUP_UNIT)),
        host_read_commands: wide(reads),
        host_write_commands: wide(writes),
        media_errors: wide(media_errors),
        error_log_entries: wide(errors),
        tegcap: wide(subsystem.engine.parameters.capacity),
        uegcap: wide(subsystem.unallocated_bytes()),
        ..EnduranceGroup::new_zeroed()
    }
}

/// SMART / Health Information Extended of the Open Compute Project.
pub fn ocp_smart(subsystem: &Subsystem) -> OcpSmart {
    let health = subsystem.engine.status().health;
    OcpSmart {
        physical_media_units_written: wide(health.programmed_bytes),
        uncorrectable_read_error_count: subsystem.error_counts().1.into(),
        total_nuse: (health.mapped_units * subsystem.engine.parameters.unit_bytes / 512).into(),
        log_page_version: 3.into(),
        log_page_guid: OCP_SMART_GUID,
        ..OcpSmart::new_zeroed()
    }
}

/// The newest errors first; unused entries are zeros.
pub fn error_information(subsystem: &Subsystem) -> Vec<u8> {
    let state = subsystem.lock();
    let entries = state.error_log.iter().map(|error| ErrorInformation {
        error_count: error.error_count.into(),
        sqid: error.sqid.into(),
        cid: error.sqe.cid().into(),
        status: error.status.field().into(),
        parameter_error_location: NO_LOCATION.into(),
        // SLBA, of I/O commands only.
        lba: if error.sqid == 0 { 0 } else { error.sqe.cdw64(10) }.into(),
        nsid: error.sqe.nsid().into(),
        ..ErrorInformation::new_zeroed()
    });
    let entries: Vec<ErrorInformation> = entries.collect();
    let mut page = entries.as_bytes().to_vec();
    page.resize(size_of::<ErrorInformation>() * ERROR_LOG_ENTRIES, 0);
    page
}

fn wide(count: u64) -> U128 {
    u128::from(count).into()
}

fn hours(status: &DriveStatus) -> u64 {
    (status.uptime.as_secs_f64() / 3600.0) as u64
}
